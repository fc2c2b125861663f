#include "tools/cli/captures/program_listing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gpu/qpu/flow/flow.h"
#include "tools/cli/captures/uniform_text.h"
#include "tools/cli/captures/vc4_listing.h"

namespace v3d::tools {
namespace {

namespace flow = qpu::flow;

constexpr int32_t kMaxWords = 16384;  // of a program that the walk does not know to its end
constexpr int32_t kShownGap = 16;     // words between two that are executed

class Listing {
 public:
  Listing(Memory memory, chip::Generation generation, const ListedProgram& program)
      : memory_(memory), generation_(generation), program_(program), flow_(analyse()) {
    find_reads();
  }

  std::string text() {
    absl::StrAppendFormat(&text_, "%s program at 0x%08x", program_.stage, program_.code);
    if (extent_ > 0 && !program_.uniforms.empty())
      absl::StrAppendFormat(&text_, ", uniforms at 0x%08x", *program_.uniforms.begin());
    text_ += '\n';
    instructions();
    streams();
    return std::move(text_);
  }

 private:
  struct Read {
    std::set<int32_t> offsets;  // in the stream
    bool fixed = true;          // on all ways to here
  };

  flow::Flow analyse() const {
    return flow::analyse({generation_, program_.final_section, program_.code},
                         [this](int32_t index) { return std::optional(word(index)); });
  }

  GpuAddr address(int32_t index) const { return program_.code + static_cast<uint32_t>(index) * 8; }
  uint64_t word(int32_t index) const { return memory_.load<uint64_t>(address(index)); }

  void find_reads() {
    for (const flow::UniformRead& read : flow_.uniforms) {
      if (read.stream != qpu::Stream::kMain) continue;
      Read& r = reads_[flow_.nodes[read.node].index];
      if (read.offset == flow::kDynamic) {
        r.fixed = all_fixed_ = false;
      } else {
        r.offsets.insert(read.offset);
        extent_ = std::max(extent_, read.offset + 4);
      }
    }
    if (!all_fixed_) extent_ = std::max(extent_, static_cast<int32_t>(flow_.uniforms.size()) * 4);
  }

  // The words that the walk came by, or lie between, and what a program may have after a gap in it.
  std::vector<int32_t> indices() const {
    std::set<int32_t> reached;
    for (const flow::Node& node : flow_.nodes) reached.insert(node.index);
    const int32_t behind = flow_.complete ? 0 : linear_end();
    for (int32_t n = 0; n < behind; ++n) reached.insert(n);
    std::vector<int32_t> all;
    for (const int32_t index : reached) {
      if (!all.empty() && index - all.back() <= kShownGap)
        for (int32_t between = all.back() + 1; between < index; ++between) all.push_back(between);
      all.push_back(index);
    }
    return all;
  }

  // After the thread end of the last section that lies beyond the entry, or the first word that is no
  // instruction.
  int32_t linear_end() const {
    bool last = program_.final_section, previous_thrsw = false;
    for (int32_t n = 0; n < kMaxWords; ++n) {
      qpu::Instruction i;
      if (!qpu::decode(generation_, word(n), i)) return n + 1;
      const bool thrsw = !i.is_branch && (i.signals & qpu::kThrsw);
      if (thrsw && !previous_thrsw && last) return n + 3;
      last = last || (thrsw && previous_thrsw);
      previous_thrsw = thrsw;
    }
    return kMaxWords;
  }

  void instructions() {
    std::optional<int32_t> previous;
    for (const int32_t index : indices()) {
      if (previous && index != *previous + 1) text_ += "  ...\n";
      previous = index;
      qpu::Instruction i;
      const bool valid = qpu::decode(generation_, word(index), i);
      const std::string instruction = valid ? qpu::disassemble(generation_, i) : "invalid instruction";
      absl::StrAppendFormat(&text_, "  0x%08x  %016x  ", address(index), word(index));
      const std::string note = absl::StrJoin(notes(index, valid && i.is_branch ? &i.branch : nullptr), ", ");
      if (note.empty())
        absl::StrAppend(&text_, instruction, "\n");
      else
        absl::StrAppendFormat(&text_, "%-84s  # %s\n", instruction, note);
    }
  }

  std::vector<std::string> notes(int32_t index, const qpu::Branch* branch) const {
    std::vector<std::string> notes;
    if (branch) {
      if (const auto target = target_of(index, *branch))
        notes.push_back(absl::StrFormat("to 0x%08x", *target));
    }
    const auto read = reads_.find(index);
    if (read == reads_.end() || program_.uniforms.empty()) return notes;
    const GpuAddr stream = *program_.uniforms.begin();
    if (!read->second.fixed || !follows_jumps(stream)) {
      notes.emplace_back("uniform");
      return notes;
    }
    for (const int32_t offset : read->second.offsets)
      notes.push_back(absl::StrFormat("uniform +0x%02x: %s", offset,
                                      uniform_text(memory_, stream + static_cast<uint32_t>(offset))));
    return notes;
  }

  std::optional<GpuAddr> target_of(int32_t index, const qpu::Branch& b) const {
    constexpr uint32_t kBehindSlots = 4 * 8;
    if (b.target == qpu::BranchTarget::kRelative) return address(index) + kBehindSlots + b.offset;
    if (b.target == qpu::BranchTarget::kAbsolute) return b.offset;
    return {};
  }

  // Whether the branches that move the stream move it as the walk took them to.
  bool follows_jumps(GpuAddr stream) const {
    return std::all_of(
        flow_.uniform_jumps.begin(), flow_.uniform_jumps.end(), [&](const flow::UniformJump& jump) {
          return memory_.load<int32_t>(stream + static_cast<uint32_t>(jump.offset)) == jump.distance;
        });
  }

  void streams() {
    if (extent_ == 0) return;
    size_t shown = 0;
    for (const GpuAddr stream : program_.uniforms) {
      if (stream == *program_.uniforms.begin() && all_fixed_ && follows_jumps(stream)) continue;
      if (!append_stream(memory_, stream, static_cast<uint32_t>(extent_), program_.uniforms.size(), ++shown,
                         &text_))
        return;
    }
  }

  const Memory memory_;
  const chip::Generation generation_;
  const ListedProgram& program_;
  const flow::Flow flow_;
  std::map<int32_t, Read> reads_;  // by index
  bool all_fixed_ = true;
  int32_t extent_ = 0;  // bytes of a stream that are read
  std::string text_;
};

}  // namespace

std::string program_listing(Memory memory, chip::Generation generation, const ListedProgram& program) {
  return qpu::isa(generation).has_words ? Listing(memory, generation, program).text()
                                        : vc4_program_listing(memory, program);
}

}  // namespace v3d::tools
