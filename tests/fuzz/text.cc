/// Input: which parser, then its text: QPU assembly of 7.1, or of 4.2 and 2.1, V3DEMU_DEBUG,
/// V3DEMU_TRACE_QPU.
#include <string>
#include <string_view>

#include "gpu/base/log.h"
#include "gpu/qpu/isa/any_word.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/trace/trace_selection.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

/// What was assembled reads back: each word that decodes has a text that gives it again.
void assemble(chip::Generation generation, std::string_view text) {
  const qpu::Assembly program = qpu::assemble(generation, text);
  for (const qpu::AssemblyError& error : program.errors)
    if (error.line < 1 || error.column < 1 || qpu::to_string(error).empty()) std::abort();
  if (!program.errors.empty()) return;
  if (program.lines.size() != program.words.size()) std::abort();
  for (const uint64_t word : program.words) {
    if (!qpu::is_instruction(generation, word)) continue;  // ".word" may hold anything
    if (!qpu::is_canonical(generation, word)) continue;
    const qpu::Assembly again = qpu::assemble(generation, qpu::disassemble(generation, word));
    if (!again.errors.empty() || again.words.size() != 1 || again.words[0] != word) std::abort();
  }
}

}  // namespace

void text(Bytes bytes) {
  Input input(bytes);
  const auto which = input.take<uint8_t>() % 4;
  const std::string_view text(reinterpret_cast<const char*>(input.rest().data()), input.rest().size());
  switch (which) {
    case 0:
      return assemble(chip::Generation::k71, text);
    case 1:
      assemble(chip::Generation::k21, text);
      return assemble(chip::Generation::k42, text);
    case 2: {
      const auto request = parse_debug({text.data(), text.size()});
      if (request.ok() && !parse_debug(debug_names(request->mask)).ok() && request->mask != 0) std::abort();
      if (!request.ok() && request.status().message().empty()) std::abort();
      return;
    }
    default: {
      std::string error;
      if (!qpu::TraceSelection::parse(text, &error) && error.empty()) std::abort();
    }
  }
}

}  // namespace v3d::fuzz
