/// A BatchGenerator has the dispatcher's counters: they say which invocations the lanes of each batch are
/// (compute-and-timing.md 2.1).
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/csd/configuration.h"

namespace v3d::csd {

/// 16 lanes that start together on one QPU thread.
struct Batch {
  Lanes workgroup_xy;     ///< payload word 0: X in bits 15:0, Y in 31:16
  Lanes workgroup_z_lii;  ///< payload word 1: Z in bits 15:0, wg_in_mem and local invocation index above
  uint64_t number;        ///< in the dispatch
  LaneMask live;          ///< the other lanes pad the end of a supergroup or of the grid
};

struct SupergroupRange {
  uint64_t begin = 0, end = 0;
};

/// Hands out the batches of a dispatch in order, with constant memory.
class BatchGenerator {
 public:
  explicit BatchGenerator(const Configuration& configuration);
  /// Only the batches of some supergroups. @param configuration  is_regular()
  BatchGenerator(const Configuration& configuration, const SupergroupRange& range);

  bool done() const { return remaining_ == 0; }
  /// The next batch is the first of a supergroup of this many batches; 0 when it continues one.
  uint32_t opens_supergroup() const;
  /// @param slot  of the batch's supergroup, below Configuration::max_slots(). Not when done().
  void next(uint32_t slot, Batch* batch);

 private:
  void next_whole_lanes(uint32_t slot, Batch* batch);
  void next_lane_by_lane(uint32_t slot, Batch* batch);
  uint32_t word0() const;
  uint32_t word1(uint32_t slot) const;
  bool advance_workgroup();

  Configuration c_;
  uint64_t number_ = 0;  // of the next batch
  uint64_t remaining_;
  uint32_t id_[3] = {0, 0, 0};  // of the workgroup, from 0; Z runs past the grid
  uint32_t local_index_ = 0;    // invocation in the workgroup
  uint32_t wg_in_sg_ = 0;       // workgroup in the supergroup
  uint32_t batch_in_sg_ = 0;
};

}  // namespace v3d::csd
