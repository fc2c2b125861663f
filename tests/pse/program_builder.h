/// These functions build fragment programs for tests.
#pragma once

#include <array>
#include <bit>
#include <span>

#include "gpu/tmu/lookup/unit.h"
#include "tests/vpm/program_writer.h"

namespace v3d::pse {

/// Assembles a fragment program for 7.1 out of a few steps.
class ProgramBuilder : public ProgramWriter<ProgramBuilder> {
 public:
  ProgramBuilder& multiply(int to, qpu::Operand a, qpu::Operand b) {
    qpu::Instruction i;
    i.mul.op = qpu::Op::kFmul;
    set_destination(i.mul, to);
    i.mul.a = a;
    i.mul.b = b;
    return emit(i);
  }
  /// to := vary, and C in rf0 from the next instruction but one.
  ProgramBuilder& load_varying(uint8_t to) {
    qpu::Instruction i;
    i.signals = qpu::kLdvary;
    i.signal_waddr = to;
    return emit(i);
  }
  /// to := vary * W + C; W in a register (3, or 1 for the centroid), or -1 for none.
  ProgramBuilder& varying(uint8_t to, int w = 3) {
    load_varying(60);
    w >= 0 ? multiply(60, rf(60), rf(static_cast<uint8_t>(w))) : nop();
    return add(qpu::Op::kFadd, to, rf(60), rf(0));
  }
  /// to := C
  ProgramBuilder& flat(uint8_t to) { return load_varying(60).nop().add(qpu::Op::kOr, to, rf(0), rf(0)); }
  /// to := vary
  ProgramBuilder& raw_varying(uint8_t to) {
    return load_varying(60).nop().add(qpu::Op::kOr, to, rf(60), rf(60));
  }
  /// What a lookup may have beside S and T: registers, or -1.
  struct LookUpWith {
    int r = -1, layer = -1, bias = -1, reference = -1;
    bool is_cube = false;      ///< S, T and R are a direction
    bool tells_level = false;  ///< the bias is the level
    uint32_t p2 = tmu::kDefaultP2;
  };
  /// Looks a 2D texture up. P0 and P1 come as uniforms; what returns goes to registers from `to` on.
  ProgramBuilder& look_up(uint8_t s, uint8_t t, uint32_t p0, uint32_t p1, uint8_t to,
                          qpu::Cond cond = qpu::Cond::kNone) {
    return look_up(s, t, p0, p1, to, cond, {});
  }
  ProgramBuilder& look_up(uint8_t s, uint8_t t, uint32_t p0, uint32_t p1, uint8_t to, qpu::Cond cond,
                          const LookUpWith& with) {
    const std::array<uint32_t, 3> configuration = {p0, p1, with.p2};
    for (const uint32_t word : std::span(configuration).first(with.p2 == tmu::kDefaultP2 ? 2 : 3)) {
      uniforms_.push_back(word);
      nop(qpu::kWrtmuc);
    }
    move_to(kWaddrTmut, t);
    if (with.r >= 0) move_to(kWaddrTmur, static_cast<uint8_t>(with.r));
    if (with.bias >= 0) move_to(kWaddrTmub, static_cast<uint8_t>(with.bias));
    if (with.reference >= 0) move_to(kWaddrTmudref, static_cast<uint8_t>(with.reference));
    if (with.layer >= 0) move_to(kWaddrTmui, static_cast<uint8_t>(with.layer));
    move_to(with.is_cube ? kWaddrTmuscm : with.tells_level ? kWaddrTmuslod : kWaddrTmus, s, cond);
    const int words = std::popcount(p0 & (p1 & 1 ? 15u : 3u));
    for (int n = 0; n < words; ++n) {
      qpu::Instruction i;
      i.signals = qpu::kLdtmu;
      i.signal_waddr = static_cast<uint8_t>(to + n);
      emit(i);
    }
    return *this;
  }
  /// Four registers to render target 0.
  ProgramBuilder& store(uint8_t first) {
    uniforms_.push_back(0xffffff3f);
    move_to(qpu::kWaddrTlbu, first);
    for (uint8_t i = 1; i < 4; ++i) move_to(qpu::kWaddrTlb, static_cast<uint8_t>(first + i));
    return *this;
  }
  /// Four registers := what render target 0 holds.
  ProgramBuilder& load(uint8_t first) {
    uniforms_.push_back(0xffffff3f);
    for (uint8_t n = 0; n < 4; ++n) {
      qpu::Instruction i;
      i.signals = n == 0 ? qpu::kLdtlbu : qpu::kLdtlb;
      i.signal_waddr = static_cast<uint8_t>(first + n);
      emit(i);
    }
    return *this;
  }
  /// Four registers to a render target, converted to f16.
  ProgramBuilder& store_half(uint8_t first, uint32_t target = 0) {
    if (target != 0) uniforms_.push_back(0xffffffff - (target << 3));
    for (int i = 0; i < 2; ++i) {
      qpu::Instruction pack;
      pack.add.op = qpu::Op::kVfpack;
      pack.add.waddr = target != 0 && i == 0 ? qpu::kWaddrTlbu : qpu::kWaddrTlb;
      pack.add.a = rf(static_cast<uint8_t>(first + 2 * i));
      pack.add.b = rf(static_cast<uint8_t>(first + 2 * i + 1));
      emit(pack);
    }
    return *this;
  }
  /// Depth write; @param invariant  the rasteriser's depth instead of the register
  ProgramBuilder& store_depth(uint8_t from, bool invariant) {
    uniforms_.push_back(invariant ? 0xffffff84 : 0xffffff8c);
    return move_to(qpu::kWaddrTlbu, from);
  }

 private:
  static constexpr uint8_t kWaddrTmus = 33, kWaddrTmut = 34, kWaddrTmur = 35, kWaddrTmui = 36,
                           kWaddrTmub = 37, kWaddrTmudref = 38, kWaddrTmuscm = 40, kWaddrTmuslod = 42;

  ProgramBuilder& move_to(uint8_t magic, uint8_t from, qpu::Cond cond = qpu::Cond::kNone) {
    qpu::Instruction i;
    i.add.cond = cond;
    i.add.op = qpu::Op::kOr;
    i.add.waddr = magic;
    i.add.a = i.add.b = rf(from);
    return emit(i);
  }
};

}  // namespace v3d::pse
