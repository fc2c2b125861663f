/// @file Uniform streams, varyings and ports.

#include <utility>

#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/run/ports.h"

namespace v3d::qpu::jit::avx512 {

using Xbyak::Xmm;

namespace {

constexpr size_t in_pending(size_t offset) { return offsetof(Thread, pending) + offset; }
using Pending = Thread::Pending;
constexpr size_t kTexture = in_pending(offsetof(Pending, texture));
constexpr size_t kWritten = kTexture + offsetof(tmu::TextureLookup, written),
                 kNumData = kTexture + offsetof(tmu::TextureLookup, num_data),
                 kData = kTexture + offsetof(tmu::TextureLookup, data);
static_assert(sizeof(Varying) == 128 && sizeof(Lanes) == 64);

}  // namespace

// ---- Streams

void Emitter::load_unifa(const Zmm& to) { vpbroadcastd(to, next_unifa()); }

void Emitter::pop_tmu(const Zmm& to) {
  mov(eax, dword[kThread + in_pending(offsetof(Pending, fifo_head))]);
  inc(dword[kThread + in_pending(offsetof(Pending, fifo_head))]);
  and_(eax, kTmuFifo - 1);
  shl(eax, 6);
  vmovdqa64(to, zword[kThread + rax + in_pending(offsetof(Pending, fifo))]);
}

/// next_varying().
void Emitter::load_varying(const Zmm& to) {
  Label none, done;
  const uint8_t in_flight = flow_.nodes[node_].in_flight.vary >> 1;  // one has landed
  vpxord(kTemp2, kTemp2, kTemp2);
  mov(ecx, dword[kThread + in_pending(offsetof(Pending, next_varying))]);
  vpxord(to, to, to);
  cmp(ecx, dword[kThread + offsetof(Thread, num_varyings)]);
  jae(none);
  inc(dword[kThread + in_pending(offsetof(Pending, next_varying))]);
  shl(rcx, 7);
  add(rcx, qword[kThread + offsetof(Thread, varyings)]);
  vmovdqu32(to, zword[rcx + offsetof(Varying, vp)]);
  vmovdqu32(kTemp2, zword[rcx + offsetof(Varying, c)]);
  L(none);
  movzx(eax, byte[kThread + in_pending(offsetof(Pending, vary_oldest))]);
  if (in_flight) xor_(eax, 1);
  shl(eax, 6);
  vmovdqa64(zword[kThread + rax + in_pending(offsetof(Pending, vary_c))], kTemp2);
}

void Emitter::land_varying() {
  movzx(eax, byte[kThread + in_pending(offsetof(Pending, vary_oldest))]);
  xor_(byte[kThread + in_pending(offsetof(Pending, vary_oldest))], 1);
  shl(eax, 6);
  const auto c = zword[kThread + rax + in_pending(offsetof(Pending, vary_c))];
  write(implicit(), Source(c), nullptr);
}

void Emitter::load_tlb_word(const Zmm& to, bool with_config) {
  prepare_call(with_config);
  mov(esi, with_config);
  call_function(load_tlb);
  words_ += with_config;
  vmovdqa64(to, in_frame(offsetof(Frame, result)));
}

// ---- Ports

void Emitter::exec_to(const Reg32& to, const Opmask* exec) {
  if (exec)
    kmovw(to, *exec);
  else
    mov(to, kAllLanes);
}

void Emitter::commit_port(const Place& to, const Zmm& value, const Opmask* exec) {
  if (writes_by_call(to)) return write_port_by_call(to, value, exec, to.takes_uniform);
  switch (to.effect) {
    case Effect::kUnifa:
      return write_unifa(value, exec);
    case Effect::kTmuData:
      return push_data(value);
    case Effect::kTmuConfig:
      return vmovd(dword[kThread + offsetof(Thread, tmu_config)], Xmm(value.getIdx()));
    case Effect::kGeneral:
      return launch_general(to, value, exec);
    default:
      return set_parameter(to.effect, value);
  }
}

void Emitter::write_port_by_call(const Place& to, const Zmm& value, const Opmask* exec, bool takes_uniform) {
  vmovdqa64(in_frame(offsetof(Frame, a)), value);
  exec_to(eax, exec);
  mov(word[kFrame + offsetof(Frame, exec)], ax);
  prepare_call(takes_uniform);
  mov(esi, static_cast<uint32_t>(to.effect));
  mov(edx, takes_uniform);
  mov(ecx, to.waddr);
  call_function(write_to_port);
  words_ += takes_uniform;
  test(eax, eax);
  jnz(exit_with_hang(), T_NEAR);
}

void Emitter::write_unifa(const Zmm& value, const Opmask* exec) {
  Label nobody;
  if (exec) {
    settle_unifa();
    kortestw(*exec, *exec);
    jz(nobody);
  }
  vmovd(kUnifa, Xmm(value.getIdx()));
  and_(kUnifa, ~3u);
  mov(dword[kThread + offsetof(Thread, unifa)], kUnifa);
  L(nobody);
  unifa_ = {0, !exec};
}

void Emitter::push_data(const Zmm& value) {
  Label full;
  movzx(eax, byte[kThread + kNumData]);
  cmp(eax, 4);
  jae(full);
  inc(byte[kThread + kNumData]);
  shl(eax, 6);
  vmovdqa64(zword[kThread + rax + kData], value);
  L(full);
}

void Emitter::set_parameter(Effect effect, const Zmm& value) {
  using tmu::TextureLookup;
  struct Parameter {
    size_t offset;
    uint8_t bit;
  };
  static constexpr Parameter kParameters[] = {
      {offsetof(TextureLookup, t), tmu::kT},       {offsetof(TextureLookup, r), tmu::kR},
      {offsetof(TextureLookup, i), tmu::kI},       {offsetof(TextureLookup, b), tmu::kB},
      {offsetof(TextureLookup, dref), tmu::kDref}, {offsetof(TextureLookup, off), tmu::kOff}};
  const Parameter& p = kParameters[static_cast<int>(effect) - static_cast<int>(Effect::kTmuT)];
  vmovdqa64(at(kTexture + p.offset), value);
  or_(byte[kThread + kWritten], p.bit);
}

/// By the code of emit_general_access(); what that refuses, by a call that keeps all registers.
void Emitter::launch_general(const Place& to, const Zmm& value, const Opmask* exec) {
  uses_general_access_ = true;
  if (to.takes_uniform) {
    mov(eax, next_uniform());
    mov(dword[kThread + offsetof(Thread, tmu_config)], eax);
  }
  vmovdqa64(kTemp2, value);
  exec_to(r8d, exec);
  call(general_access_);
  test(eax, eax);
  Label &refused = new_label(), &done = new_label();
  jz(refused, T_NEAR);
  L(done);
  const std::optional<Opmask> mask = exec ? std::optional(*exec) : std::nullopt;
  later_in_node([this, to, mask, &refused, &done, pins = pins_, unifa = unifa_] {
    L(refused);
    pins_ = pins;
    write_port_by_call(to, kTemp2, mask ? &*mask : nullptr, false);
    for (Register r = 0; r < kNumRegisters; ++r)
      if (pins[r].zmm >= 0 && pins[r].in_register) read(r);
    if (unifa.in_register) mov(kUnifa, dword[kThread + offsetof(Thread, unifa)]);
    jmp(done, T_NEAR);
  });
}

}  // namespace v3d::qpu::jit::avx512
