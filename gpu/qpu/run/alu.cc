#include "gpu/qpu/run/alu.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "gpu/base/log.h"

namespace v3d::qpu {
namespace {

template <Op op, Unpack ua, Unpack ub>
Lanes alu(Thread& thread, Lanes a, Lanes b, LaneMask exec) {
  return evaluate<op>(thread, unpacked<ua>(a), unpacked<ub>(b), exec);
}

// Only FCMP and VFCMP look at unpacked operands for their flags; all others have raw ones or take the result.
template <Op op, Flag which, Unpack ua, Unpack ub>
LaneMask flag(Lanes a, Lanes b, Lanes result) {
  const Lanes x = unpacked<ua>(a), y = unpacked<ub>(b);
  return flag_lanes<op, which>(x, y, result);
}

// A table over the first `count` values of `unpacks` for both operands, or for operand a only.
template <const auto& unpacks, int count, bool both, template <Unpack, Unpack> class Entry>
auto lookup(Unpack a, Unpack b) {
  constexpr int kCountB = both ? count : 1;
  static constexpr auto kTable = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array{Entry < unpacks[i / kCountB], both ? unpacks[i % kCountB] : Unpack::kNone > ::value...};
  }
  (std::make_integer_sequence<int, count * kCountB>{});
  const auto code = [](Unpack unpack) {
    const auto* const end = unpacks + count;
    const auto* const found = std::find(unpacks, end, unpack);
    return found != end ? found - unpacks : std::find(unpacks, end, Unpack::kNone) - unpacks;
  };
  return kTable[static_cast<size_t>(both ? code(a) * kCountB + code(b) : code(a))];
}

template <Input input, int operands, template <Unpack, Unpack> class Entry>
auto find(Unpack a, Unpack b) {
  if constexpr (input == Input::kFloat) return lookup<kFloatUnpacks, 4, operands == 2, Entry>(a, b);
  if constexpr (input == Input::kFloatMove) return lookup<kFloatUnpacks, 7, false, Entry>(a, b);
  if constexpr (input == Input::kIntMove) return lookup<kIntUnpacks, 5, false, Entry>(a, b);
  if constexpr (input == Input::kHalf) return lookup<kHalfUnpacks, 8, false, Entry>(a, b);
  if constexpr (input == Input::kRaw) return Entry<Unpack::kNone, Unpack::kNone>::value;
}

template <Op op>
struct AluEntries {
  template <Unpack ua, Unpack ub>
  struct Entry {
    static constexpr AluFn value = &alu<op, ua, ub>;
  };
};

template <Op op, Flag which>
struct FlagEntries {
  template <Unpack ua, Unpack ub>
  struct Entry {
    static constexpr FlagFn value = &flag<op, which, ua, ub>;
  };
};

template <Op op, Flag which>
FlagFn find_flag_of(Unpack a, Unpack b) {
  if constexpr (is_compare(info(op).flags))
    return find<info(op).input, info(op).operands, FlagEntries<op, which>::template Entry>(a, b);
  return &flag<op, which, Unpack::kNone, Unpack::kNone>;
}

template <Flag which>
FlagFn find_flag_which(Op op, Unpack a, Unpack b) {
  switch (op) {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  case Op::k##op:                                                                                     \
    return find_flag_of<Op::k##op, which>(a, b);
#include "gpu/qpu/isa/isa.def"
  }
  return nullptr;
}

}  // namespace

AluFn find_alu(Op op, Unpack a, Unpack b) {
  switch (op) {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  case Op::k##op:                                                                                     \
    return find<Input::k##input, operands, AluEntries<Op::k##op>::template Entry>(a, b);
#include "gpu/qpu/isa/isa.def"
  }
  return nullptr;
}

FlagFn find_flag(Op op, FlagWrite write, Unpack a, Unpack b) {
  switch (info(write).flag) {
    case Flag::kZ:
      return find_flag_which<Flag::kZ>(op, a, b);
    case Flag::kN:
      return find_flag_which<Flag::kN>(op, a, b);
    case Flag::kC:
      return find_flag_which<Flag::kC>(op, a, b);
  }
  return nullptr;
}

Lanes unpack_halves(Unpack unpack, Lanes v) {
  static constexpr Lanes (*kFunctions[])(Lanes) = {
      unpacked<Unpack::kNone>, unpacked<Unpack::kFf>, unpacked<Unpack::kLl>, unpacked<Unpack::kHh>,
      unpacked<Unpack::kSwp>,  unpacked<Unpack::kU5>, unpacked<Unpack::kU6>, unpacked<Unpack::kU7>};
  for (size_t n = 0; n < std::size(kHalfUnpacks); ++n)
    if (kHalfUnpacks[n] == unpack) return kFunctions[n](v);
  return v;
}

Lanes unknown_operation(Op op) {
  static std::array<std::atomic<bool>, kNumOps> reported{};
  if (!reported[static_cast<size_t>(op)].exchange(true))
    log_warning("qpu: the meaning of %s is not known; it does nothing and gives 0", info(op).mnemonic);
  return Lanes{};
}

}  // namespace v3d::qpu
