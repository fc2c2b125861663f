/// The assembler of V3D 2.1 makes programs of text: of what disassemble() prints, and of what that cannot
/// say.
///
// clang-format off
///     loop:                                     # a label; comments start with # or //
///       fadd ra1, r0, r1 ; fmul rb2, ra3, 0.5   # a small immediate sets the signal by itself
///       sub.sf nop, r2, 1 ; mov r1, r0+15 ; load_tmu0
///       branch.any_zc loop                      # or a byte distance, as Mesa prints it; three delay slots follow
///       branch ra4                              # bra: absolute; "-> ra7" after it: where the link goes
///       load_imm ra0, nop, 0x3f800000           # load_imm_s, load_imm_u: two bits per element
///       sacq 3                                  # and srel: semaphores
///       mov ra0.8a, r1 ; nop ; pm               # or "nop ; mov ra0.8a, r1 ; pm": conversion of the mul ALU
///       end                                     # three words
///       .word 0x100009e7009e7000
///       .uniform 0x20000, -1, 2.5               # appends to the uniform stream
// clang-format on
///
/// Signals stand in front of the operations or after them. r5 and ms_flags as destinations are those of
/// column A; r5rep and rev_flag those of column B. Where a byte goes to file A by the mul ALU, "pm" tells the
/// two packs apart, whose text is the same. Fields that an instruction does not use are as Mesa sets them.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/qpu/isa/assembler.h"

namespace v3d::qpu::vc4 {

Assembly assemble(std::string_view text);

/// Whether the word of its text is the word itself. False for words that are no instruction, and for those of
/// which the text does not say everything.
bool is_canonical(uint64_t word);

}  // namespace v3d::qpu::vc4
