// Arrays of NumPy in files, and those that are named by their shape.
#include "tools/cli/kernels/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace v3d::tools::test {
namespace {

using testing::HasSubstr;

std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string file("\x93NUMPY");
  file += version;
  file += '\0';
  file += static_cast<char>(dictionary.size());
  file.append(version > 1 ? 3 : 1, '\0');
  return file + dictionary + data;
}

std::string dictionary(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

std::string error_of(const std::string& file) { return std::string(parse_npy(file).status().message()); }

TEST(Npy, ReadsWhatItWrites) {
  for (const char* text : {"f32[2,3]", "u8[5]", "i16[1,1,1]", "f16[0]", "u32[1]"}) {
    auto array = parse_shape(text);
    ASSERT_TRUE(array.ok()) << array.status();
    ASSERT_TRUE(fill("count", &*array).ok());
    const auto again = parse_npy(npy_of(*array));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->data, array->data);
    EXPECT_EQ(again->shape, array->shape);
    EXPECT_EQ(again->type, array->type);
    EXPECT_EQ((npy_of(*array).size() - array->data.size()) % 64, 0u);  // as the format asks for
  }
}

TEST(Npy, ReadsAllVersionsAndShapes) {
  const std::string four("\0\0\x80?", 4);
  EXPECT_TRUE(parse_npy(npy(dictionary("<f4", "(1,)"), four)).ok());
  EXPECT_TRUE(parse_npy(npy(dictionary("<f4", "(1,)"), four, 2)).ok());
  const auto scalar = parse_npy(npy(dictionary("<f4", "()"), four));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(element_text(*scalar, 0), "1");
}

TEST(Npy, WhatCannotBeIsNamed) {
  EXPECT_THAT(error_of(""), HasSubstr("no .npy file"));
  EXPECT_THAT(error_of("PK\x03\x04 a zip file"), HasSubstr("no .npy file"));
  EXPECT_THAT(error_of(npy("", "", 9)), HasSubstr("version 9"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(1,)"), "").substr(0, 30)),
              HasSubstr("ends inside its header"));
  EXPECT_THAT(error_of(npy(dictionary("<f8", "(1,)"), "12345678")),
              HasSubstr("of type <f8; programs take f32"));
  EXPECT_THAT(error_of(npy(dictionary(">f4", "(1,)"), "1234")), HasSubstr("of type >f4"));
  EXPECT_THAT(error_of(npy("{'descr': [('a', '<f4')], 'shape': (1,)}", "1234")), HasSubstr("records"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(1,)", "True"), "1234")), HasSubstr("Fortran"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(2,)"), "1234")),
              HasSubstr("4 bytes of elements, and f32[2] is 8"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(-1,)"), "1234")), HasSubstr("shape"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(4294967296, 4294967296)"), "1234")), HasSubstr("shape"));
  EXPECT_THAT(error_of(npy(dictionary("<f4", "(1,1,1,1,1,1,1,1,1)"), "1234")), HasSubstr("8 dimensions"));
  EXPECT_THAT(error_of(npy("{'descr': '<f4', 'fortran_order': False, }", "1234")), HasSubstr("no shape"));
}

TEST(Npy, ShapesThatCannotBe) {
  for (const char* text : {"f32", "f64[3]", "[3]", "f32[", "f32[x]", "f32[-1]", "f32[67108865]", "f32[]"})
    EXPECT_FALSE(parse_shape(text).ok()) << text;
}

TEST(Npy, FillsWithNumbers) {
  const auto shown = [](const char* shape, const char* value) {
    auto array = parse_shape(shape);
    EXPECT_TRUE(array.ok() && fill(value, &*array).ok());
    return element_text(*array, array->elements() - 1);
  };
  EXPECT_EQ(shown("f32[4]", "count"), "3");
  EXPECT_EQ(shown("f16[1]", "0.5"), "0.5");
  EXPECT_EQ(shown("i8[1]", "-3"), "-3");
  EXPECT_EQ(shown("u8[300]", "count"), "43");
  EXPECT_EQ(shown("i32[1]", "nan"), "0");
  EXPECT_EQ(shown("u32[1]", "4294967295"), "4294967295");
  auto array = parse_shape("f32[1]");
  EXPECT_FALSE(fill("x", &*array).ok());
}

}  // namespace
}  // namespace v3d::tools::test
