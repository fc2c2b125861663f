/// Transform feedback appends words of shaded vertices to buffers in memory, and has the primitive counters
/// (cle-and-tiles.md 3.6).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/memory.h"
#include "gpu/base/work_meter.h"
#include "gpu/draw/bin_result.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::ptb {

class TransformFeedback {
 public:
  /// Consecutive words of a vertex that go to one buffer.
  struct Spec {
    uint8_t first_word, num_words, buffer;
  };

  explicit TransformFeedback(const JobContext& job) : memory_(job.memory), meter_(&job) {}

  /// Sets a buffer (0..3); writing starts at its beginning.
  void set_buffer(uint32_t number, GpuAddr address, uint32_t words);
  void set_specs(std::vector<Spec> specs) { specs_ = std::move(specs); }
  void disable() { specs_.clear(); }
  bool enabled() const { return !specs_.empty(); }

  /// Counts assembled primitives of `vertices` vertices each and, if enabled, writes those that fit whole.
  void capture(const std::vector<draw::Primitive>& primitives, uint32_t vertices,
               const vpm::ShadedVertices& shaded);

  /// Counts assembled primitives that nobody captures.
  void count(size_t primitives) { counters_[kGenerated] += static_cast<uint32_t>(primitives); }

  void reset_counters() { counters_ = {}; }
  /// Stores the seven counters at an address.
  void store_counters(GpuAddr address) const;
  /// Four pairs in memory: remaining space of a buffer, and where its next word goes (Mesa v3d_packet.xml,
  /// "store buffer state"). Space counts words, as in set_buffer (assumed).
  void store_buffers(GpuAddr address) const;
  void load_buffers(GpuAddr address);

  /// Bytes written since the last call.
  uint64_t take_written_bytes();

 private:
  struct Buffer {
    GpuAddr address = 0;
    uint32_t words = 0;  // size
    uint32_t next = 0;   // word written next; <= words
  };
  enum Counter { kWords0 = 0, kGenerated = 4, kWritten = 5, kOverflowed = 6, kNumCounters = 7 };

  bool fits(uint32_t vertices) const;
  void write(const draw::Primitive& primitive, uint32_t vertices, const vpm::ShadedVertices& shaded);

  Memory memory_;
  WorkMeter meter_;
  std::array<Buffer, 4> buffers_;
  std::vector<Spec> specs_;
  std::array<uint32_t, kNumCounters> counters_{};
  uint64_t written_bytes_ = 0;
};

}  // namespace v3d::ptb
