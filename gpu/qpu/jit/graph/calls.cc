#include "gpu/qpu/jit/graph/calls.h"

#include <exception>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_alu.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_ports.h"

namespace v3d::qpu::jit {
namespace {

using graph::Op;
using vc4::Thread;

/// Nothing may be thrown through code that has no tables for it.
template <typename Fn>
const char* caught(Fn fn) noexcept {
  try {
    return fn();
  } catch (...) {
    vc4::t_thrown = std::current_exception();
    return vc4::kThrown;
  }
}

const char* read_port(Thread* t, const Lanes*, uint32_t, uint32_t immediate, Lanes* result) {
  return caught([&]() -> const char* {
    *result = vc4::read_port(*t, static_cast<vc4::ReadPort>(immediate & 0xff),
                             static_cast<vc4::Files>(immediate >> 8));
    return nullptr;
  });
}

const char* write_port(Thread* t, const Lanes* value, uint32_t exec, uint32_t immediate, Lanes*) {
  return caught([&] {
    return vc4::write_port(*t, static_cast<vc4::WritePort>(immediate), *value, static_cast<LaneMask>(exec));
  });
}

const char* load_tmu(Thread* t, const Lanes*, uint32_t, uint32_t immediate, Lanes* result) {
  return vc4::pop_tmu(*t, static_cast<int>(immediate), *result) ? nullptr : vc4::kEmptyQueue;
}

const char* load_color(Thread* t, const Lanes*, uint32_t, uint32_t, Lanes* result) {
  return caught([&]() -> const char* {
    if (!t->tlb) return vc4::kNoTileBuffer;
    *result = t->tlb->load_color(*t);
    return nullptr;
  });
}

template <vc4::Op op>
void exact(Lanes* a, const Lanes* b) {
  static const vc4::AluFn kFunction = vc4::find_alu(op);
  *a = kFunction(*a, *b);
}

}  // namespace

CallFn find_call(Op op) {
  switch (op) {
    case Op::kReadPort:
      return read_port;
    case Op::kWritePort:
      return write_port;
    case Op::kLoadTmu:
      return load_tmu;
    default:
      return load_color;
  }
}

ExactFn find_exact(Op op) { return op == Op::kSum ? exact<vc4::Op::kFadd> : exact<vc4::Op::kFmul>; }

}  // namespace v3d::qpu::jit
