#include "gpu/qpu/run/place_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/isa/any_word.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu {

std::string pc_text(chip::Generation generation, GpuAddr pc, std::optional<uint64_t> word) {
  std::string text = absl::StrFormat("pc 0x%08x", pc);
  if (!word) return text;
  if (is_instruction(generation, *word)) {
    std::string words = disassemble(generation, *word);  // in columns
    absl::RemoveExtraAsciiWhitespace(&words);
    absl::StrAppendFormat(&text, " (%s)", words);
  } else {
    absl::StrAppendFormat(&text, ", word 0x%016x", *word);
  }
  return text;
}

std::string pc_text(const Program& program, const Thread& t) {
  std::optional<uint64_t> word;
  if (program.knows_page(t.pc)) word = program.word(t.memory, t.pc);
  return pc_text(program.generation(), t.pc, word);
}

std::string hang_text(const Program& program, const Thread& t) {
  return absl::StrCat(t.hang, " at ", pc_text(program, t));
}

}  // namespace v3d::qpu
