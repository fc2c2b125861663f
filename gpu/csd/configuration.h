/// A Configuration is CFG0..CFG6 of a compute job as values (compute-and-timing.md 1).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/memory.h"

namespace v3d::chip {
struct Profile;
}

namespace v3d::csd {

struct Configuration {
  std::array<uint32_t, 3> wg_count;   ///< X, Y, Z, 1..65536 each
  std::array<uint32_t, 3> wg_offset;  ///< id of the first workgroup, 0..65535 each; Mesa leaves 0
  uint32_t wg_size;                   ///< invocations, 1..256
  uint32_t wgs_per_sg;                ///< 1..16
  uint32_t batches_per_sg;            ///< 1..256; need not agree with wg_size * wgs_per_sg
  uint64_t batches;                   ///< 0..2^32; ends the dispatch, whatever the grid says
  GpuAddr code, uniforms;
  bool four_threads;    ///< threads per QPU: four, else two
  bool single_segment;  ///< the program starts in its final thread section

  /// Upper bits of payload word 1 that hold the local invocation index: 6, 7 or 8. Mesa nir_to_vir.c computes
  /// the same from the workgroup size; the rest of the upper half is wg_in_mem.
  uint32_t local_index_bits() const { return wg_size <= 64 ? 6 : wg_size <= 128 ? 7 : 8; }
  /// Supergroups that wg_in_mem can tell apart, 16..1024.
  uint32_t max_slots() const { return (1u << (16 - local_index_bits())) / wgs_per_sg; }
  uint64_t supergroups() const { return (batches + batches_per_sg - 1) / batches_per_sg; }
  /// Counts agree as those of drivers do (compute-and-timing.md 1.1): supergroup n begins with workgroup
  /// n * wgs_per_sg, and workgroups share a supergroup only if they do not fill batches alone. What a barrier
  /// then holds together is one workgroup, or some that know nothing of each other.
  bool is_regular() const;
};

/// Any register values give a valid configuration.
Configuration decode(const std::array<uint32_t, 7>& cfg, const chip::Profile& profile);

}  // namespace v3d::csd
