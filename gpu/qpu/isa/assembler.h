/// The assembler translates QPU programs from text: what disassemble() prints, and what makes it pleasant to
/// write by hand.
///
// clang-format off
///     loop:                                  # a label; comments start with # or //
///       fadd rf1, rf2, rf3 ; fmul rf4, rf5.l, 0.5 ; ldtmu.rf6
///       sub.pushz rf7, rf7, 1                # the mul ALU does nothing
///       b.anyna loop                         # or a byte distance, as Mesa prints it; three delay slots follow
///       .word 0x38003186bb03f000             # or the literal alone
///       .uniform 0x20000, -1, 2.5            # appends to the uniform stream
// clang-format on
///
/// The first operation of a line is the add ALU's and the second the mul ALU's; a single one goes to the mul
/// ALU only if the add ALU lacks it. Signals may stand in any order. "bl" and "bul" set the link register,
/// "bu" without a second target moves the uniform stream by the next uniform ("r:unif"), "end" stands for the
/// eight words that end a program from any section.
///
/// Words are those of encode(), the canonical ones: fields that an instruction does not use are 0. So text of
/// disassemble(word) gives `word` again if it is canonical, and one with the same text and meaning otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/chip/generation.h"

namespace v3d::qpu {

struct AssemblyError {
  int line, column;  ///< from 1
  std::string message;
};
/// "line:column: message"
std::string to_string(const AssemblyError& error);

struct Assembly {
  std::vector<uint64_t> words;
  std::vector<int> lines;  ///< per word: the line that it comes from
  std::vector<uint32_t> uniforms;
  std::vector<AssemblyError> errors;  ///< in the order of the text; empty: words and uniforms are complete
};

Assembly assemble(chip::Generation generation, std::string_view text);

}  // namespace v3d::qpu
