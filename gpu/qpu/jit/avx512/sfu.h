/// Operations of the special function unit have code of their own here (OperationEmitter). They belong to the
/// add ALU: beside what every operation may use, they use kResultAdd, kResultMul and the registers of
/// unpacked operands.
#pragma once

#include "gpu/qpu/jit/avx512/emitter.h"

namespace v3d::qpu::jit::avx512 {

void exp2(Emitter& e, const Xbyak::Zmm& to, const Source& a, const Source& b);
void log2(Emitter& e, const Xbyak::Zmm& to, const Source& a, const Source& b);
void sine(Emitter& e, const Xbyak::Zmm& to, const Source& a, const Source& b);

}  // namespace v3d::qpu::jit::avx512
