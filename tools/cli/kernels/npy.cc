#include "tools/cli/kernels/npy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gpu/base/float16.h"

namespace v3d::tools {
namespace {

constexpr ElementType kTypes[] = {{"f32", "<f4", 4}, {"f16", "<f2", 2}, {"u32", "<u4", 4}, {"i32", "<i4", 4},
                                  {"u16", "<u2", 2}, {"i16", "<i2", 2}, {"u8", "|u1", 1},  {"i8", "|i1", 1}};
constexpr char kMagic[] = "\x93NUMPY";

absl::Status bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

/// Sets the shape to what a list of numbers says. False: it is none, or the array is too large.
bool set_shape(absl::string_view list, Array* array) {
  uint64_t bytes = array->type->bytes;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    part = absl::StripAsciiWhitespace(part);
    uint64_t size;
    if (part.empty() && !array->shape.empty()) continue;  // (3,)
    if (!absl::SimpleAtoi(part, &size) || array->shape.size() == kMostDimensions) return false;
    if (size && bytes > kMostArrayBytes / size) return false;
    bytes *= size;
    array->shape.push_back(size);
  }
  return true;
}

/// The value of a key in the dictionary that heads an .npy file: what stands before the next comma outside of
/// parentheses. Empty: there is none.
absl::string_view value_of(absl::string_view header, absl::string_view key) {
  const size_t found = header.find(absl::StrCat("'", key, "':"));
  if (found == absl::string_view::npos) return {};
  absl::string_view value = absl::StripLeadingAsciiWhitespace(header.substr(found + key.size() + 3));
  const size_t end = absl::StartsWith(value, "(") ? value.find(')') + 1 : value.find_first_of(",}");
  return value.substr(0, end);
}

template <typename T>
T element(const Array& array, uint64_t number) {
  T value;
  std::memcpy(&value, array.data.data() + number * sizeof value, sizeof value);
  return value;
}

/// A number as the low bits of an element; of an integer those of its value in 64 bits.
void set_element(Array* array, uint64_t number, double value) {
  uint64_t bits = 0;
  if (array->type->name[0] != 'f') {
    bits = static_cast<uint64_t>(
        static_cast<int64_t>(std::isnan(value) ? 0 : std::clamp(value, -0x1p62, 0x1p62)));
  } else if (array->type->bytes == 2) {
    bits = float_to_half(static_cast<float>(value));
  } else {
    const auto real = static_cast<float>(value);
    std::memcpy(&bits, &real, sizeof real);
  }
  std::memcpy(array->data.data() + number * array->type->bytes, &bits, array->type->bytes);
}

}  // namespace

const ElementType* find_element_type(const std::string& name) {
  for (const ElementType& type : kTypes)
    if (name == type.name || name == type.descr) return &type;
  return nullptr;
}

std::string element_type_names() {
  return absl::StrJoin(kTypes, ", ",
                       [](std::string* out, const ElementType& type) { absl::StrAppend(out, type.name); });
}

uint64_t Array::elements() const { return data.size() / type->bytes; }

std::string Array::text() const { return absl::StrCat(type->name, "[", absl::StrJoin(shape, ","), "]"); }

absl::StatusOr<Array> parse_shape(const std::string& text) {
  const size_t open = text.find('[');
  Array array{.type = find_element_type(text.substr(0, std::min(open, text.size())))};
  if (!array.type || open == std::string::npos || !text.ends_with("]"))
    return bad(absl::StrCat("\"", text, "\" is no TYPE[SHAPE] like f32[1024] or u8[16,64]; types are ",
                            element_type_names()));
  if (!set_shape(text.substr(open + 1, text.size() - open - 2), &array))
    return bad(absl::StrFormat("\"%s\" is no shape of at most %d dimensions and %d MiB", text,
                               kMostDimensions, kMostArrayBytes >> 20));
  uint64_t bytes = array.type->bytes;
  for (const uint64_t size : array.shape) bytes *= size;
  array.data.resize(bytes);
  return array;
}

absl::Status fill(const std::string& value, Array* array) {
  double number = 0;
  const bool counts = value == "count";
  if (!counts && !absl::SimpleAtod(value, &number))
    return bad(absl::StrCat("\"", value, "\" is neither a number nor count"));
  for (uint64_t i = 0; i < array->elements(); ++i)
    set_element(array, i, counts ? static_cast<double>(i) : number);
  return absl::OkStatus();
}

absl::StatusOr<Array> parse_npy(const std::string& contents) {
  if (!contents.starts_with(kMagic) || contents.size() < 12) return bad("it is no .npy file");
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(contents[at]); };
  const bool is_long = byte(6) > 1;
  if (byte(6) < 1 || byte(6) > 3) return bad(absl::StrFormat("version %d of .npy is not known", byte(6)));
  const size_t begin = is_long ? 12 : 10;
  size_t length = byte(8) | size_t{byte(9)} << 8;
  if (is_long) length |= size_t{byte(10)} << 16 | size_t{byte(11)} << 24;
  if (length > contents.size() - begin) return bad("it ends inside its header");
  const absl::string_view header = absl::string_view(contents).substr(begin, length);
  absl::string_view descr = value_of(header, "descr"), shape = value_of(header, "shape");
  if (!absl::ConsumePrefix(&descr, "'") || !absl::ConsumeSuffix(&descr, "'"))
    return bad("its elements are records");
  Array array{.type = find_element_type(std::string(descr))};
  if (!array.type)
    return bad(absl::StrCat("its elements are of type ", descr, "; programs take ", element_type_names()));
  if (value_of(header, "fortran_order") != "False")
    return bad("its elements stand in Fortran's order; numpy.ascontiguousarray puts them into C's");
  if (!absl::ConsumePrefix(&shape, "(") || !absl::ConsumeSuffix(&shape, ")")) return bad("it has no shape");
  if (!absl::StripAsciiWhitespace(shape).empty() && !set_shape(shape, &array))
    return bad(absl::StrFormat("its shape (%s) is none of at most %d dimensions and %d MiB", shape,
                               kMostDimensions, kMostArrayBytes >> 20));
  uint64_t bytes = array.type->bytes;
  for (const uint64_t size : array.shape) bytes *= size;
  if (contents.size() - begin - length != bytes)
    return bad(absl::StrFormat("it has %d bytes of elements, and %s is %d", contents.size() - begin - length,
                               array.text(), bytes));
  array.data = contents.substr(begin + length);
  return array;
}

std::string npy_of(const Array& array) {
  std::string header =
      absl::StrFormat("{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", array.type->descr,
                      absl::StrJoin(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  constexpr size_t kBefore = 10, kAligned = 64;
  header.append(kAligned - 1 - (kBefore + header.size()) % kAligned, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header + array.data;
}

std::string element_text(const Array& array, uint64_t number) {
  const std::string name = array.type->name;
  if (name == "f32") return absl::StrFormat("%.9g", element<float>(array, number));
  if (name == "f16") return absl::StrFormat("%.5g", half_to_float(element<uint16_t>(array, number)));
  if (name == "u32") return absl::StrCat(element<uint32_t>(array, number));
  if (name == "i32") return absl::StrCat(element<int32_t>(array, number));
  if (name == "u16") return absl::StrCat(element<uint16_t>(array, number));
  if (name == "i16") return absl::StrCat(element<int16_t>(array, number));
  if (name == "u8") return absl::StrCat(element<uint8_t>(array, number));
  return absl::StrCat(int{element<int8_t>(array, number)});
}

std::string elements_text(const Array& array) {
  constexpr uint64_t kShown = 8;
  std::string text;
  const uint64_t count = array.elements();
  for (uint64_t i = 0; i < count && i < kShown; ++i)
    absl::StrAppend(&text, i ? ", " : "", element_text(array, i));
  if (count > kShown)
    absl::StrAppend(&text, count > kShown + 1 ? ", ..., " : ", ", element_text(array, count - 1));
  return text;
}

}  // namespace v3d::tools
