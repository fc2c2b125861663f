#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/qpu/jit/avx2/emitter.h"

namespace v3d::qpu::jit::avx2 {

using Xbyak::Xmm;

namespace {

constexpr size_t kPartBytes = sizeof(Lanes) / 2;
constexpr uint32_t kNever = ~0u;
constexpr uint64_t kNotNeeded = uint64_t{kNever} + 1;  // and in memory, if it must be
/// A use so near is worth a register, if there is one that is needed later.
constexpr uint32_t kNear = 12;

/// Whether compiled code may be left within the node, or before it.
bool may_leave(const flow::Access& access) {
  using Kind = flow::Event::Kind;
  return std::any_of(access.events().begin(), access.events().end(), [](const flow::Event& event) {
    return event.kind == Kind::kLdtmu || event.kind == Kind::kLdtlb || event.kind == Kind::kWrite;
  });
}

}  // namespace

Emitter::Emitter(const flow::Flow& flow, void* buffer, size_t bytes) : ProgramEmitter(flow, buffer, bytes) {}

// ---- Where ways join all is in memory, the flags in the frame.

void Emitter::load_state() {
  const Ymm lanes(0);
  for (const bool of_b : {false, true}) {
    movzx(eax, word[kThread + (of_b ? offsetof(Thread, flag_b) : offsetof(Thread, flag_a))]);
    for (part_ = 0; part_ < 2; ++part_) {
      spread_bits(lanes, eax);
      vmovaps(in_frame(offsetof(Frame, flags) + of_b * sizeof(Lanes)), lanes);
    }
  }
  const Ymm zero(0), dead[2] = {Ymm(1), Ymm(2)};
  vpxor(zero, zero, zero);
  for (part_ = 0; part_ < 2; ++part_) vpcmpeqd(dead[part_], zero, in_thread(offsetof(Thread, msf)));
  vpor(zero, dead[0], dead[1]);
  vptest(zero, zero);
  set_plain();
}

// eax is the exit's number.
void Emitter::store_state() {
  for (const bool of_b : {false, true}) {
    for (part_ = 0; part_ < 2; ++part_) {
      vmovaps(Ymm(0), in_frame(offsetof(Frame, flags) + of_b * sizeof(Lanes)));
      vmovmskps(part_ ? edx : ecx, Ymm(0));
    }
    shl(edx, 8);
    or_(ecx, edx);
    mov(word[kThread + (of_b ? offsetof(Thread, flag_b) : offsetof(Thread, flag_a))], cx);
  }
}

void Emitter::begin_block_registers(uint32_t block) {
  const auto passed = passed_.find(block);
  cache_ = passed == passed_.end() ? Cache() : passed->second;
  locked_ = held_ = 0;
  find_uses();
}

/// Which registers are equal is known of the ways in the graph only: a thread that comes back from a computed
/// branch may have others.
void Emitter::pass_registers(uint32_t block) {
  Cache cache = cache_;
  for (int host = 0; host < Cache::kHosts && !flow_.complete; ++host) {
    bool kept = false;
    cache_.for_each(host, [&](Slot slot) {
      if (!std::exchange(kept, true)) return;
      if (cache.dirty(slot)) vmovaps(home(slot), Ymm(host));
      cache.unbind(slot);
    });
  }
  passed_.insert_or_assign(block, cache);
}

void Emitter::settle() { store_dirty(); }

std::function<void()> Emitter::settle_for_exit() {
  return [this, cache = cache_] {
    cache_ = cache;
    store_dirty();
  };
}

void Emitter::store_dirty() {
  for (int slot = 0; slot < kNumSlots; ++slot) {
    const auto s = static_cast<Slot>(slot);
    if (!cache_.dirty(s)) continue;
    vmovaps(home(s), Ymm(cache_.host(s)));
    cache_.clean(s);
  }
}

Xbyak::Address Emitter::home(Slot slot) const {
  const int cached = slot / 2;
  const size_t part = slot % 2 * kPartBytes;
  if (cached < kNumRegisters)
    return yword[kThread + (offsetof(Thread, rf) + static_cast<size_t>(cached) * sizeof(Lanes) + part)];
  if (cached == kCachedRtop) return yword[kThread + (offsetof(Thread, rtop) + part)];
  const size_t flag = static_cast<size_t>(cached - kCachedFlagA);
  return yword[kFrame + (offsetof(Frame, flags) + flag * sizeof(Lanes) + part)];
}

// ---- Which register gives way: the one whose value is needed last

void Emitter::mark_uses(Use* uses, const Use& use, const flow::Resources& resources) {
  resources.registers.for_each([&](Register r) { uses[r] = use; });
  if (resources.state & flow::kFlagA) uses[kCachedFlagA] = use;
  if (resources.state & flow::kFlagB) uses[kCachedFlagB] = use;
  if (resources.state & flow::kRtop) uses[kCachedRtop] = use;
}

void Emitter::find_uses() {
  const uint32_t count = block_->count;
  uses_.assign((count + 1) * kNumCached, {kNever, false});
  next_exit_.assign(count + 1, block_->first + count);
  flow::Resources live;
  for (const uint32_t next : {block_->exit.next, block_->exit.taken})
    if (next != flow::kNowhere && passes_to(next)) live |= flow_.blocks[next].live;
  mark_uses(&uses_[count * kNumCached], {block_->first + count, true}, live);
  for (uint32_t n = count; n-- > 0;) {
    Use* const now = &uses_[n * kNumCached];
    std::copy_n(now + kNumCached, static_cast<size_t>(kNumCached), now);
    const flow::Access& access = flow_.access(flow_.nodes[block_->first + n]);
    next_exit_[n] = may_leave(access) ? block_->first + n : next_exit_[n + 1];
    mark_uses(now, {block_->first + n, false}, access.destroys);
    mark_uses(now, {block_->first + n, true}, access.reads | (access.writes - access.destroys));
  }
}

uint64_t Emitter::distance(int host) const {
  uint64_t least = ~uint64_t{0};
  cache_.for_each(host, [&](Slot slot) {
    const uint32_t next = next_use(node_, slot / 2).node;
    uint64_t needed = next - node_;
    if (next == kNever || is_dead(slot)) needed = kNotNeeded - must_store(slot);
    least = std::min(least, needed);
  });
  return least;
}

// Code after the blocks has no uses, but free registers.
int Emitter::farthest() const {
  for (int host = Cache::kHosts; host-- > 0;)
    if (cache_.empty(host) && may_give_way(host)) return host;
  int best = Cache::kNone;
  uint64_t most = 0;
  for (int host = Cache::kHosts; host-- > 0 && most < kNotNeeded;) {
    if (!may_give_way(host)) continue;
    const uint64_t needed = distance(host);
    if (best != Cache::kNone && needed <= most) continue;
    best = host;
    most = needed;
  }
  if (best == Cache::kNone) throw Xbyak::Error(Xbyak::ERR_INTERNAL);
  return best;
}

/// Nobody sees the value: it is overwritten first.
bool Emitter::is_dead(Slot slot) const {
  const Use &now = next_use(node_, slot / 2), &next = next_use(node_ + 1, slot / 2);
  if (now.node == node_ && now.reads) return false;
  return next.node != kNever && !next.reads && next.node < next_exit_[node_ - block_->first];
}

void Emitter::evict(int host) {
  cache_.for_each(host, [&](Slot slot) {
    if (must_store(slot)) vmovaps(home(slot), Ymm(host));
    cache_.unbind(slot);
  });
}

Emitter::Ymm Emitter::allocate() {
  const int host = farthest();
  evict(host);
  lock(host);
  return Ymm(host);
}

void Emitter::vacate_lower_half() {
  for (int host = 0; host < Cache::kHosts / 2; ++host) {
    int to = Cache::kHosts - 1;
    while (to >= Cache::kHosts / 2 && !(cache_.empty(to) && may_give_way(to))) --to;
    if (cache_.empty(host) || to < Cache::kHosts / 2) {
      evict(host);
      continue;
    }
    vmovaps(Ymm(to), Ymm(host));
    cache_.for_each(host, [&](Slot slot) { cache_.bind(slot, to, cache_.dirty(slot)); });
  }
}

/// What a cache held, from memory. A flag's home may have only its highest bits, so that a register which
/// shares the host register with it goes first.
void Emitter::reload(const Cache& cache) {
  for (int host = 0; host < Cache::kHosts; ++host) {
    std::optional<Slot> from;
    cache.for_each(host, [&](Slot slot) {
      if (!from || is_flag(*from)) from = slot;
    });
    if (from) vmovaps(Ymm(host), home(*from));
  }
}

// ---- Reads and writes

Source Emitter::read(int cached, bool into_register) {
  const Slot slot = slot_of(cached, part_);
  if (cache_.host(slot) == Cache::kNone) {
    if (!into_register) {
      const Use& next = next_use(node_ + 1, cached);
      const bool near = next.reads && next.node - node_ <= kNear;
      if (!near || distance(farthest()) <= next.node - node_) return Source(home(slot));
    }
    const Ymm host = allocate();
    vmovaps(host, home(slot));
    cache_.bind(slot, host.getIdx(), false);
  }
  lock(cache_.host(slot));
  return Source(Ymm(cache_.host(slot)));
}

Emitter::Ymm Emitter::read_part(int cached, int part) {
  const int own = std::exchange(part_, part);
  const Ymm reg = read(cached, true).reg();
  part_ = own;
  return reg;
}

void Emitter::bind(int cached, const Ymm& value) {
  cache_.bind(slot_of(cached, part_), value.getIdx(), true);
}

void Emitter::write(Register r, const Source& value, const Exec& exec) {
  if (!exec.masked) return bind(r, in_register(value));
  const Ymm to = scratch();
  blend(to, read(r), value, exec);
  bind(r, to);
}

void Emitter::bits_to(const Reg32& to, int cached) {
  const Scope scope(*this);
  const int part = std::exchange(part_, 0);
  vmovmskps(to, read(cached, true).reg());
  part_ = 1;
  vmovmskps(r10d, read(cached, true).reg());
  shl(r10d, 8);
  or_(to, r10d);
  part_ = part;
}

void Emitter::live_lanes_to(const Reg32& to) {
  const Scope scope(*this);
  const Ymm zero = scratch(), dead = scratch();
  vpxor(zero, zero, zero);
  const int part = part_;
  for (part_ = 0; part_ < 2; ++part_) {
    vpcmpeqd(dead, zero, in_thread(offsetof(Thread, msf)));
    vmovmskps(part_ ? r10d : to, dead);
  }
  part_ = part;
  shl(r10d, 8);
  or_(to, r10d);
  xor_(to, kAllLanes);
}

/// As bits, for functions that look at them. None changes them.
void Emitter::store_flag_bits() {
  for (const bool of_b : {false, true}) {
    bits_to(eax, of_b ? kCachedFlagB : kCachedFlagA);
    mov(word[kThread + (of_b ? offsetof(Thread, flag_b) : offsetof(Thread, flag_a))], ax);
  }
}

void Emitter::call_address(const void* function) {
  store_dirty();
  mov(rdi, kFrame);
  mov(rax, reinterpret_cast<uint64_t>(function));
  vzeroupper();
  call(rax);
  cache_ = Cache();
  unifa_.in_register = false;
}

// ---- Sources

Xbyak::Address Emitter::in_thread(size_t offset) const {
  return yword[kThread + (offset + static_cast<size_t>(part_) * kPartBytes)];
}
Xbyak::Address Emitter::in_frame(size_t offset) const {
  return yword[kFrame + (offset + static_cast<size_t>(part_) * kPartBytes)];
}
Xbyak::Address Emitter::constant(uint32_t bits) {
  std::array<uint32_t, 16> words;
  words.fill(bits);
  return constants(words);
}
Xbyak::Address Emitter::constants(const std::array<uint32_t, 16>& words) {
  return yword[rip + words_behind(words) + part_ * static_cast<int>(kPartBytes)];
}

Xbyak::Address Emitter::doubles(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  std::array<uint32_t, 16> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(bits >> (i % 2 * 32));
  return yword[rip + words_behind(words)];
}

Emitter::Ymm Emitter::in_register(const Source& source) {
  if (source.in_register()) return source.reg();
  const Ymm to = scratch();
  move(to, source);
  return to;
}

void Emitter::move(const Ymm& to, const Source& from) {
  if (from.constant() == 0u)
    vpxor(to, to, to);
  else
    vmovaps(to, from.operand());
}

void Emitter::spread_sign(const Ymm& to, const Source& from) { vpsrad(to, in_register(from), 31); }

void Emitter::spread_bits(const Ymm& to, const Reg32& bits) {
  std::array<uint32_t, 16> lanes;
  for (uint32_t i = 0; i < 16; ++i) lanes[i] = 1u << i;
  vmovd(Xmm(to.getIdx()), bits);
  vpbroadcastd(to, Xmm(to.getIdx()));
  vpand(to, to, constants(lanes));
  vpcmpeqd(to, to, constants(lanes));
}

}  // namespace v3d::qpu::jit::avx2
