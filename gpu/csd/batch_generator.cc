#include "gpu/csd/batch_generator.h"

#include <algorithm>

namespace v3d::csd {

BatchGenerator::BatchGenerator(const Configuration& configuration)
    : c_(configuration), remaining_(configuration.batches) {}

BatchGenerator::BatchGenerator(const Configuration& configuration, const SupergroupRange& range)
    : c_(configuration) {
  const uint64_t first = range.begin * c_.batches_per_sg;
  number_ = first;
  remaining_ = std::min(range.end * c_.batches_per_sg, c_.batches) - std::min(first, c_.batches);
  uint64_t workgroup = range.begin * c_.wgs_per_sg;
  for (size_t axis = 0; axis < 2; ++axis) {
    id_[axis] = static_cast<uint32_t>(workgroup % c_.wg_count[axis]);
    workgroup /= c_.wg_count[axis];
  }
  id_[2] = static_cast<uint32_t>(workgroup);
}

uint32_t BatchGenerator::opens_supergroup() const {
  if (batch_in_sg_ != 0) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(c_.batches_per_sg, remaining_));
}

uint32_t BatchGenerator::word0() const {
  return ((id_[1] + c_.wg_offset[1]) << 16) | ((id_[0] + c_.wg_offset[0]) & 0xffff);
}

uint32_t BatchGenerator::word1(uint32_t slot) const {
  const uint32_t wg_in_mem = slot * c_.wgs_per_sg + wg_in_sg_;
  const uint32_t upper = (local_index_ << (16 - c_.local_index_bits())) | wg_in_mem;
  return (upper << 16) | ((id_[2] + c_.wg_offset[2]) & 0xffff);
}

/// @return true when the workgroup just left was the last of its supergroup or of the grid
bool BatchGenerator::advance_workgroup() {
  const bool last =
      id_[0] == c_.wg_count[0] - 1 && id_[1] == c_.wg_count[1] - 1 && id_[2] == c_.wg_count[2] - 1;
  if (++id_[0] == c_.wg_count[0]) {
    id_[0] = 0;
    if (++id_[1] == c_.wg_count[1]) {
      id_[1] = 0;
      ++id_[2];
    }
  }
  return ++wg_in_sg_ == c_.wgs_per_sg || last;
}

/// All lanes belong to one workgroup.
void BatchGenerator::next_whole_lanes(uint32_t slot, Batch* batch) {
  batch->workgroup_xy = splat(word0());
  batch->workgroup_z_lii = splat(word1(slot)) + (kLaneIndex << (32 - c_.local_index_bits()));
  batch->live = kAllLanes;
  local_index_ += kLanes;
  if (local_index_ != c_.wg_size) return;
  local_index_ = 0;
  advance_workgroup();
}

void BatchGenerator::next_lane_by_lane(uint32_t slot, Batch* batch) {
  alignas(64) uint32_t first[kLanes], second[kLanes];
  uint32_t live = 0;
  bool closed = false;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (closed) {  // what dead lanes hold is unknown; no program may depend on it
      first[lane] = first[lane - 1];
      second[lane] = second[lane - 1];
      continue;
    }
    live |= 1u << lane;
    first[lane] = word0();
    second[lane] = word1(slot);
    if (++local_index_ == c_.wg_size) {
      local_index_ = 0;
      closed = advance_workgroup();
    }
  }
  batch->live = static_cast<LaneMask>(live);
  for (int lane = 0; lane < kLanes; ++lane) {
    batch->workgroup_xy[lane] = first[lane];
    batch->workgroup_z_lii[lane] = second[lane];
  }
}

void BatchGenerator::next(uint32_t slot, Batch* batch) {
  batch->number = number_++;
  if (batch_in_sg_ == 0) wg_in_sg_ = 0;
  if (c_.wg_size % kLanes == 0)
    next_whole_lanes(slot, batch);
  else
    next_lane_by_lane(slot, batch);
  if (wg_in_sg_ == c_.wgs_per_sg) wg_in_sg_ = 0;  // more batches than the workgroups of a supergroup fill
  if (++batch_in_sg_ == c_.batches_per_sg) batch_in_sg_ = 0;
  --remaining_;
}

}  // namespace v3d::csd
