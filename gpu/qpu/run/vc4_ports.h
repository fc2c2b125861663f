/// Ports are what reads and writes reach outside the register file of V3D 2.1: vc4-qpu.md 3.1 to 3.3.
#pragma once

#include <cstdint>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

// Why threads hang.
inline constexpr const char* kEmptyQueue = "a load from a TMU without an outstanding lookup";
inline constexpr const char* kNoTmu = "texture lookup in a program without TMU";
inline constexpr const char* kNoTileBuffer = "access to the tile buffer in a program without one";

inline uint32_t next_uniform(Thread& t) {
  const GpuAddr address = t.uniforms;
  t.uniforms += 4;
  return t.memory.load<uint32_t>(address);
}

/// The value of a port other than the uniform stream. C of a varying lands in r5 by land_varying().
Lanes read_port(Thread& t, ReadPort port, Files file);
/// After the instruction that read a varying.
void land_varying(Thread& t);

/// @param exec  lanes in which the condition holds; most ports take all lanes
/// @return  nullptr, or why the thread hangs
const char* write_port(Thread& t, WritePort port, const Lanes& value, LaneMask exec);

/// The word at each lane's address, whose low two bits do not count.
Lanes read_words(const Thread& t, const Lanes& addresses);
/// Executes thread.pending.tmu[unit].lookup, whose parameters but S are there, and which is as new then.
/// thread.tmu is there.
Lanes look_up(Thread& t, int unit, const Lanes& s);

/// The oldest result of a TMU. False if it has none, which hangs the hardware.
bool pop_tmu(Thread& t, int unit, Lanes& word);

/// Whether the thread has to wait for others at a read of the mutex, or a semaphore. If not, it has it.
bool waits_for_mutex(Thread& t);
/// @param immediate  bits 3:0 number, bit 4: acquire
bool waits_for_semaphore(Thread& t, uint32_t immediate);

}  // namespace v3d::qpu::vc4
