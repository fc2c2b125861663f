#include "gpu/qpu/jit/graph/thread_calls.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/qpu/graph/thread_front_end.h"
#include "gpu/qpu/jit/code/functions.h"
#include "gpu/qpu/jit/code/lookup_compiler.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/tmu/lookup/general.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit {
namespace {

using graph::ThreadRead;

// What code returns is what its graph leads to.
static_assert(kThreadGoesOn == graph::kLeadsOn && kThreadBranches == graph::kBranches);
static_assert(kThreadHangs > std::max(graph::kLeadsOn, graph::kBranches));

/// Return words of a lookup.
constexpr uint32_t kMostWords = 4;
static_assert(kMostWords - 1 <= kTmuFifoRoom);
constexpr char kThrown[] = "an exception";

/// Nothing may be thrown through code that has no tables for it.
template <typename Fn>
const char* caught(Frame& frame, Fn fn) noexcept {
  try {
    return fn();
  } catch (...) {
    frame.exception = std::current_exception();
    return kThrown;
  }
}

const char* read_port(Frame* frame, const Lanes*, const Lanes*, uint32_t, uint32_t immediate, Lanes* result) {
  Thread* const t = frame->thread;
  return caught(*frame, [&]() -> const char* {
    switch (static_cast<ThreadRead>(immediate & 0xff)) {
      case ThreadRead::kTmu:
        return pop_tmu(*t, *result) ? nullptr : kEmptyQueue;
      case ThreadRead::kTlb:
        *result = read_tlb(*t, false);
        return nullptr;
      case ThreadRead::kTlbConfigured:
        *result = read_tlb(*t, true);
        return nullptr;
      case ThreadRead::kUnifa:
        *result = splat(next_unifa(*t));
        return nullptr;
      case ThreadRead::kTextureConfig:
        write_texture_config(*t);
        return nullptr;
      case ThreadRead::kActiveLanes:
        *result = select(active_lanes(*t), splat(~0u), Lanes{});
        return nullptr;
    }
    return nullptr;
  });
}

constexpr const char* kDone = nullptr;

/// Executed by code, if it has some; else it has some the next time, if it can.
const char* look_up(Frame& frame, Port port, const Lanes& s, LaneMask exec) {
  Thread& t = *frame.thread;
  Thread::Pending& p = t.pending;
  const uint32_t waiting = p.fifo_tail - p.fifo_head;
  if (frame.lookups == nullptr || t.tmu == nullptr || p.num_config == 0 || waiting > kTmuFifo - kMostWords)
    return qpu::write_port(t, port, s, exec);
  tmu::TextureLookup& lookup = p.texture;
  lookup.launcher =
      static_cast<tmu::Launcher>(static_cast<int>(port.effect) - static_cast<int>(Effect::kTexture));
  lookup.s = s;
  if (const tmu::Plan* const plan = t.tmu->plan_with_code(lookup); plan != nullptr) {
    const LaneMask live = nonzero(t.msf);
    lookup.exec = static_cast<LaneMask>(exec & (plan->per_pixel ? live : whole_quads(live)));
    constexpr GpuAddr kHalfTheSpace = 0x80000000;
    const uint32_t at = p.fifo_tail % kTmuFifo;
    std::bit_cast<LookupFn>(plan->code_begin)(&t, &plan->data, t.memory.host(kHalfTheSpace), &p.fifo[at]);
    // Those beyond the end of the queue to its start.
    for (uint32_t n = kTmuFifo; n < at + plan->num_words; ++n) p.fifo[n - kTmuFifo] = p.fifo[n];
    p.fifo_tail += plan->num_words;
    p.forget_config();
    lookup.written = lookup.num_data = 0;
    return nullptr;
  }
  if (const char* const error = qpu::write_port(t, port, s, exec); error != nullptr) return error;
  const tmu::LookupKind* const kind = t.tmu->kind_without_code();
  if (kind == nullptr) return nullptr;
  if (auto made = frame.lookups->code_of(*kind, t.memory.host(0)))
    t.tmu->set_code(std::move(made->code), made->cost);
  return nullptr;
}

bool are_equal(const Lanes& v) { return nonzero(v ^ splat(v[0])) == 0; }

/// Loads of words side by side, or of one word or vector for all.
bool load_words(Thread& t, const Lanes& address, uint32_t words) {
  Thread::Pending& p = t.pending;
  const GpuAddr first = address[0];
  const auto push = [&](const Lanes& v) { p.fifo[p.fifo_tail++ % kTmuFifo] = v; };
  if (are_equal(address)) {
    if (words > 1 && (first & 15) != 0) return false;  // 4.2 goes on at the start of the 16 bytes
    for (uint32_t k = 0; k < words; ++k) push(splat(t.memory.load<uint32_t>((first & ~3u) + 4 * k)));
    return true;
  }
  if (words != 1 || !are_equal(address - kLaneIndex * 4u) || (first & 3) != 0) return false;
  push(t.memory.load<Lanes>(first));
  return true;
}

/// The commonest accesses, of all lanes, as Unit::general() does them: loads and stores of words and sums.
/// @return  it was one of them
bool access_words(Thread& t, bool takes_uniform, const Lanes& address, LaneMask exec) {
  static const tmu::AtomicFn add_words = tmu::find_atomic(tmu::kAdd);
  Thread::Pending& p = t.pending;
  tmu::TextureLookup& sequence = p.texture;
  if (t.tmu == nullptr || exec != kAllLanes || sequence.written != 0 || sequence.num_data > 1 ||
      p.fifo_tail - p.fifo_head > kTmuFifo - kMostWords || nonzero(t.msf) != kAllLanes)
    return false;
  const GpuAddr uniforms = t.uniforms;
  const uint32_t configuration = takes_uniform ? next_uniform(t) : t.tmu_config,
                 operation = configuration >> tmu::kGeneralOpShift & tmu::kOpMask;
  const tmu::GeneralType type = tmu::kGeneralTypes[configuration & 7];
  const uint32_t words = type.bytes == sizeof(uint32_t) ? type.words : 0;
  const bool is_regular = operation == tmu::kRegular && words != 0;
  bool is_done = false;
  if (is_regular && sequence.num_data == 0) {
    is_done = load_words(t, address, words);
  } else if (is_regular && words == 1) {
    const bool side_by_side = (address[0] & 3) == 0 && are_equal(address - kLaneIndex * 4u);
    if (side_by_side) t.memory.store(address[0], Lanes(sequence.data[0]));
    is_done = side_by_side;
  } else if (words == 1 && tmu::is_sum(operation, sequence.num_data != 0)) {
    const Lanes added = sequence.num_data != 0 ? Lanes(sequence.data[0]) : splat(1u);
    const Lanes data = tmu::is_difference(operation) ? Lanes{} - added : added;
    add_words(t.memory.host(0), &address, &data, kAllLanes, &p.fifo[p.fifo_tail++ % kTmuFifo]);
    is_done = true;
  }
  if (!is_done) {
    t.uniforms = uniforms;
    return false;
  }
  t.tmu_config = configuration >> 8 | 0xff000000u;
  sequence.num_data = 0;
  return true;
}

const char* write_port(Frame* frame, const Lanes* a, const Lanes*, uint32_t exec, uint32_t immediate,
                       Lanes*) {
  const graph::ThreadWrite to = graph::decode_thread_write(immediate);
  const auto effect = static_cast<Effect>(to.effect);
  const auto lanes = static_cast<LaneMask>(exec);
  Thread& t = *frame->thread;
  return caught(*frame, [&] {
    if (effect == Effect::kTlb) return write_bound_tlb(t, to.takes_uniform, *a, lanes);
    const Port port = {effect, to.takes_uniform, to.waddr};
    if (starts_texture(effect)) return look_up(*frame, port, *a, lanes);
    if (effect == Effect::kGeneral && access_words(t, to.takes_uniform, *a, lanes)) return kDone;
    return qpu::write_port(t, port, *a, lanes);
  });
}

const char* call(Frame* frame, const Lanes* a, const Lanes* b, uint32_t exec, uint32_t immediate,
                 Lanes* result) {
  return caught(*frame, [&]() -> const char* {
    const AluFn alu = find_alu(static_cast<Op>(immediate), Unpack::kNone, Unpack::kNone);
    *result = alu(*frame->thread, *a, *b, static_cast<LaneMask>(exec));
    return nullptr;
  });
}

}  // namespace

uint32_t uniforms_before(const graph::Node& node) {
  return node.op == graph::Op::kWritePort ? graph::decode_thread_write(node.immediate).uniforms
                                          : node.immediate >> 8;
}

std::optional<WaitingParameter> waiting_parameter(Effect effect) {
  switch (effect) {
    case Effect::kTmuT:
      return WaitingParameter{offsetof(Thread, pending.texture.t), tmu::kT};
    case Effect::kTmuR:
      return WaitingParameter{offsetof(Thread, pending.texture.r), tmu::kR};
    case Effect::kTmuI:
      return WaitingParameter{offsetof(Thread, pending.texture.i), tmu::kI};
    case Effect::kTmuB:
      return WaitingParameter{offsetof(Thread, pending.texture.b), tmu::kB};
    case Effect::kTmuDref:
      return WaitingParameter{offsetof(Thread, pending.texture.dref), tmu::kDref};
    case Effect::kTmuOff:
      return WaitingParameter{offsetof(Thread, pending.texture.off), tmu::kOff};
    default:
      return std::nullopt;
  }
}

ThreadCallFn find_thread_call(graph::Op op) {
  switch (op) {
    case graph::Op::kReadPort:
      return read_port;
    case graph::Op::kWritePort:
      return write_port;
    default:
      return call;
  }
}

}  // namespace v3d::qpu::jit
