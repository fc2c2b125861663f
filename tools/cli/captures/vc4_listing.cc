#include "tools/cli/captures/vc4_listing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gpu/qpu/check/vc4_program_words.h"
#include "gpu/qpu/isa/vc4_access.h"
#include "tools/cli/captures/uniform_text.h"

namespace v3d::tools {
namespace {

namespace vc4 = qpu::vc4;

class Listing {
 public:
  Listing(Memory memory, const ListedProgram& program) : memory_(memory), program_(program) {
    for (const uint64_t word : vc4::program_words(memory, program.code)) words_.push_back(vc4::decode(word));
    for (uint32_t n = 0; n < words_.size(); ++n) jumps_ |= vc4::branch_target(n, words_[n]).has_value();
  }

  std::string text() {
    absl::StrAppendFormat(&text_, "%s program at 0x%08x", program_.stage, program_.code);
    if (!program_.uniforms.empty() && takes_uniforms())
      absl::StrAppendFormat(&text_, ", uniforms at 0x%08x", *program_.uniforms.begin());
    text_ += '\n';
    instructions();
    streams();
    return std::move(text_);
  }

 private:
  uint64_t word(uint32_t n) const { return memory_.load<uint64_t>(program_.code + 8 * n); }

  bool takes_uniforms() const {
    vc4::LookupWrites lookups;
    return std::any_of(words_.begin(), words_.end(), [&](const vc4::Instruction& i) {
      return lookups.step(i).uniforms != 0 || vc4::fetches(i, vc4::ReadPort::kUniform);
    });
  }

  void instructions() {
    vc4::LookupWrites lookups;
    for (uint32_t n = 0; n < words_.size(); ++n) {
      const vc4::Instruction& i = words_[n];
      std::vector<std::string> notes;
      if (const auto target = vc4::branch_target(n, i))
        notes.push_back(absl::StrFormat("to 0x%08x", program_.code + 8 * *target));
      if (const char* flaw = vc4::flaw(i)) notes.emplace_back(flaw);
      const uint32_t taken = lookups.step(i).uniforms + vc4::fetches(i, vc4::ReadPort::kUniform);
      for (uint32_t k = 0; k < taken; ++k) add_uniform(&notes);
      const std::string instruction = vc4::disassemble(word(n));
      absl::StrAppendFormat(&text_, "  0x%08x  %016x  ", program_.code + 8 * n, word(n));
      if (notes.empty())
        absl::StrAppend(&text_, instruction, "\n");
      else
        absl::StrAppendFormat(&text_, "%-84s  # %s\n", instruction, absl::StrJoin(notes, ", "));
    }
  }

  void add_uniform(std::vector<std::string>* notes) {
    if (program_.uniforms.empty()) return;
    if (jumps_)
      notes->emplace_back("uniform");  // whose place the program sets after a branch
    else
      notes->push_back(absl::StrFormat("uniform +0x%02x: %s", extent_,
                                       uniform_text(memory_, *program_.uniforms.begin() + extent_)));
    extent_ += 4;
  }

  void streams() {
    size_t shown = 0;
    for (const GpuAddr stream : program_.uniforms) {
      if (extent_ == 0 || (stream == *program_.uniforms.begin() && !jumps_)) continue;
      if (!append_stream(memory_, stream, extent_, program_.uniforms.size(), ++shown, &text_)) return;
    }
  }

  const Memory memory_;
  const ListedProgram& program_;
  std::vector<vc4::Instruction> words_;
  bool jumps_ = false;
  uint32_t extent_ = 0;  // bytes of a stream that are read, if nothing is read twice
  std::string text_;
};

}  // namespace

std::string vc4_program_listing(Memory memory, const ListedProgram& program) {
  return Listing(memory, program).text();
}

}  // namespace v3d::tools
