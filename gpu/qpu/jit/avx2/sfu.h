/// Operations of the special function unit have code of their own here (OperationEmitter).
#pragma once

#include "gpu/qpu/jit/avx2/emitter.h"

namespace v3d::qpu::jit::avx2 {

void exp2(Emitter& e, const Xbyak::Ymm& to, const Source& a, const Source& b);
void log2(Emitter& e, const Xbyak::Ymm& to, const Source& a, const Source& b);
void sine(Emitter& e, const Xbyak::Ymm& to, const Source& a, const Source& b);

}  // namespace v3d::qpu::jit::avx2
