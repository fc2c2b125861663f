#include "tools/debugger/expression.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/base/float16.h"
#include "tools/inspect/v3d_state.h"

namespace v3d::debugger {
namespace {

using State = inspect::V3dState;

std::string stripped(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

/// Numbers of a lane or an element, from 0.
absl::StatusOr<uint64_t> parse_index(const std::string& text) {
  uint64_t index;
  if (!absl::SimpleAtoi(text, &index))
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is no number of a lane or element", text));
  return index;
}

std::optional<uint64_t> find(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return {};
  return static_cast<uint64_t>(found - names.begin());
}

std::optional<Operand> find_name(std::string_view name, chip::Generation generation,
                                 const tools::Kernel& kernel) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    if (kernel.buffers[i].name == name) return Operand{Operand::Kind::kElement, i, {}};
  if (const auto number = find(State::registers(generation), name))
    return Operand{Operand::Kind::kRegister, *number, {}};
  if (const auto number = find(State::flags(), name)) return Operand{Operand::Kind::kFlag, *number, {}};
  if (name == "pc") return Operand{Operand::Kind::kPc, 0, {}};
  if (name == "tidx") return Operand{Operand::Kind::kTidx, 0, {}};
  return {};
}

/// The lanes of a register or flag, or the one that was asked for.
absl::StatusOr<Value> some_lanes(const Operand& operand, Value all) {
  if (!operand.index) return all;
  if (*operand.index >= kLanes) return absl::NotFoundError(absl::StrFormat("lanes are 0 to %d", kLanes - 1));
  all.lanes = {all.lanes[*operand.index]};
  return all;
}

absl::StatusOr<uint32_t> word_at(const mmu::AddressSpace& space, uint64_t address, uint32_t bytes) {
  if (address > UINT32_MAX - 3 || !space.is_mapped(static_cast<GpuAddr>(address)) ||
      !space.is_mapped(static_cast<GpuAddr>(address + bytes - 1)))
    return absl::NotFoundError(absl::StrFormat("0x%08x is not mapped", address));
  uint32_t word = 0;
  space.memory().read(static_cast<GpuAddr>(address), &word, bytes);
  return word;
}

absl::StatusOr<Value> element_of(const Operand& operand, const Place& place) {
  const tools::KernelBuffer& buffer = place.kernel.buffers[operand.number];
  const uint64_t index = operand.index.value_or(0);
  if (index >= buffer.array.elements())
    return absl::NotFoundError(absl::StrFormat("%s has %d elements", buffer.name, buffer.array.elements()));
  const tools::ElementType& type = *buffer.array.type;
  const auto word = word_at(place.space, buffer.address + index * type.bytes, type.bytes);
  if (!word.ok()) return word.status();
  return Value{.lanes = {*word}, .type = &type};
}

/// An element as a number.
double number_of(uint32_t word, const tools::ElementType* type, bool is_real) {
  const std::string_view name = type ? type->name : is_real ? "f32" : "i32";
  if (name == "f32") return std::bit_cast<float>(word);
  if (name == "f16") return half_to_float(static_cast<uint16_t>(word));
  if (name == "i32") return std::bit_cast<int32_t>(word);
  if (name == "i16") return static_cast<int16_t>(word);
  if (name == "i8") return static_cast<int8_t>(word);
  return word;
}

bool compares(Condition::Compare compare, double a, double b) {
  switch (compare) {
    case Condition::Compare::kNonzero:
      return a != 0;
    case Condition::Compare::kEqual:
      return a == b;
    case Condition::Compare::kNotEqual:
      return a != b;
    case Condition::Compare::kLess:
      return a < b;
    case Condition::Compare::kLessEqual:
      return a <= b;
    case Condition::Compare::kGreater:
      return a > b;
    case Condition::Compare::kGreaterEqual:
      return a >= b;
  }
  return false;
}

}  // namespace

absl::StatusOr<Operand> parse_operand(const std::string& given, chip::Generation generation,
                                      const tools::Kernel& kernel) {
  const std::string text = stripped(given);
  if (text.starts_with("*")) {
    const std::string number = stripped(text.substr(1));
    uint32_t address;
    if (!(number.starts_with("0x") ? absl::SimpleHexAtoi(number, &address)
                                   : absl::SimpleAtoi(number, &address)))
      return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is no address", number));
    return Operand{Operand::Kind::kMemory, address, {}};
  }
  const size_t bracket = std::min(text.find('['), text.size());
  const std::string name = text.substr(0, bracket);
  auto operand = find_name(name, generation, kernel);
  if (!operand)
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no register, flag or buffer, nor pc, tidx or *ADDRESS", name));
  if (bracket == text.size()) return *operand;
  if (!text.ends_with("]") || operand->kind == Operand::Kind::kPc || operand->kind == Operand::Kind::kTidx)
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is no NAME[NUMBER]", text));
  const auto index = parse_index(text.substr(bracket + 1, text.size() - bracket - 2));
  if (!index.ok()) return index.status();
  operand->index = *index;
  return *operand;
}

absl::StatusOr<Value> value_of(const Operand& operand, const Place& place) {
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Lanes& lanes = State::at(place.thread, operand.number);
      Value value;
      for (int lane = 0; lane < kLanes; ++lane) value.lanes.push_back(lanes[lane]);
      return some_lanes(operand, std::move(value));
    }
    case Operand::Kind::kFlag: {
      const LaneMask mask = State::flags_of(place.thread)[operand.number];
      Value value{.lanes = {}, .type = nullptr, .is_flag = true};
      for (int lane = 0; lane < kLanes; ++lane) value.lanes.push_back(mask >> lane & 1u);
      return some_lanes(operand, std::move(value));
    }
    case Operand::Kind::kElement:
      return element_of(operand, place);
    case Operand::Kind::kMemory: {
      const auto word = word_at(place.space, operand.number, 4);
      if (!word.ok()) return word.status();
      return Value{.lanes = {*word}};
    }
    case Operand::Kind::kPc:
      return Value{.lanes = {place.thread.pc}};
    case Operand::Kind::kTidx:
      return Value{.lanes = {place.thread.tidx}};
  }
  return absl::InvalidArgumentError("no operand");
}

absl::StatusOr<Condition> parse_condition(const std::string& text, chip::Generation generation,
                                          const tools::Kernel& kernel) {
  using Compare = Condition::Compare;
  // Those of two characters come first.
  constexpr std::pair<const char*, Compare> kSigns[] = {
      {"==", Compare::kEqual},        {"!=", Compare::kNotEqual}, {"<=", Compare::kLessEqual},
      {">=", Compare::kGreaterEqual}, {"<", Compare::kLess},      {">", Compare::kGreater}};
  Condition condition;
  std::string left = text;
  for (const auto& [sign, compare] : kSigns) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    left = text.substr(0, at);
    condition.compare = compare;
    const std::string number = stripped(text.substr(at + std::strlen(sign)));
    const auto word = tools::parse_uniform(number, kernel);
    if (!word.ok()) return word.status();
    condition.is_real = !number.starts_with("0x") && number.find_first_of(".eE") != std::string::npos;
    condition.number =
        condition.is_real ? double{std::bit_cast<float>(*word)} : std::bit_cast<int32_t>(*word);
    break;
  }
  const auto operand = parse_operand(left, generation, kernel);
  if (!operand.ok()) return operand.status();
  condition.operand = *operand;
  return condition;
}

bool holds(const Condition& condition, const Place& place) {
  const auto value = value_of(condition.operand, place);
  if (!value.ok()) return false;
  return std::any_of(value->lanes.begin(), value->lanes.end(), [&](uint32_t word) {
    return compares(condition.compare, number_of(word, value->type, condition.is_real), condition.number);
  });
}

std::string word_text(uint32_t word, bool hex_only) {
  if (hex_only) return absl::StrFormat("0x%08x", word);
  return absl::StrFormat("0x%08x  %d  %.7g", word, std::bit_cast<int32_t>(word), std::bit_cast<float>(word));
}

std::string lanes_text(const std::vector<uint32_t>& lanes, bool is_flag, bool hex_only) {
  if (is_flag) {
    std::string text;
    for (const uint32_t lane : lanes) text += lane ? '1' : '0';
    return text;
  }
  if (std::all_of(lanes.begin(), lanes.end(), [&](uint32_t lane) { return lane == lanes[0]; }))
    return word_text(lanes[0], hex_only) + (lanes.size() > 1 ? " in all lanes" : "");
  std::string text;
  for (const uint32_t lane : lanes) absl::StrAppendFormat(&text, "%s%08x", text.empty() ? "" : " ", lane);
  return text;
}

std::string value_text(const Value& value, bool hex_only) {
  if (value.type == nullptr) return lanes_text(value.lanes, value.is_flag, hex_only);
  if (hex_only) return absl::StrFormat("0x%0*x", static_cast<int>(2 * value.type->bytes), value.lanes[0]);
  return absl::StrFormat("%.9g", number_of(value.lanes[0], value.type, false));
}

}  // namespace v3d::debugger
