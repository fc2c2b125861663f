/// @file Uniform streams, varyings and ports.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "gpu/qpu/flow/tlb.h"
#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/qpu/run/ports.h"

namespace v3d::qpu::jit::avx512 {

using Xbyak::Xmm;

namespace {

constexpr size_t kBlock = offsetof(Thread, tlb_block);

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

void Emitter::load_varying(const Zmm& to) {
  find_varying();
  vmovdqu32(to, zword[rax + rcx + offsetof(Varying, vp)]);
  advance_varying();
}

/// start_sfu() of the interpreter. What the word computed waits in the frame: special functions use its
/// registers.
void Emitter::start_sfu(Op op, const Zmm& value) {
  const auto wait = [](size_t half) { return offsetof(Frame, results) + half * sizeof(Lanes); };
  vmovdqa64(in_frame(wait(0)), kResultAdd);
  vmovdqa64(in_frame(wait(1)), kResultMul);
  move(kUnpackedA, Source(value));
  emitter_of(op)(*this, kUnpackedA, Source(kUnpackedA), Source(kUnpackedA));
  coming_to_eax(in_pending(offsetof(Pending, sfu_oldest)), flow_.nodes[node_].in_flight.sfu);
  vmovdqa64(zword[kThread + rax + in_pending(offsetof(Pending, sfu_result))], kUnpackedA);
  vmovdqa64(kResultAdd, in_frame(wait(0)));
  vmovdqa64(kResultMul, in_frame(wait(1)));
}

void Emitter::land(Register to, const Xbyak::RegExp& from) { write(to, Source(zword[from]), nullptr); }

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

void Emitter::find_color_writes() {
  const auto writes_tlb = [](const flow::Access& access) {
    const auto events = access.events();
    return std::any_of(events.begin(), events.end(),
                       [](const flow::Event& e) { return e.effect == Effect::kTlb; });
  };
  if (std::none_of(flow_.accesses.begin(), flow_.accesses.end(), writes_tlb)) return;
  for (const flow::TlbWord& written : flow::follow_tlb(flow_).words) {
    if (written.sequence != flow::kNowhere && written.word != 0) continue;
    const auto events = flow_.access(flow_.nodes[written.event.node]).events();
    const auto writes = std::count_if(events.begin(), events.end(),
                                      [](const flow::Event& e) { return e.effect == Effect::kTlb; });
    if (writes == 1) color_begins_[written.event.node] = written.sequence != flow::kNowhere;
  }
}

/// write_tlb() of the interpreter, for the first word of two.
/// @param surely  it is the first; else it may be the second
void Emitter::begin_color(const Destination& to, const Zmm& value, const Opmask* exec, bool surely) {
  constexpr size_t kSpec = in_pending(offsetof(Pending, tlb_spec)),
                   kHave = in_pending(offsetof(Pending, tlb_have)),
                   kNeed = in_pending(offsetof(Pending, tlb_need));
  Label &otherwise = new_label(), &done = new_label(), second;
  const bool may_end = !surely && !exec;
  cmp(qword[kThread + offsetof(Thread, tlb)], 0);
  je(otherwise, T_NEAR);
  mov(al, byte[kThread + kHave]);
  cmp(al, byte[kThread + kNeed]);
  jb(may_end ? second : otherwise, T_NEAR);
  cmp(dword[kThread + offsetof(Thread, tlb_config)], ~0u);
  jne(otherwise, T_NEAR);
  static_assert(kNeed == kHave + 1);
  const TlbSpec spec = decode_tlb_spec(kTlbHalves);
  uint32_t first;
  static_assert(sizeof(spec) == sizeof(first) + 1);
  std::memcpy(&first, &spec, sizeof(first));
  mov(dword[kThread + kSpec], first);
  mov(byte[kThread + kSpec + sizeof(first)], reinterpret_cast<const uint8_t*>(&spec)[sizeof(first)]);
  mov(word[kThread + kHave], 1 | spec.words << 8);
  mov(byte[kThread + in_pending(offsetof(Pending, tlb_reading))], 0);
  mov(byte[kThread + in_pending(offsetof(Pending, tlb_halves))], 1);
  exec_to(eax, exec);
  mov(word[kThread + in_pending(offsetof(Pending, tlb_exec))], ax);
  vmovdqa64(at(in_pending(offsetof(Pending, tlb_words))), value);
  call_later(to, value, exec, otherwise, done);
  if (may_end) {
    jmp(done, T_NEAR);
    L(second);
    end_color(to, value);
  }
  L(done);
}

/// The pixels of four halves in two words, as rgba8 in the order of lanes: in kTemp.
/// @see rgba8_of_halves() of the TLB
/// @param value  the second of the words
void Emitter::halves_to_pixels(const Zmm& value) {
  const bool is_scratch = value.getIdx() >= kUnpackedA.getIdx() && value.getIdx() <= kTemp3.getIdx();
  const Zmm second = is_scratch ? kUnpackedB : value;
  if (is_scratch) vmovdqa64(second, value);
  const auto lanes = [](const Zmm& zmm) { return Xbyak::Ymm(zmm.getIdx()); };
  const Zmm whole = kTemp3;
  vbroadcastss(whole, constant(std::bit_cast<uint32_t>(255.0f), false));
  // NaN becomes the least integer, which is packed as 0 like all that are negative.
  const auto to_words = [&](const Zmm& low, const Zmm& high) {
    for (const Zmm& v : {low, high}) {
      vmulps(v, v, whole);
      vminps(v, whole, v);
      vcvtps2dq(v, v);
    }
    vpackusdw(low, low, high);
  };
  constexpr size_t kFirst = in_pending(offsetof(Pending, tlb_words));
  vcvtph2ps(kTemp, yword[kThread + kFirst]);
  vcvtph2ps(kTemp2, yword[kThread + kFirst + sizeof(Lanes) / 2]);
  to_words(kTemp, kTemp2);
  vextracti64x4(lanes(kTemp2), second, 1);
  vcvtph2ps(kTemp2, lanes(kTemp2));
  vcvtph2ps(kUnpackedB, lanes(second));
  to_words(kUnpackedB, kTemp2);
  // Red and green of lanes 0, 1, 8 and 9, blue and alpha of these, then 2, 3, 10, 11, and so on.
  vpackuswb(kTemp, kTemp, kUnpackedB);
  std::array<uint32_t, kLanes> bytes, pairs;
  for (uint32_t n = 0; n < kLanes; ++n) {
    const uint32_t pixel = n % 4;
    bytes[n] = 0x09080100 + 0x02020202 * pixel;
    const uint32_t pair = n / 2;
    pairs[n] = n % 2 != 0 ? 0 : pair % 4 * 2 + pair / 4;
  }
  vpshufb(kTemp, kTemp, constants(bytes));
  vmovdqa64(kTemp2, constants(pairs));
  vpermq(kTemp, kTemp2, kTemp);
}

/// The second word of two, in place where Thread::tlb_block says so.
void Emitter::end_color(const Destination& to, const Zmm& value) {
  constexpr size_t kHave = in_pending(offsetof(Pending, tlb_have));
  static_assert(in_pending(offsetof(Pending, tlb_need)) == kHave + 1);
  Label &otherwise = new_label(), &some = new_label(), &done = new_label();
  call_later(to, value, nullptr, otherwise, done);
  movzx(eax, word[kThread + kHave]);
  cmp(eax, 0x0201);
  jne(otherwise, T_NEAR);
  cmp(byte[kThread + in_pending(offsetof(Pending, tlb_halves))], 0);
  je(otherwise, T_NEAR);
  movzx(eax, word[kThread + in_pending(offsetof(Pending, tlb_exec))]);
  cmp(eax, kAllLanes);
  jne(otherwise, T_NEAR);
  cmp(qword[kThread + kBlock + offsetof(TlbBlock, quads)], 0);
  je(otherwise, T_NEAR);
  vmovdqa64(kTemp3, at(offsetof(Thread, msf)));
  vptestmd(kScratchMask, kTemp3, constant(1));
  kmovw(ecx, kScratchMask);
  movzx(eax, word[kThread + kBlock + offsetof(TlbBlock, live)]);
  and_(ecx, eax);
  xor_(eax, eax);
  mov(word[kThread + kHave], ax);
  cmp(ecx, kAllLanes);
  jne(some, T_NEAR);
  halves_to_pixels(value);
  store_pixels(false);
  inc(qword[kThread + kBlock + offsetof(TlbBlock, whole)]);
  L(done);
  later_in_node([this, value, &some, &done, pins = pins_] {
    L(some);
    pins_ = pins;
    test(ecx, ecx);
    jz(done, T_NEAR);
    halves_to_pixels(value);
    store_pixels(true);
    count_quads();
    jmp(done, T_NEAR);
  });
}

/// What halves_to_pixels() made. @param masked  only the lanes of ecx
void Emitter::store_pixels(bool masked) {
  for (uint8_t quad = 0; quad < 4; ++quad) {
    mov(rax, qword[kThread + kBlock + offsetof(TlbBlock, quads) + sizeof(uint64_t) * quad]);
    const Xmm pixels(quad == 0 ? kTemp.getIdx() : kTemp2.getIdx());
    if (quad != 0) vextracti32x4(pixels, kTemp, quad);
    if (!masked) {
      vmovdqu(xword[rax], pixels);
      continue;
    }
    mov(edx, ecx);
    if (quad != 0) shr(edx, 4 * quad);
    kmovw(kScratchMask, edx);
    vmovdqu32(xword[rax] | kScratchMask, pixels);
  }
}

/// Quads with lanes of ecx, and those with some but not all, of a batch that is not whole.
void Emitter::count_quads() {
  constexpr uint32_t kFirstOfQuads = 0x1111;
  const auto of_quads = [this](const auto& join) {
    mov(eax, ecx);
    shr(eax, 1);
    join(eax, ecx);
    mov(edx, eax);
    shr(edx, 2);
    join(eax, edx);
    and_(eax, kFirstOfQuads);
    popcnt(eax, eax);
  };
  of_quads([this](const Reg32& to, const Reg32& from) { or_(to, from); });
  add(qword[kThread + kBlock + offsetof(TlbBlock, some_quads)], rax);
  add(qword[kThread + kBlock + offsetof(TlbBlock, split_quads)], rax);
  of_quads([this](const Reg32& to, const Reg32& from) { and_(to, from); });
  sub(qword[kThread + kBlock + offsetof(TlbBlock, split_quads)], rax);
}

/// write_tlb() of the interpreter, for depth that nobody wants, or that is only counted: the word that
/// configures is taken.
void Emitter::pass_depth(const Destination& to, const Zmm& value, const Opmask* exec) {
  constexpr uint32_t kKind = 0xf0, kDepth = 0x80;
  constexpr size_t kHave = in_pending(offsetof(Pending, tlb_have));
  static_assert(in_pending(offsetof(Pending, tlb_need)) == kHave + 1);
  Label &otherwise = new_label(), &tested = new_label(), &passed = new_label(), &done = new_label();
  call_later(to, value, exec, otherwise, done);
  mov(eax, next_uniform());
  mov(ecx, eax);
  and_(ecx, kKind);
  cmp(ecx, kDepth);
  jne(otherwise, T_NEAR);
  cmp(byte[kThread + offsetof(Thread, tlb_binding.drops_depth)], 0);
  je(exec ? otherwise : tested, T_NEAR);
  L(passed);
  shr(eax, 8);
  or_(eax, 0xff000000);
  mov(dword[kThread + offsetof(Thread, tlb_config)], eax);
  mov(word[kThread + kHave], 0);
  L(done);
  if (exec) return;
  later([this, &otherwise, &tested, &passed] {
    L(tested);
    cmp(byte[kThread + offsetof(Thread, tlb_binding.counts_depth)], 0);
    je(otherwise, T_NEAR);
    movzx(ecx, word[kThread + kBlock + offsetof(TlbBlock, live)]);
    cmp(ecx, kAllLanes);
    jne(otherwise, T_NEAR);
    vmovdqa64(kTemp, at(offsetof(Thread, msf)));
    vpcmpeqd(kScratchMask, kTemp, constant(1));
    kortestw(kScratchMask, kScratchMask);
    jnc(otherwise, T_NEAR);
    inc(qword[kThread + kBlock + offsetof(TlbBlock, tested)]);
    jmp(passed, T_NEAR);
  });
}

bool Emitter::calls(const Destination& to) const { return writes_by_call(to) && !starts_texture(to.effect); }

void Emitter::commit_port(const Destination& to, const Zmm& value, const Opmask* exec) {
  if (const auto begins = color_begins_.find(node_);
      to.effect == Effect::kTlb && !to.takes_uniform && begins != color_begins_.end())
    return begin_color(to, value, exec, begins->second);
  if (to.effect == Effect::kTlb && to.takes_uniform) return pass_depth(to, value, exec);
  if (to.effect == Effect::kTlb && !exec) return end_color(to, value);
  if (calls(to)) return write_port_by_call(to, value, exec, to.takes_uniform);
  if (starts_texture(to.effect)) return launch_texture(to, value, exec);
  if (starts_sfu(to.effect)) return start_sfu(sfu_operation(to.effect), value);
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

void Emitter::write_port_by_call(const Destination& to, const Zmm& value, const Opmask* exec,
                                 bool takes_uniform) {
  data_ = configs_ = {};
  vmovdqa64(in_frame(offsetof(Frame, a)), value);
  exec_to(eax, exec);
  mov(word[kFrame + offsetof(Frame, exec)], ax);
  call_port(to, takes_uniform);
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
  const uint32_t words = data_.words++;
  if (data_.known && words < kMostWords) {
    mov(byte[kThread + kNumData], words + 1);
    vmovdqa64(at(kData + words * sizeof(Lanes)), value);
    return;
  }
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
  data_.known = false;
  or_(byte[kThread + kWritten], p.bit);
}

/// By code in place, which leaves to emit_general_access() what it is not for; what that refuses, by a call
/// that keeps all registers.
void Emitter::launch_general(const Destination& to, const Zmm& value, const Opmask* exec) {
  uses_general_access_ = true;
  if (to.takes_uniform) {
    mov(eax, next_uniform());
    mov(dword[kThread + offsetof(Thread, tmu_config)], eax);
  }
  vmovdqa64(kTemp2, value);
  Label &refused = new_label(), &done = new_label();
  if (accesses_in_place(!exec)) {
    Label& otherwise = new_label();
    if (to.takes_uniform) {
      or_(eax, kPerPixel);
      cmp(eax, kConfigAtStart);
      jne(otherwise, T_NEAR);
    }
    emit_access_in_place(to.takes_uniform, otherwise);
    later([this, &otherwise, &refused, &done] {
      L(otherwise);
      mov(r8d, kAllLanes);
      call(general_access_);
      test(eax, eax);
      jnz(done, T_NEAR);
      jmp(refused, T_NEAR);
    });
  } else {
    exec_to(r8d, exec);
    call(general_access_);
    test(eax, eax);
    jz(refused, T_NEAR);
  }
  L(done);
  call_later(to, kTemp2, exec, refused, done);
  data_ = {0, true};
}

/// By the code of the lookup; what that refuses, by a call that keeps all registers.
void Emitter::launch_texture(const Destination& to, const Zmm& value, const Opmask* exec) {
  ++num_lookups_;
  vmovdqa64(kTemp2, value);
  vmovdqa64(at(kTexture + offsetof(tmu::TextureLookup, s)), kTemp2);
  exec_to(r8d, exec);
  call_lookup(to.effect);
  Label &refused = new_label(), &done = new_label();
  jz(refused, T_NEAR);
  L(done);
  call_later(to, kTemp2, exec, refused, done);
  data_ = configs_ = {0, true};
}

/// The write by a call that keeps all registers, out of the way.
void Emitter::call_later(const Destination& to, const Zmm& value, const Opmask* exec, Label& from,
                         Label& back) {
  const std::optional<Opmask> mask = exec ? std::optional(*exec) : std::nullopt;
  later_in_node([this, to, value, mask, &from, &back, pins = pins_, unifa = unifa_] {
    L(from);
    pins_ = pins;
    write_port_by_call(to, value, mask ? &*mask : nullptr, to.effect == Effect::kTlb && to.takes_uniform);
    for (Register r = 0; r < kNumRegisters; ++r)
      if (pins[r].zmm >= 0 && pins[r].in_register) read(r);
    if (unifa.in_register) mov(kUnifa, dword[kThread + offsetof(Thread, unifa)]);
    jmp(back, T_NEAR);
  });
}

}  // namespace v3d::qpu::jit::avx512
