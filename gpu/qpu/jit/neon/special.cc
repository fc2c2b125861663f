/// @file The special functions of gpu/qpu/run/sfu.h: on doubles, four lanes at a time.

#include <bit>
#include <cstdint>

#include "gpu/qpu/jit/code/sfu_steps.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {

/// Who emits the steps: each for the two registers of four doubles.
class Emitter::Doubles {
 public:
  static constexpr int kRegisters = 2;
  struct Value {
    Vector parts[kRegisters];
  };
  /// A double in all lanes of a register.
  struct Constant {
    Vector v;
  };

  explicit Doubles(Emitter& emitter) : e_(emitter) {}

  Constant doubles(double value) {
    const Vector v = Emitter::scratch(0);
    load(v, value);
    return {v.V2D()};
  }
  void fill(const Value& to, double value) {
    for (const Vector& v : to.parts) load(v, value);
  }

#define V3D_STEP(name, instruction)                                                                 \
  void name(const Value& to, const Value& a, const Value& b) {                                      \
    for (int n = 0; n < kRegisters; ++n) e_.masm_.instruction(to.parts[n], a.parts[n], b.parts[n]); \
  }                                                                                                 \
  void name(const Value& to, const Value& a, const Constant& b) {                                   \
    for (int n = 0; n < kRegisters; ++n) e_.masm_.instruction(to.parts[n], a.parts[n], b.v);        \
  }
  V3D_STEP(vaddpd, Fadd)
  V3D_STEP(vsubpd, Fsub)
  V3D_STEP(vmulpd, Fmul)
  V3D_STEP(vdivpd, Fdiv)
  V3D_STEP(vpaddq, Add)
  V3D_STEP(vpsubq, Sub)
#undef V3D_STEP
  void vpsllq(const Value& to, const Value& a, int bits) {
    for (int n = 0; n < kRegisters; ++n) e_.masm_.Shl(to.parts[n], a.parts[n], bits);
  }
  void shift_right_signed(const Value& v, int bits) {
    for (const Vector& part : v.parts) e_.masm_.Sshr(part, part, bits);
  }
  void reciprocal_root(const Value& v) {
    const Constant one = doubles(1.0);
    for (const Vector& part : v.parts) {
      e_.masm_.Fsqrt(part, part);
      e_.masm_.Fdiv(part, one.v, part);
    }
  }

 private:
  void load(const Vector& to, double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    e_.masm_.Ldr(to.Q(), operand_of(e_.in_pool(e_.pooled(bits, bits))));
  }

  Emitter& e_;
};

void Emitter::special(const Node& node) {
  set_mode(Mode::kHost);
  constexpr int kValues = 6, kUnits = kValues * Doubles::kRegisters / kParts;
  const int argument = in_register(node.operands[0]);
  Doubles::Value t[kValues];
  for (int n = 0; n < kUnits; ++n) {
    const int unit = new_unit();  // free when the next node comes
    locked_ |= 1u << unit;
    for (int p = 0; p < kParts; ++p) t[2 * n + p / 2].parts[p % 2] = part(unit, p).V2D();
  }
  const int to = result(node);
  Doubles steps(*this);
  for (int p = 0; p < kParts; ++p) {
    const Vector from = part(argument, p), d = part(to, p);
    masm_.Fcvtl(t[0].parts[0], from.V2S());
    masm_.Fcvtl2(t[0].parts[1], from);
    if (node.op == Op::kReciprocalRoot)
      steps.reciprocal_root(t[0]);
    else if (node.op == Op::kExp2)
      sfu_steps::exp2(steps, t[0], t[1], t[2], t[3], t[4]);
    else
      sfu_steps::log2(steps, t[0], t[1], t[2], t[3], t[4], t[5], [&] { steps.shift_right_signed(t[1], 52); });
    masm_.Fcvtn(d.V2S(), t[0].parts[0]);
    masm_.Fcvtn2(d, t[0].parts[1]);
  }
}

}  // namespace v3d::qpu::jit::neon
