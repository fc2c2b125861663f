#include <algorithm>
#include <vector>

#include "gpu/qpu/jit/avx512/emitter.h"

namespace v3d::qpu::jit::avx512 {

Emitter::Emitter(const flow::Flow& flow, void* buffer, size_t bytes) : ProgramEmitter(flow, buffer, bytes) {
  pin_registers();
  find_color_writes();
}

void Emitter::pin_registers() {
  std::vector<Register> ranked;
  for (Register r = 0; r < kNumRegisters; ++r)
    if (flow_.registers[r].weight != 0) ranked.push_back(r);
  std::stable_sort(ranked.begin(), ranked.end(), [this](Register a, Register b) {
    return flow_.registers[a].weight > flow_.registers[b].weight;
  });
  const int count = std::min(static_cast<int>(ranked.size()), kNumPinned);
  for (int n = 0; n < count; ++n) pins_[ranked[static_cast<size_t>(n)]].zmm = kFirstPinned + n;
  for (Register r = 0; r < kNumRegisters; ++r) pins_[r].written = flow_.registers[r].writes != 0;
}

void Emitter::begin_block_registers(uint32_t) {
  for (Pin& pin : pins_) {
    pin.in_register = true;
    pin.at_home = !pin.written;
  }
}

Source Emitter::read(Register r) {
  Pin& pin = pins_[r];
  if (pin.zmm < 0) return Source(home(r));
  const Zmm reg(pin.zmm);
  if (!pin.in_register) vmovdqa64(reg, home(r));
  pin.in_register = true;
  return Source(reg);
}

std::optional<Emitter::Zmm> Emitter::begin_write(Register r) {
  Pin& pin = pins_[r];
  if (pin.zmm < 0) return {};
  pin.in_register = true;
  pin.at_home = false;
  return Zmm(pin.zmm);
}

void Emitter::write(Register r, const Source& value, const Opmask* exec) {
  if (exec && pins_[r].zmm >= 0) read(r);
  if (const auto reg = begin_write(r)) {
    if (exec)
      vmovdqa32(*reg | *exec, value.operand());
    else
      move(*reg, value);
    return;
  }
  const Zmm from = in_register(value, kTemp);
  if (exec)
    vmovdqa32(home(r) | *exec, from);
  else
    vmovdqa64(home(r), from);
}

void Emitter::settle() {
  for (Register r = 0; r < kNumRegisters; ++r)
    if (pins_[r].zmm >= 0) read(r);
}

void Emitter::load_state() {
  RegisterSet all;
  for (Register r = 0; r < kNumRegisters; ++r) all.add(r);
  load_registers(all);
  test_mask();
}

void Emitter::load_first_state(const RegisterSet& live) {
  load_registers(live);
  // All blocks have their code by now.
  if (uses_general_access_ || num_lookups_ > 1) test_mask();
}

/// Others become 0: what the host has in its registers is no business of programs.
void Emitter::load_registers(const RegisterSet& live) {
  kmovw(kFlagA, word[kThread + offsetof(Thread, flag_a)]);
  kmovw(kFlagB, word[kThread + offsetof(Thread, flag_b)]);
  for (Register r = 0; r < kNumRegisters; ++r) {
    if (pins_[r].zmm < 0) continue;
    const Zmm reg(pins_[r].zmm);
    live.has(r) ? vmovdqa64(reg, home(r)) : vpxord(reg, reg, reg);
  }
}

void Emitter::test_mask() {
  vmovdqa64(kTemp, at(offsetof(Thread, msf)));
  vptestnmd(kScratchMask, kTemp, kTemp);
  kortestw(kScratchMask, kScratchMask);
  set_plain();
}

void Emitter::store_state() {
  kmovw(word[kThread + offsetof(Thread, flag_a)], kFlagA);
  kmovw(word[kThread + offsetof(Thread, flag_b)], kFlagB);
  for (Register r = 0; r < kNumRegisters; ++r)
    if (pins_[r].zmm >= 0 && pins_[r].written) vmovdqa64(home(r), Zmm(pins_[r].zmm));
}

std::function<void()> Emitter::settle_for_exit() {
  return [this, pins = pins_] {
    for (Register r = 0; r < kNumRegisters; ++r)
      if (pins[r].zmm >= 0 && pins[r].written && !pins[r].in_register) vmovdqa64(Zmm(pins[r].zmm), home(r));
  };
}

void Emitter::live_lanes_to(const Reg32& to) {
  vmovdqa64(kTemp, at(offsetof(Thread, msf)));
  vptestmd(kScratchMask, kTemp, kTemp);
  kmovw(to, kScratchMask);
}

void Emitter::spill() {
  for (Register r = 0; r < kNumRegisters; ++r) keep_at_home(r);
}

void Emitter::keep_at_home(Register r) {
  Pin& pin = pins_[r];
  if (pin.zmm < 0 || pin.at_home || !pin.in_register) return;
  vmovdqa64(home(r), Zmm(pin.zmm));
  pin.at_home = true;
}

void Emitter::call_address(const void* function) {
  const Opmask kept[] = {kExecAdd, kExecMul, kXAdd, kXMul};
  spill();
  kmovw(word[kThread + offsetof(Thread, flag_a)], kFlagA);
  kmovw(word[kThread + offsetof(Thread, flag_b)], kFlagB);
  for (size_t n = 0; n < std::size(kept); ++n) kmovw(word[kFrame + offsetof(Frame, masks) + 4 * n], kept[n]);
  vmovdqa64(in_frame(offsetof(Frame, results)), kResultAdd);
  vmovdqa64(in_frame(offsetof(Frame, results) + sizeof(Lanes)), kResultMul);
  mov(rdi, kFrame);
  mov(rax, reinterpret_cast<uint64_t>(function));
  call(rax);
  kmovw(kFlagA, word[kThread + offsetof(Thread, flag_a)]);
  kmovw(kFlagB, word[kThread + offsetof(Thread, flag_b)]);
  for (size_t n = 0; n < std::size(kept); ++n) kmovw(kept[n], word[kFrame + offsetof(Frame, masks) + 4 * n]);
  vmovdqa64(kResultAdd, in_frame(offsetof(Frame, results)));
  vmovdqa64(kResultMul, in_frame(offsetof(Frame, results) + sizeof(Lanes)));
  for (Pin& pin : pins_) pin.in_register = pin.zmm < 0;
  unifa_.in_register = false;
}

// ---- Sources

Xbyak::Address Emitter::at(size_t offset_in_thread) const { return zword[kThread + offset_in_thread]; }
Xbyak::Address Emitter::in_frame(size_t offset) const { return zword[kFrame + offset]; }

Xbyak::Address Emitter::constant(uint32_t bits, bool broadcast) {
  Label& label = word_behind(bits);
  return broadcast ? ptr_b[rip + label] : ptr[rip + label];
}
Xbyak::Address Emitter::constants(const std::array<uint32_t, 16>& words) {
  return zword[rip + words_behind(words)];
}
Xbyak::Address Emitter::doubles(double value) { return ptr_b[rip + double_behind(value)]; }

Emitter::Zmm Emitter::in_register(const Source& source, const Zmm& scratch) {
  if (source.in_register()) return source.reg();
  move(scratch, source);
  return scratch;
}

void Emitter::move(const Zmm& to, const Source& from) {
  if (from.is(to)) return;
  if (!from.constant())
    vmovdqa64(to, from.operand());
  else if (*from.constant() == 0)
    vpxord(to, to, to);
  else
    vpbroadcastd(to, constant(*from.constant(), false));
}

void Emitter::ordered(Binary op, const Zmm& to, const Source& a, const Source& b) {
  op(*this, to, in_register(a, kTemp), b.operand());
}

void Emitter::commutative(Binary op, const Zmm& to, const Source& a, const Source& b) {
  if (!a.in_register() && b.in_register())
    ordered(op, to, b, a);
  else
    ordered(op, to, a, b);
}

}  // namespace v3d::qpu::jit::avx512
