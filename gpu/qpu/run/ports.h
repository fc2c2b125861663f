/// The ports are what magic write addresses and signals reach outside the register file: uniform streams,
/// TMU, TLB, TSY.
#pragma once

#include <cstdint>
#include <cstring>

#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// The next word of the uniform stream, through the snapshot of a compute job.
inline uint32_t next_uniform(Thread& t) {
  const GpuAddr address = t.uniforms;
  t.uniforms += 4;
  const uint32_t offset = address - t.snapshot_address;
  if (offset < t.snapshot_bytes && t.snapshot_bytes - offset >= 4) {
    uint32_t word;
    std::memcpy(&word, t.snapshot + offset, 4);
    return word;
  }
  return t.memory.load<uint32_t>(address);
}

inline uint32_t next_unifa(Thread& t) {
  const GpuAddr address = t.unifa;
  t.unifa += 4;
  return t.memory.load<uint32_t>(address);
}

/// Takes a word from the return queue of the TMU. False if it is empty, which hangs the hardware.
inline bool pop_tmu(Thread& t, Lanes& word) {
  Thread::Pending& p = t.pending;
  if (p.fifo_head == p.fifo_tail) return false;
  word = p.fifo[p.fifo_head++ % kTmuFifo];
  return true;
}

/// ldvary: the Vp of the next component; its C lands in rf0 or r5 two instructions later.
Lanes next_varying(Thread& t);

/// wrtmuc: the next uniform becomes P0, P1 or P2 of the next texture lookup.
void write_texture_config(Thread& t);

/// ldtlb, ldtlbu: the next word of the tile buffer.
Lanes read_tlb(Thread& t, bool with_config);

/// A magic write address that is no register: its row (isa.def), as far as the interpreter needs it.
struct Port {
  Effect effect = Effect::kNothing;
  bool takes_uniform = false;
  uint8_t waddr = kWaddrNop;  ///< for messages
};

/// A write of the ALUs or of a signal to a port.
/// @return nullptr, or why the thread hangs
const char* write_port(Thread& t, Port port, Lanes value, LaneMask exec);

/// write_port() to the tile buffer, by the ways of TlbBinding where they lead.
const char* write_bound_tlb(Thread& t, bool takes_uniform, Lanes value, LaneMask exec);

/// qpu.md 4.5.
TlbSpec decode_tlb_spec(uint8_t code);
/// Whether the word configures one write of the rasteriser's depth; others follow as if there were none.
bool is_depth_configuration(uint32_t word);
/// Colour of render target 0 as four halves a pixel: what is accessed at thread start.
inline constexpr uint8_t kTlbHalves = 0xff;
/// The rasteriser's depth, with what else means the same.
inline constexpr uint8_t kTlbInvariantDepth = 0x80, kTlbInvariantDepthMask = 0xf8;

}  // namespace v3d::qpu
