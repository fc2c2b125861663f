/// A PathRecorder keeps what one batch does as events: the part of watching it that chips have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/perf/record/recorder.h"

namespace v3d::timing {

class Recorder::PathRecorder {
 public:
  explicit PathRecorder(Recorder& recorder) : r_(recorder) {}

 protected:
  using Kind = Event::Kind;
  /// Where the batch is.
  struct At {
    size_t number = 0;
    uint32_t program = 0;
    GpuAddr code = 0, stream = 0;   // where instructions and uniforms start
    uint32_t first = 0, count = 0;  // instructions that are no event yet
    uint64_t uniform_words = 0;
    uint64_t issued = 0;
    uint64_t bytes = 0;   // that are not yet spent
    uint32_t tidx = 0;    // of the thread
    bool varies = false;  // other batches with the same uniforms may go another way
  };

  void begin(size_t number, GpuAddr uniforms) {
    at_ = {};
    at_.number = number;
    at_.program = r_.trace_.batches[number].program;
    at_.code = r_.trace_.programs[at_.program].code;
    at_.stream = uniforms;
    clock_.begin(r_.latencies_ ? &*r_.latencies_ : nullptr);
  }
  /// Of an instruction in the program. Where it has more than are recorded, that has failed.
  uint32_t number_of(GpuAddr pc) {
    const uint32_t number = (pc - at_.code) / 8;
    if (number >= kMaxInstructions)
      r_.fail(absl::StrFormat("code at %#x is not among %d instructions from its start at %#x", pc,
                              kMaxInstructions, at_.code));
    return number;
  }
  /// An instruction, by its number in the program.
  void issue(uint32_t number) {
    if (at_.count == 0 || number != at_.first + at_.count || at_.count == Event::kMaxCount) {
      flush();
      at_.first = number;
    }
    ++at_.count;
  }
  void flush() {
    if (at_.count == 0) return;
    path_.push_back(Event::issue(at_.first, at_.count));
    clock_.issue(at_.count);
    at_.issued += std::exchange(at_.count, 0);
    spend(sizeof(Event));
  }
  void add(Kind kind, uint32_t value = 0) {
    flush();
    path_.emplace_back(kind, value);
    clock_.event(kind, at_.tidx, r_.shape_, lines_of_lookup_);
    spend(sizeof(Event));
  }
  void add_line(uint32_t line) {
    lines_.push_back(line);
    spend(sizeof(uint32_t));
  }
  /// r_.shape_, with lines_of_lookup_.
  void add_lookup() {
    Shape& shape = r_.shape_;
    at_.varies = true;
    if (shape.num_lines > 1 && r_.has_all_shapes() && !r_.shapes_.contains(shape)) {
      shape.lines.clear();
      shape.lines_follow = true;
    }
    add(Kind::kLookup, r_.shape_number(shape));
    const size_t kept = shape.lines_follow ? lines_of_lookup_.size() : std::min<size_t>(shape.num_lines, 1);
    lines_.insert(lines_.end(), lines_of_lookup_.begin(),
                  lines_of_lookup_.begin() + static_cast<ptrdiff_t>(kept));
    spend(kept * sizeof(uint32_t));
  }
  void end() {
    Batch& batch = r_.trace_.batches[at_.number];
    batch.path = r_.path_number(path_);
    batch.lines.assign(lines_.begin(), lines_.end());
    path_.clear();
    lines_.clear();
    r_.trace_.uniform_words += at_.uniform_words;
    r_.spend(std::exchange(at_.bytes, 0));
    if (const auto known = r_.known_.find(key_of(at_.program, at_.stream)); known != r_.known_.end()) {
      Known& k = known->second;
      k = {.is_set = true,
           .by_all = !at_.varies,
           .path = batch.path,
           .lines = batch.lines,
           .uniform_words = at_.uniform_words};
    }
    r_.watched_.fetch_sub(1, std::memory_order_release);
  }

  Recorder& r_;
  At at_;
  BatchClock clock_;
  std::vector<uint32_t> lines_of_lookup_;

 private:
  /// In lumps, since workers count together.
  void spend(uint64_t bytes) {
    constexpr uint64_t kLump = 4096;
    at_.bytes += bytes;
    if (at_.bytes >= kLump) r_.spend(std::exchange(at_.bytes, 0));
  }

  static constexpr uint32_t kMaxInstructions = 1u << 16;

  std::vector<Event> path_;
  std::vector<uint32_t> lines_;
};

}  // namespace v3d::timing
