/// These functions read and write arrays as NumPy keeps them in files (.npy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace v3d::tools {

/// What elements are: those that QPU programs have in memory.
struct ElementType {
  const char* name;   ///< "f32"
  const char* descr;  ///< of little-endian hosts, "<f4"
  uint32_t bytes;
};
/// By either name. Null: there is none.
const ElementType* find_element_type(const std::string& name);
/// "f32, f16, ..."
std::string element_type_names();

struct Array {
  const ElementType* type = nullptr;
  std::vector<uint64_t> shape = {};  ///< in C's order
  std::string data = {};

  uint64_t elements() const;
  /// "f32[16,64]"
  std::string text() const;
};

/// So large may an array be.
inline constexpr uint64_t kMostArrayBytes = uint64_t{1} << 28;
inline constexpr size_t kMostDimensions = 8;

/// Zeros of a type and shape like f32[1024] or u8[16,64].
absl::StatusOr<Array> parse_shape(const std::string& text);
/// Sets all elements to a number, or with "count" to 0, 1, 2 ..., as far as their type has that.
absl::Status fill(const std::string& value, Array* array);
/// The contents of a file. InvalidArgument says what is wrong with it.
absl::StatusOr<Array> parse_npy(const std::string& contents);
std::string npy_of(const Array& array);
/// An element as text.
std::string element_text(const Array& array, uint64_t number);
/// The first elements and the last.
std::string elements_text(const Array& array);

}  // namespace v3d::tools
