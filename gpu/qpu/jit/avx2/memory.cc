/// @file Uniform streams, varyings and ports. No register is taken where host code jumps over it.

#include "gpu/qpu/jit/avx2/emitter.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/qpu/run/ports.h"

namespace v3d::qpu::jit::avx2 {

using Xbyak::Xmm;

namespace {

constexpr size_t kPartBytes = sizeof(Lanes) / 2;

}  // namespace

/// Both parts, to memory.
void Emitter::copy_to(const Vector& value, const Reg64& base, size_t offset) {
  for (part_ = 0; part_ < 2; ++part_) {
    const Scope scope(*this);
    const Ymm part = in_register(part_of(value));
    vmovaps(yword[base + (offset + static_cast<size_t>(part_) * kPartBytes)], part);
  }
}

// ---- Streams. What they give stays in registers until the caller's Scope ends.

void Emitter::load_uniform(Vector& to) {
  const Ymm lanes = scratch();
  vpbroadcastd(lanes, next_uniform());
  to.host[0] = to.host[1] = lanes.getIdx();
}

void Emitter::load_unifa(Vector& to) {
  const Ymm lanes = scratch();
  vpbroadcastd(lanes, next_unifa());
  to.host[0] = to.host[1] = lanes.getIdx();
}

void Emitter::pop_tmu(Vector& to) {
  mov(eax, dword[kThread + in_pending(offsetof(Pending, fifo_head))]);
  inc(dword[kThread + in_pending(offsetof(Pending, fifo_head))]);
  and_(eax, kTmuFifo - 1);
  shl(eax, 6);
  for (size_t part = 0; part < 2; ++part) {
    const Ymm lanes = scratch();
    vmovaps(lanes, yword[kThread + rax + (in_pending(offsetof(Pending, fifo)) + part * kPartBytes)]);
    to.host[part] = lanes.getIdx();
  }
}

void Emitter::load_varying(Vector& to) {
  find_varying();
  for (size_t part = 0; part < 2; ++part) {
    const Ymm vp = scratch();
    vmovups(vp, yword[rax + rcx + (offsetof(Varying, vp) + part * kPartBytes)]);
    to.host[part] = vp.getIdx();
  }
  advance_varying();
}

/// start_sfu() of the interpreter.
void Emitter::start_sfu(Op op, const Vector& value) {
  for (part_ = 0; part_ < 2; ++part_) {
    const Scope scope(*this);
    const Ymm to = scratch();
    const Source argument = part_of(value);
    emitter_of(op).emit(*this, to, argument, argument);
    coming_to_eax(in_pending(offsetof(Pending, sfu_oldest)), flow_.nodes[node_].in_flight.sfu);
    const size_t offset = in_pending(offsetof(Pending, sfu_result)) + static_cast<size_t>(part_) * kPartBytes;
    vmovaps(yword[kThread + rax + offset], to);
  }
}

void Emitter::land(Register to, const Xbyak::RegExp& from) {
  const Scope scope(*this);
  for (part_ = 0; part_ < 2; ++part_) {
    const Ymm part = scratch();
    vmovups(part, yword[from + static_cast<size_t>(part_) * kPartBytes]);
    bind(to, part);
  }
}

void Emitter::load_tlb_word(Vector& to, bool with_config) {
  prepare_call(with_config);
  mov(esi, with_config);
  call_function(load_tlb);
  words_ += with_config;
  to.frame = offsetof(Frame, result);
}

// ---- Ports

void Emitter::exec_to(const Reg32& to, const Exec& exec) {
  if (!exec.masked) return mov(to, kAllLanes);
  if (exec.mask)
    movzx(to, word[kFrame + (offsetof(Frame, masks) + *exec.mask * sizeof(uint32_t))]);
  else
    bits_to(to, exec.of_b ? kCachedFlagB : kCachedFlagA);
  if (exec.inverted) xor_(to, kAllLanes);
}

void Emitter::commit_port(const Destination& to, const Vector& value, const Exec& exec) {
  const bool is_texture = starts_texture(to.effect);
  if (writes_by_call(to) && !is_texture) return write_port_by_call(to, value, exec);
  if (starts_sfu(to.effect)) return start_sfu(sfu_operation(to.effect), value);
  const Scope scope(*this);
  if (is_texture) return launch_texture(to, value, exec);
  switch (to.effect) {
    case Effect::kUnifa:
      return write_unifa(value, exec);
    case Effect::kTmuData:
      return push_data(value);
    case Effect::kTmuConfig:
      part_ = 0;
      return vmovd(dword[kThread + offsetof(Thread, tmu_config)], Xmm(in_register(part_of(value)).getIdx()));
    case Effect::kGeneral:
      return launch_general(to, value, exec);
    default:
      return set_parameter(to.effect, value);
  }
}

void Emitter::write_port_by_call(const Destination& to, const Vector& value, const Exec& exec) {
  data_ = configs_ = {};
  copy_to(value, kFrame, offsetof(Frame, a));
  exec_to(eax, exec);
  mov(word[kFrame + offsetof(Frame, exec)], ax);
  call_port(to, to.takes_uniform);
}

void Emitter::write_unifa(const Vector& value, const Exec& exec) {
  Label nobody;
  part_ = 0;
  const Ymm address = in_register(part_of(value));
  if (exec.masked) {
    settle_unifa();
    exec_to(eax, exec);
    test(eax, eax);
    jz(nobody);
  }
  vmovd(kUnifa, Xmm(address.getIdx()));
  and_(kUnifa, ~3u);
  mov(dword[kThread + offsetof(Thread, unifa)], kUnifa);
  L(nobody);
  unifa_ = {0, !exec.masked};
}

void Emitter::push_data(const Vector& value) {
  const uint32_t words = data_.words++;
  if (data_.known && words < kMostWords) {
    mov(byte[kThread + kNumData], words + 1);
    return copy_to(value, kThread, kData + words * sizeof(Lanes));
  }
  Label full;
  Ymm parts[2];
  for (part_ = 0; part_ < 2; ++part_) parts[part_] = in_register(part_of(value));
  movzx(eax, byte[kThread + kNumData]);
  cmp(eax, 4);
  jae(full);
  inc(byte[kThread + kNumData]);
  shl(eax, 6);
  for (size_t part = 0; part < 2; ++part)
    vmovaps(yword[kThread + rax + (kData + part * kPartBytes)], parts[part]);
  L(full);
}

void Emitter::set_parameter(Effect effect, const Vector& value) {
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
  copy_to(value, kThread, kTexture + p.offset);
  data_.known = false;
  or_(byte[kThread + kWritten], p.bit);
}

/// By code in place, or by that of emit_general_access(), which needs the lower half of the registers; what
/// that refuses, by a call that keeps all others.
void Emitter::launch_general(const Destination& to, const Vector& value, const Exec& exec) {
  uses_general_access_ = true;
  if (!to.takes_uniform && accesses_in_place(!exec.masked)) {
    launch_in_place(to, value);
    data_ = {0, true};
    return;
  }
  if (to.takes_uniform) {
    mov(eax, next_uniform());
    mov(dword[kThread + offsetof(Thread, tmu_config)], eax);
  }
  copy_to(value, kFrame, offsetof(Frame, addresses));
  exec_to(r8d, exec);
  mov(word[kFrame + offsetof(Frame, exec)], r8w);
  vacate_lower_half();
  call(general_access_);
  test(eax, eax);
  Label &refused = new_label(), &done = new_label();
  jz(refused, T_NEAR);
  L(done);
  call_later(to, kFrame + offsetof(Frame, addresses), refused, done);
  data_ = {0, true};
}

/// What the code in place is not for goes to the routine, out of the way, and from there to the function.
void Emitter::launch_in_place(const Destination& to, const Vector& value) {
  Label &otherwise = new_label(), &done = new_label();
  Ymm addresses[2];
  for (part_ = 0; part_ < 2; ++part_) addresses[part_] = in_register(part_of(value));
  const Ymm temps[3] = {scratch(), scratch(), scratch()};
  emit_access_in_place(addresses, temps, otherwise);
  L(done);
  later_in_node(
      [this, to, addresses, cache = cache_, busy = locked_ | held_, unifa = unifa_, &otherwise, &done] {
        cache_ = cache;
        const auto for_each_kept = [&](const auto& fn) {
          for (int host = 0; host < Cache::kHosts; ++host)
            if (!cache.empty(host) || (busy >> host & 1))
              fn(yword[kFrame + (offsetof(Frame, kept) + static_cast<size_t>(host) * kPartBytes)], Ymm(host));
        };
        const auto restore = [&] {
          for_each_kept([this](const Xbyak::Address& at, const Ymm& y) { vmovaps(y, at); });
        };
        L(otherwise);
        for_each_kept([this](const Xbyak::Address& at, const Ymm& y) { vmovaps(at, y); });
        for (part_ = 0; part_ < 2; ++part_) {
          vmovaps(in_frame(offsetof(Frame, addresses)), addresses[part_]);
          vmovaps(in_frame(offsetof(Frame, a)), addresses[part_]);
        }
        mov(r8d, kAllLanes);
        mov(word[kFrame + offsetof(Frame, exec)], r8w);
        call(general_access_);
        Label ended;
        test(eax, eax);
        jnz(ended, T_NEAR);
        restore();
        call_port(to, false);
        if (unifa.in_register) mov(kUnifa, dword[kThread + offsetof(Thread, unifa)]);
        L(ended);
        restore();
        jmp(done, T_NEAR);
      });
}

/// By the code of the lookup; what that refuses, by a call that keeps all others.
void Emitter::launch_texture(const Destination& to, const Vector& value, const Exec& exec) {
  copy_to(value, kThread, kTexture + offsetof(tmu::TextureLookup, s));
  exec_to(r8d, exec);
  mov(word[kFrame + offsetof(Frame, exec)], r8w);
  vacate_lower_half();
  call_lookup(to.effect);
  Label &refused = new_label(), &done = new_label();
  jz(refused, T_NEAR);
  L(done);
  call_later(to, kThread + (kTexture + offsetof(tmu::TextureLookup, s)), refused, done);
  data_ = configs_ = {0, true};
}

/// The write of what stands at `value`, by a call that keeps all registers, out of the way.
void Emitter::call_later(const Destination& to, const Xbyak::RegExp& value, Label& from, Label& back) {
  later_in_node([this, to, value, &from, &back, cache = cache_, unifa = unifa_] {
    L(from);
    cache_ = cache;
    for (part_ = 0; part_ < 2; ++part_) {
      vmovaps(Ymm(0), yword[value + static_cast<size_t>(part_) * kPartBytes]);
      vmovaps(in_frame(offsetof(Frame, a)), Ymm(0));
    }
    call_port(to, false);
    reload(cache);
    if (unifa.in_register) mov(kUnifa, dword[kThread + offsetof(Thread, unifa)]);
    jmp(back, T_NEAR);
  });
}

}  // namespace v3d::qpu::jit::avx2
