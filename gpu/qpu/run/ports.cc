#include "gpu/qpu/run/ports.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "gpu/base/log.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/observer.h"

namespace v3d::qpu {
namespace {

// A program may repeat what is not implemented as often as it likes; the log names it once.
template <typename... Args>
void warn_once(std::atomic<bool>& reported, const char* format, const Args&... args) {
  if (!reported.exchange(true)) log_warning(format, args...);
}

void unknown_port(uint8_t waddr) {
  static std::array<std::atomic<bool>, 64> reported{};
  const char* name = waddr_info(chip::kDefaultGeneration, waddr).name;  // all call their ports alike
  warn_once(reported[waddr & 63],
            "qpu: writes to magic address %d (%s) have no known meaning and are dropped", waddr,
            name ? name : "reserved");
}

// ---- TMU

const char* push_results(Thread& t, const Lanes* words, int count) {
  Thread::Pending& p = t.pending;
  if (p.fifo_tail - p.fifo_head + static_cast<uint32_t>(count) > kTmuFifo) return "TMU return queue overflow";
  for (int i = 0; i < count; ++i) p.fifo[p.fifo_tail++ % kTmuFifo] = words[i];
  return nullptr;
}

// Parameters do not outlive a launch, of either kind.
void end_sequence(Thread::Pending& p) {
  p.texture.written = 0;
  p.texture.num_data = 0;
}

const char* launch_texture(Thread& t, tmu::Launcher launcher, Lanes s, LaneMask exec) {
  Thread::Pending& p = t.pending;
  if (!t.tmu) return "texture lookup in a stage without TMU";
  if (p.num_config == 0) return "texture lookup without configuration";
  tmu::TextureLookup& lookup = p.texture;
  lookup.launcher = launcher;
  lookup.exec = exec;
  lookup.live = nonzero(t.msf);
  lookup.s = s;
  Lanes words[4];
  const int count = t.tmu->texture(lookup, words);
  if (t.observer) t.observer->texture_lookup(t, lookup, count);
  p.forget_config();
  end_sequence(p);
  return push_results(t, words, count);
}

const char* launch_general(Thread& t, Lanes address, LaneMask exec) {
  Thread::Pending& p = t.pending;
  if (!t.tmu) return "memory access in a stage without TMU";
  tmu::GeneralLookup lookup;
  lookup.config = static_cast<uint8_t>(t.tmu_config);
  t.tmu_config = t.tmu_config >> 8 | 0xff000000u;
  lookup.exec = exec;
  lookup.live = nonzero(t.msf);
  lookup.address = address;
  lookup.num_data = p.texture.num_data;
  for (int i = 0; i < lookup.num_data; ++i) lookup.data[i] = p.texture.data[i];
  // TMUDREF and TMUOFF are data words 0 and 1 here (py-videocore7 test_tmu, atomics).
  if (p.texture.written & tmu::kDref) {
    lookup.data[0] = p.texture.dref;
    if (lookup.num_data < 1) lookup.num_data = 1;
  }
  if (p.texture.written & tmu::kOff) {
    if (lookup.num_data < 1) lookup.data[0] = Lanes{};
    lookup.data[1] = p.texture.off;
    if (lookup.num_data < 2) lookup.num_data = 2;
  }
  Lanes words[4];
  const int count = t.tmu->general(lookup, words);
  if (t.observer) t.observer->general_lookup(t, lookup, count);
  end_sequence(p);
  return push_results(t, words, count);
}

const char* set_parameter(Thread& t, Lanes tmu::TextureLookup::*member, tmu::Parameter bit, Lanes value) {
  t.pending.texture.*member = value;
  t.pending.texture.written |= bit;
  return nullptr;
}

void push_data(Thread& t, Lanes value) {
  tmu::TextureLookup& lookup = t.pending.texture;
  if (lookup.num_data >= 4) return;
  lookup.data[lookup.num_data++] = value;
}

// ---- TLB

constexpr TlbSpec tlb_spec_of(uint8_t code) {
  TlbSpec spec = {TlbSpec::Kind::kUnknown, 0, false, false, 1};
  switch (code >> 6) {
    case 3:
      spec.kind = TlbSpec::Kind::kColorF16;
      spec.words = code & 1 ? 2 : 1;
      break;
    case 0:
    case 1:  // integer colour before 4.2
      spec.kind = TlbSpec::Kind::kColor32;
      spec.words = static_cast<uint8_t>((code & 3) + 1);
      break;
    default:
      if (code >> 4 != 8) return spec;
      spec.kind = TlbSpec::Kind::kDepth;
      spec.invariant_depth = !(code & 8);
      return spec;
  }
  spec.render_target = static_cast<uint8_t>(7 - ((code >> 3) & 7));
  spec.per_sample = !(code & 4);
  return spec;
}

constexpr auto kTlbSpecs = [] {
  std::array<TlbSpec, 256> specs{};
  for (size_t code = 0; code < specs.size(); ++code) specs[code] = tlb_spec_of(static_cast<uint8_t>(code));
  return specs;
}();

void begin_tlb(Thread& t, bool reading) {
  Thread::Pending& p = t.pending;
  const auto code = static_cast<uint8_t>(t.tlb_config);
  p.tlb_spec = kTlbSpecs[code];
  p.tlb_halves = !reading && code == kTlbHalves;
  t.tlb_config = t.tlb_config >> 8 | 0xff000000u;
  p.tlb_need = static_cast<uint8_t>(p.tlb_spec.words * (p.tlb_spec.per_sample ? 4 : 1));
  p.tlb_have = 0;
  p.tlb_reading = reading;
  p.tlb_exec = kAllLanes;
}

void configure_tlb(Thread& t) {
  t.tlb_config = next_uniform(t);
  t.pending.tlb_have = t.pending.tlb_need = 0;
}

void write_tlb(Thread& t, Lanes value, LaneMask exec) {
  Thread::Pending& p = t.pending;
  if (!t.tlb) return;
  if (p.tlb_have >= p.tlb_need || p.tlb_reading) begin_tlb(t, false);
  p.tlb_words[p.tlb_have++] = value;
  p.tlb_exec &= exec;
  if (p.tlb_have < p.tlb_need) return;
  p.tlb_have = p.tlb_need = 0;
  switch (p.tlb_spec.kind) {
    case TlbSpec::Kind::kColorF16:
    case TlbSpec::Kind::kColor32:
      t.tlb->write_color(t, p.tlb_spec, p.tlb_words, p.tlb_exec);
      break;
    case TlbSpec::Kind::kDepth:
      t.tlb->write_depth(t, p.tlb_spec, p.tlb_words[0], p.tlb_exec);
      break;
    case TlbSpec::Kind::kUnknown: {
      static std::atomic<bool> reported;
      warn_once(reported, "qpu: TLB write with a stencil or alpha specifier at 0x%08x is dropped", t.pc);
      break;
    }
  }
}

// ---- SFU behind write addresses

// The result is in r4 for the second next instruction.
void start_sfu(Thread& t, Op op, Lanes value) {
  Thread::Pending& p = t.pending;
  const AluFn function = find_alu(op, Unpack::kNone, Unpack::kNone);
  p.sfu_result[(p.sfu_oldest + (p.events.sfu & 1)) & 1] = function(t, value, value, kAllLanes);
  p.events.sfu |= 2;
}

// ---- TSY

// Operations of the sync unit. Source of the names, and of the lanes: Mesa nir_to_vir.c, V3D_TSY_* and
// emit_barrier.
constexpr const char* kSyncOperations[] = {"set_quorum",
                                           "inc_waiters",
                                           "dec_waiters",
                                           "inc_quorum",
                                           "dec_quorum",
                                           "free_all",
                                           "release",
                                           "acquire",
                                           "wait",
                                           "wait_inc",
                                           "wait_check",
                                           "wait_inc_check",
                                           "wait_cv",
                                           "inc_semaphore",
                                           "dec_semaphore",
                                           "set_quorum_free_all",
                                           "set_quorum_wait_inc_check"};
constexpr uint32_t kSetQuorumWaitIncCheck = 16;

void unknown_sync(const Thread& t, uint32_t operation, uint32_t quorum) {
  static std::array<std::atomic<bool>, std::size(kSyncOperations) + 1> reported{};
  const size_t n = std::min<size_t>(operation, std::size(kSyncOperations));
  warn_once(reported[n],
            "qpu: TSY operation %u (%s) with quorum %u at 0x%08x is not implemented and does not wait",
            operation, n < std::size(kSyncOperations) ? kSyncOperations[n] : "reserved", quorum, t.pc);
}

// BARRIERID is the barrier of a supergroup. Of the others only operation 16 is used, with a quorum of 1, to
// "synchronize across one subgroup" with an object that no other has (emit_barrier): so many threads meet at
// the object, and 1 passes. No public source says what the rest does.
void sync_blocking(Thread& t, Lanes value, LaneMask exec) {
  if (!exec) return;
  if (value[0] == kBarrierToken) {
    t.pending.sync = Thread::Pending::Sync::kBarrier;
    return;
  }
  const uint32_t quorum = value[0], operation = value[3];
  const bool compute = !t.tlb && !t.vpm_out;
  if (operation == kSetQuorumWaitIncCheck && quorum <= 1) return;
  if (operation != kSetQuorumWaitIncCheck || !compute) return unknown_sync(t, operation, quorum);
  t.pending.sync = Thread::Pending::Sync::kMeeting;
  t.meeting = {quorum, static_cast<uint8_t>(value[2] & 63)};
}

}  // namespace

Lanes next_varying(Thread& t) {
  Thread::Pending& p = t.pending;
  const uint32_t taken = std::min(p.next_varying, t.last_varying);
  p.next_varying = taken + static_cast<uint32_t>(sizeof(Varying));
  p.events.vary |= 2;
  return t.varyings[taken / sizeof(Varying)].vp;
}

void write_texture_config(Thread& t) {
  Thread::Pending& p = t.pending;
  const uint32_t word = next_uniform(t);
  uint32_t* const parameters[] = {&p.texture.p0, &p.texture.p1, &p.texture.p2};
  if (p.num_config >= 3) return;
  *parameters[p.num_config++] = word;
}

Lanes read_tlb(Thread& t, bool with_config) {
  Thread::Pending& p = t.pending;
  if (with_config) configure_tlb(t);
  if (!t.tlb) return Lanes{};
  if (p.tlb_have >= p.tlb_need || !p.tlb_reading) {
    static std::atomic<bool> reported;
    begin_tlb(t, true);
    for (int i = 0; i < p.tlb_need; ++i) p.tlb_words[i] = Lanes{};
    if (p.tlb_spec.kind == TlbSpec::Kind::kColorF16 || p.tlb_spec.kind == TlbSpec::Kind::kColor32)
      t.tlb->read_color(t, p.tlb_spec, p.tlb_words);
    else
      warn_once(reported, "qpu: TLB read of depth or stencil at 0x%08x gives 0", t.pc);
  }
  return p.tlb_words[p.tlb_have++];
}

TlbSpec decode_tlb_spec(uint8_t code) { return kTlbSpecs[code]; }

bool is_depth_configuration(uint32_t word) {
  const TlbSpec& spec = kTlbSpecs[word & 0xff];
  return spec.kind == TlbSpec::Kind::kDepth && spec.invariant_depth && word >> 8 == 0xffffff;
}

const char* write_port(Thread& t, Port port, Lanes value, LaneMask exec) {
  using tmu::Launcher;
  using tmu::TextureLookup;
  switch (port.effect) {
    case Effect::kTlb:
      if (port.takes_uniform) configure_tlb(t);
      write_tlb(t, value, exec);
      return nullptr;
    case Effect::kUnifa:
      if (exec) t.unifa = value[0] & ~3u;
      return nullptr;
    case Effect::kTmuData:
      push_data(t, value);
      return nullptr;
    case Effect::kTmuConfig:
      t.tmu_config = value[0];
      return nullptr;
    case Effect::kTmuT:
      return set_parameter(t, &TextureLookup::t, tmu::kT, value);
    case Effect::kTmuR:
      return set_parameter(t, &TextureLookup::r, tmu::kR, value);
    case Effect::kTmuI:
      return set_parameter(t, &TextureLookup::i, tmu::kI, value);
    case Effect::kTmuB:
      return set_parameter(t, &TextureLookup::b, tmu::kB, value);
    case Effect::kTmuDref:
      return set_parameter(t, &TextureLookup::dref, tmu::kDref, value);
    case Effect::kTmuOff:
      return set_parameter(t, &TextureLookup::off, tmu::kOff, value);
    case Effect::kGeneral:
      if (port.takes_uniform) t.tmu_config = next_uniform(t);
      return launch_general(t, value, exec);
    case Effect::kTexture:
      return launch_texture(t, Launcher::kS, value, exec);
    case Effect::kTextureCube:
      return launch_texture(t, Launcher::kSCm, value, exec);
    case Effect::kTextureFetch:
      return launch_texture(t, Launcher::kSF, value, exec);
    case Effect::kTextureLod:
      return launch_texture(t, Launcher::kSLod, value, exec);
    case Effect::kBarrier:
      sync_blocking(t, value, exec);
      return nullptr;
    default:
      break;
  }
  if (starts_sfu(port.effect)) {
    start_sfu(t, sfu_operation(port.effect), value);
    return nullptr;
  }
  if (port.takes_uniform) next_uniform(t);
  unknown_port(port.waddr);
  return nullptr;
}

namespace {

/// TlbBinding::counts_depth, where it may be.
bool counts_by_itself(const Thread& t, LaneMask exec) {
  return t.tlb_binding.counts_depth && exec == kAllLanes && t.tlb_block.live == kAllLanes &&
         nonzero(t.msf ^ 1u) == 0;
}

}  // namespace

const char* write_bound_tlb(Thread& t, bool takes_uniform, Lanes value, LaneMask exec) {
  Thread::Pending& p = t.pending;
  const TlbBinding& binding = t.tlb_binding;
  if (takes_uniform) {
    const GpuAddr before = t.uniforms;
    const uint32_t word = next_uniform(t);
    if (binding.write_depth && (word & kTlbInvariantDepthMask) == kTlbInvariantDepth) {
      t.tlb_config = word >> 8 | 0xff000000u;
      p.tlb_have = p.tlb_need = 0;
      if (counts_by_itself(t, exec))
        ++t.tlb_block.tested;
      else
        binding.write_depth(t, exec);
      return nullptr;
    }
    t.uniforms = before;
  } else if (binding.write_halves && p.tlb_halves && p.tlb_have == 1 && p.tlb_need == 2) {
    p.tlb_words[1] = value;
    p.tlb_have = p.tlb_need = 0;
    binding.write_halves(t, p.tlb_exec & exec);
    return nullptr;
  }
  return write_port(t, {Effect::kTlb, takes_uniform, kWaddrNop}, value, exec);
}

}  // namespace v3d::qpu
