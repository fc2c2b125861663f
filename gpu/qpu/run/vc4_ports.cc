#include "gpu/qpu/run/vc4_ports.h"

#include <array>
#include <atomic>

#include "gpu/base/log.h"
#include "gpu/qpu/run/vc4_alu.h"

namespace v3d::qpu::vc4 {
namespace {

// The log names once what has no known meaning.
void unknown_write(WritePort port, const char* what) {
  static std::array<std::atomic<bool>, 64> reported{};
  if (!reported[static_cast<size_t>(port) % reported.size()].exchange(true))
    log_warning("qpu of V3D 2.1: writes to %s have no known meaning and are dropped", what);
}

const char* push_result(Thread::Pending::Unit& unit, const Lanes& word) {
  if (unit.tail - unit.head >= kTmuResults) return "more TMU results than the queue holds";
  unit.results[unit.tail++ % kTmuResults] = word;
  return nullptr;
}

// Each parameter takes a uniform of its own.
const char* pop_parameter(Thread& t, Lookup& lookup) {
  if (lookup.parameters == 4) return "more than four parameters of one texture lookup";
  lookup.p[lookup.parameters++] = next_uniform(t);
  return nullptr;
}

const char* start_lookup(Thread& t, int number, const Lanes& s) {
  Thread::Pending::Unit& unit = t.pending.tmu[number];
  Lookup& lookup = unit.lookup;
  if (!lookup.has_t && !lookup.has_r && !lookup.has_b) {  // S alone
    if (t.observer) [[unlikely]]
      t.observer->direct_lookup(t, number, s);
    return push_result(unit, read_words(t, s));
  }
  if (const char* error = pop_parameter(t, lookup)) return error;
  if (!t.tmu) return kNoTmu;
  return push_result(unit, look_up(t, number, s));
}

const char* write_tmu(Thread& t, WritePort port, const Lanes& value) {
  const int number = port >= WritePort::kTmu1S;
  Lookup& lookup = t.pending.tmu[number].lookup;
  switch (port) {
    case WritePort::kTmu0T:
    case WritePort::kTmu1T:
      lookup.t = value;
      lookup.has_t = true;
      break;
    case WritePort::kTmu0R:
    case WritePort::kTmu1R:
      lookup.r = value;
      lookup.has_r = true;
      break;
    case WritePort::kTmu0B:
    case WritePort::kTmu1B:
      lookup.b = value;
      lookup.has_b = true;
      break;
    default:
      return start_lookup(t, number, value);
  }
  return pop_parameter(t, lookup);
}

// The result is in r4 for the third next instruction.
void start_sfu(Thread& t, WritePort port, const Lanes& value) {
  Thread::Pending& p = t.pending;
  if (p.events.sfu_in != 0) t.r(4) = p.sfu_result;
  p.sfu_result = special_function(port, value);
  p.events.sfu_in = 3;
}

const char* write_tlb(Thread& t, WritePort port, const Lanes& value, LaneMask exec) {
  if (!t.tlb) return kNoTileBuffer;
  if (port == WritePort::kTlbZ) {
    t.ms_flags &= as_uint(expand(exec));
    t.tlb->write_z(t, value & 0xffffffu, exec);
  } else {
    t.tlb->write_color(t, value, exec, port == WritePort::kTlbColorAll);
  }
  return nullptr;
}

void setup_vpm_read(Thread& t, uint32_t setup) {
  VpmDma& dma = t.pending.dma;
  if (!(setup >> 31)) {
    t.pending.vpm_reads.push(decode_vpm_block(setup));
  } else if ((setup >> 28 & 7) == 1) {
    dma.load_pitch = setup;
  } else {
    dma.load = setup;
  }
}

void setup_vpm_write(Thread& t, uint32_t setup) {
  VpmDma& dma = t.pending.dma;
  switch (setup >> 30) {
    case 2:
      dma.store = setup;
      break;
    case 3:
      dma.store_stride = setup;
      break;
    default:
      t.pending.vpm_write = decode_vpm_block(setup);
      break;
  }
}

}  // namespace

Lanes read_words(const Thread& t, const Lanes& addresses) {
  Lanes words;
  for (int lane = 0; lane < kLanes; ++lane)
    words[lane] = t.memory.load<uint32_t>(uint32_t{addresses[lane]} & ~3u);
  return words;
}

Lanes look_up(Thread& t, int unit, const Lanes& s) {
  Lookup& lookup = t.pending.tmu[unit].lookup;
  lookup.unit = static_cast<uint8_t>(unit);
  lookup.s = s;
  const Lanes word = t.tmu->texture(t, lookup);
  if (t.observer) [[unlikely]]
    t.observer->texture_lookup(t, lookup);
  // What was not written is 0 in the next one.
  if (lookup.has_t) lookup.t = Lanes{};
  if (lookup.has_r) lookup.r = Lanes{};
  if (lookup.has_b) lookup.b = Lanes{};
  lookup.has_t = lookup.has_r = lookup.has_b = false;
  lookup.parameters = 0;
  for (uint32_t& parameter : lookup.p) parameter = 0;
  return word;
}

Lanes read_port(Thread& t, ReadPort port, Files file) {
  switch (port) {
    case ReadPort::kVarying:
      return t.pending.next_varying < t.num_varyings ? t.varyings[t.pending.next_varying].vp : AlignedLanes{};
    case ReadPort::kPixelX:
      return t.pixel_x;
    case ReadPort::kPixelY:
      return t.pixel_y;
    case ReadPort::kMsFlags:
      return t.ms_flags;
    case ReadPort::kRevFlag:
      return as_uint(expand(t.back_facing)) & 1u;
    case ReadPort::kVpm:
      return t.pending.vpm_reads.read(t.vpm_in);
    case ReadPort::kNop:
    case ReadPort::kVpmLoadBusy:  // DMA has always ended
    case ReadPort::kVpmStoreBusy:
    case ReadPort::kVpmLoadWait:
    case ReadPort::kVpmStoreWait:
      return Lanes{};
    default:
      return file == kFileA ? kLaneIndex : splat(uint32_t{t.qpu_number});
  }
}

void land_varying(Thread& t) {
  Thread::Pending& p = t.pending;
  if (p.next_varying >= t.num_varyings) {
    t.r(5) = Lanes{};
    return;
  }
  t.r(5) = t.varyings[p.next_varying++].c;
}

const char* write_port(Thread& t, WritePort port, const Lanes& value, LaneMask exec) {
  const uint32_t first = value[0];
  switch (port) {
    case WritePort::kUniforms:
      t.uniforms = first;
      return nullptr;
    case WritePort::kMsFlags:
      t.ms_flags = select(exec, value & 15u, Lanes(t.ms_flags));
      return nullptr;
    case WritePort::kRevFlag:
      t.back_facing = static_cast<LaneMask>((t.back_facing & ~exec) | (nonzero(value & 1u) & exec));
      return nullptr;
    case WritePort::kStencilSetup:
      if (!t.tlb) return kNoTileBuffer;
      t.tlb->set_stencil(t, first);
      return nullptr;
    case WritePort::kTlbZ:
    case WritePort::kTlbColorMs:
    case WritePort::kTlbColorAll:
      return write_tlb(t, port, value, exec);
    case WritePort::kVpm:
      write_vector(t.vpm_out, t.pending.vpm_write, value);
      return nullptr;
    case WritePort::kVpmReadSetup:
      setup_vpm_read(t, first);
      return nullptr;
    case WritePort::kVpmWriteSetup:
      setup_vpm_write(t, first);
      return nullptr;
    case WritePort::kVpmLoadAddr:
      if (t.observer) [[unlikely]]
        t.observer->transfer(t, false, first);
      t.pending.dma_elements += dma_load(t.pending.dma, t.vpm_out, t.memory, first);
      return nullptr;
    case WritePort::kVpmStoreAddr:
      if (t.observer) [[unlikely]]
        t.observer->transfer(t, true, first);
      t.pending.dma_elements += dma_store(t.pending.dma, t.vpm_in, t.memory, first);
      return nullptr;
    case WritePort::kMutexRelease:
      if (t.shared) t.shared->mutex = nullptr;
      return nullptr;
    case WritePort::kHostInt:
      if (nonzero(value) & exec) ++t.host_interrupts;
      return nullptr;
    case WritePort::kSfuRecip:
    case WritePort::kSfuRecipsqrt:
    case WritePort::kSfuExp:
    case WritePort::kSfuLog:
      start_sfu(t, port, value);
      return nullptr;
    case WritePort::kTmuNoswap:  // which unit looks something up changes no value
      return nullptr;
    case WritePort::kQuadX:
      unknown_write(port, "quad_x");
      return nullptr;
    case WritePort::kQuadY:
      unknown_write(port, "quad_y");
      return nullptr;
    default:
      return write_tmu(t, port, value);
  }
}

bool pop_tmu(Thread& t, int unit, Lanes& word) {
  Thread::Pending::Unit& from = t.pending.tmu[unit];
  if (from.head == from.tail) return false;
  word = from.results[from.head++ % kTmuResults];
  return true;
}

bool waits_for_mutex(Thread& t) {
  if (!t.shared) return false;
  if (t.shared->mutex && t.shared->mutex != &t) return true;
  t.shared->mutex = &t;
  return false;
}

bool waits_for_semaphore(Thread& t, uint32_t immediate) {
  if (!t.shared) return true;
  uint8_t& semaphore = t.shared->semaphores[immediate & 15];
  const bool acquire = immediate & 16;
  if (semaphore == (acquire ? 0 : Shared::kHighest)) return true;
  semaphore = static_cast<uint8_t>(acquire ? semaphore - 1 : semaphore + 1);
  return false;
}

}  // namespace v3d::qpu::vc4
