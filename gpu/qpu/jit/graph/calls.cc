#include "gpu/qpu/jit/graph/calls.h"

#include <exception>

#include "gpu/base/qpu_place.h"
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

/// Its other parameters are in the thread.
const char* look_up(Thread* t, const Lanes* value, uint32_t, uint32_t immediate, Lanes* result) {
  const int unit = immediate & 1;
  const uint32_t written = immediate >> 1 & 7;
  const char* const error = caught([&]() -> const char* {
    if (written == 0) {
      *result = vc4::read_words(*t, *value);
      return nullptr;
    }
    if (!t->tmu) return vc4::kNoTmu;
    vc4::Lookup& lookup = t->pending.tmu[unit].lookup;
    lookup.has_t = written & 1;
    lookup.has_r = written & 2;
    lookup.has_b = written & 4;
    lookup.parameters = static_cast<uint8_t>((immediate >> 4 & 15) + 1);
    *result = vc4::look_up(*t, unit, *value);
    return nullptr;
  });
  t->pending.met_no_memory = t_fault_cost;
  return error;
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
    case Op::kLookup:
      return look_up;
    default:
      return load_color;
  }
}

ExactFn find_exact(Op op) {
  switch (op) {
    case Op::kSum:
      return exact<vc4::Op::kFadd>;
    case Op::kProduct:
      return exact<vc4::Op::kFmul>;
    default:
      return exact<vc4::Op::kFtoi>;
  }
}

}  // namespace v3d::qpu::jit
