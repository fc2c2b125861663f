#include "gpu/qpu/run/alu.h"

#include <array>
#include <atomic>
#include <utility>

#include "gpu/base/log.h"

namespace v3d::qpu {
namespace {

constexpr Unpack kFloatUnpacks[] = {Unpack::kNone, Unpack::kAbs,  Unpack::kL,   Unpack::kH,
                                    Unpack::kSat,  Unpack::kNsat, Unpack::kMax0};
constexpr Unpack kIntUnpacks[] = {Unpack::kNone, Unpack::kUl, Unpack::kUh, Unpack::kIl, Unpack::kIh};
constexpr Unpack kHalfUnpacks[] = {Unpack::kNone, Unpack::kFf, Unpack::kLl, Unpack::kHh,
                                   Unpack::kSwp,  Unpack::kU5, Unpack::kU6, Unpack::kU7};

enum class Which { kZ, kN, kC };

Which which_flag(FlagWrite write) {
  const int code = static_cast<int>(write);
  return static_cast<Which>(code < 4 ? code - 1 : (code >> 2) - 1);
}

template <Op op, Unpack ua, Unpack ub>
Lanes alu(Thread& thread, Lanes a, Lanes b, LaneMask exec) {
  return evaluate<op>(thread, unpacked<ua>(a), unpacked<ub>(b), exec);
}

// Only FCMP and VFCMP look at unpacked operands for their flags; all others have raw ones or take the result.
template <Op op, Which which, Unpack ua, Unpack ub>
LaneMask flag(Lanes a, Lanes b, Lanes result) {
  const Lanes x = unpacked<ua>(a), y = unpacked<ub>(b);
  if constexpr (which == Which::kZ) return flag_z<op>(x, y, result);
  if constexpr (which == Which::kN) return flag_n<op>(x, y, result);
  return flag_c<op>(x, y, result);
}

// A table over the first `count` values of `unpacks` for both operands, or for operand a only.
template <const auto& unpacks, int count, bool both, template <Unpack, Unpack> class Entry>
auto lookup(Unpack a, Unpack b) {
  constexpr int kCountB = both ? count : 1;
  static constexpr auto kTable = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array{Entry<unpacks[i / kCountB], unpacks[i % kCountB]>::value...};
  }
  (std::make_integer_sequence<int, count * kCountB>{});
  int at = 0;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < kCountB; ++j)
      if (unpacks[i] == a && unpacks[j] == b) at = i * kCountB + j;
  return kTable[static_cast<size_t>(at)];
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

template <Op op, Which which>
struct FlagEntries {
  template <Unpack ua, Unpack ub>
  struct Entry {
    static constexpr FlagFn value = &flag<op, which, ua, ub>;
  };
};

template <Op op, Which which>
FlagFn find_flag_of(Unpack a, Unpack b) {
  if constexpr (is_compare(info(op).flags))
    return find<info(op).input, info(op).operands, FlagEntries<op, which>::template Entry>(a, b);
  return &flag<op, which, Unpack::kNone, Unpack::kNone>;
}

template <Which which>
FlagFn find_flag_which(Op op, Unpack a, Unpack b) {
  switch (op) {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, traits) \
  case Op::k##op:                                                                     \
    return find_flag_of<Op::k##op, which>(a, b);
#include "gpu/qpu/isa/isa.def"
  }
  return nullptr;
}

}  // namespace

AluFn find_alu(Op op, Unpack a, Unpack b) {
  switch (op) {
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, traits) \
  case Op::k##op:                                                                     \
    return find<Input::k##input, operands, AluEntries<Op::k##op>::template Entry>(a, b);
#include "gpu/qpu/isa/isa.def"
  }
  return nullptr;
}

FlagFn find_flag(Op op, FlagWrite write, Unpack a, Unpack b) {
  switch (which_flag(write)) {
    case Which::kZ:
      return find_flag_which<Which::kZ>(op, a, b);
    case Which::kN:
      return find_flag_which<Which::kN>(op, a, b);
    case Which::kC:
      return find_flag_which<Which::kC>(op, a, b);
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
