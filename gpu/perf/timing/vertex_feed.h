/// The VertexFeed is the way of vertices to primitives: the VCD fetches them, they are shaded, and the VPM
/// keeps them until they are used.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/memory_system.h"
#include "gpu/perf/timing/qpu_array.h"

namespace v3d::timing {

class VertexFeed {
 public:
  VertexFeed(const Parameters& parameters, MemorySystem& memory, QpuArray& qpus, Prediction::Units* units)
      : p_(parameters), memory_(memory), qpus_(qpus), units_(*units) {}

  /// Batches pass in the order in which they are added, and are called by their numbers in it.
  void add(const Batch& batch) { batches_.push_back(&batch); }
  size_t size() const { return batches_.size(); }

  /// Starts batches for which there is room in the QPUs and in the VPM.
  /// @param used    so many of the first ones left the VPM
  /// @param needed  so many of the first ones are waited for
  void launch(uint64_t clock, size_t used, size_t needed);
  /// A batch is shaded.
  void end(size_t number, uint64_t clock);

  /// The first ones of which all are shaded.
  size_t shaded() const { return ready_.size(); }
  /// When the first `count` ones were. @param count  up to shaded()
  uint64_t ready(size_t count) const { return count == 0 ? 0 : ready_[count - 1]; }

  /// Batches and fragments have tags of QpuArray that tell one from the other.
  static size_t tag(size_t number) { return 2 * number + 1; }
  static bool is_tag(size_t tag) { return tag & 1; }
  static size_t number_of(size_t tag) { return tag / 2; }

 private:
  uint64_t fetch(const Batch& batch, uint64_t clock);

  const Parameters& p_;
  MemorySystem& memory_;
  QpuArray& qpus_;
  Prediction::Units& units_;
  std::vector<const Batch*> batches_;
  std::vector<uint64_t> ended_;  // of those that started; 0: not yet
  std::vector<uint64_t> ready_;
  uint64_t free_ = 0;  // the VCD
  uint64_t full_ = 0;  // since when the next batch finds no room in the VPM; 0: it does
};

}  // namespace v3d::timing
