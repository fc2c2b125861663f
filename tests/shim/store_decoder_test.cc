#include "shim/board/store_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace v3d::shim {
namespace {

constexpr uint64_t kZero = 0x40, kSign = 0x80, kCarry = 1;

class StoreDecoderTest : public testing::Test {
 protected:
  StoreDecoderTest() {
    for (uint64_t n = 0; n < 16; ++n) thread_.registers[n] = 0x1111111100000000 * (n + 1) + n;
  }
  std::optional<Store> execute(std::vector<uint8_t> code, uint64_t old = 0) {
    std::array<uint8_t, 16> bytes = {};
    std::copy(code.begin(), code.end(), bytes.begin());
    Store store;
    if (!execute_store(bytes.data(), old, &thread_, &store)) return {};
    EXPECT_EQ(store.length, code.size());
    return store;
  }
  StoppedThread thread_ = {};
};

TEST_F(StoreDecoderTest, Moves) {
  const auto mov = execute({0x89, 0x50, 0x7c});  // mov [rax+124], edx
  ASSERT_TRUE(mov);
  EXPECT_EQ(mov->width, 4u);
  EXPECT_EQ(mov->value, 2u);
  const auto wide = execute({0x4c, 0x89, 0x84, 0x8a, 1, 2, 3, 4});  // mov [rdx+rcx*4+...], r8
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->width, 8u);
  EXPECT_EQ(wide->value, thread_.registers[8]);
  const auto constant =
      execute({0xc7, 0x05, 0, 1, 0, 0, 0xef, 0xbe, 0xad, 0xde});  // mov dword [rip+256], ...
  ASSERT_TRUE(constant);
  EXPECT_EQ(constant->value, 0xdeadbeefu);
  const auto half = execute({0x66, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 0x34, 0x12});  // mov word [0], 0x1234
  ASSERT_TRUE(half);
  EXPECT_EQ(half->width, 2u);
  EXPECT_EQ(half->value, 0x1234u);
  thread_.registers[3] = 0xabcd;
  EXPECT_EQ(execute({0x88, 0x38})->value, 0xabu);        // mov [rax], bh
  EXPECT_EQ(execute({0x40, 0x88, 0x38})->value, 0x07u);  // mov [rax], dil
}

TEST_F(StoreDecoderTest, ReadsModifiesAndWrites) {
  thread_.flags = kCarry;
  EXPECT_EQ(execute({0x81, 0x08, 0, 0, 0, 0x80}, 5)->value, 0x80000005u);  // or dword [rax], 0x80000000
  EXPECT_EQ(thread_.flags & (kZero | kSign | kCarry), kSign);
  EXPECT_EQ(execute({0x83, 0x20, 0xfb}, 4)->value, 0u);  // and dword [rax], -5
  EXPECT_EQ(thread_.flags & (kZero | kSign | kCarry), kZero);
  EXPECT_EQ(execute({0x29, 0x08}, 0)->value, 0xffffffffu);  // sub [rax], ecx
  EXPECT_EQ(thread_.flags & (kZero | kSign | kCarry), kSign | kCarry);
  EXPECT_EQ(execute({0xf0, 0x01, 0x08}, 7)->value, 8u);  // lock add [rax], ecx
  EXPECT_EQ(execute({0x87, 0x08}, 9)->value, 1u);        // xchg [rax], ecx
  EXPECT_EQ(thread_.registers[1], 9u);
}

TEST_F(StoreDecoderTest, RefusesWhatItDoesNotKnow) {
  const StoppedThread before = thread_;
  EXPECT_FALSE(execute({0x39, 0x08}));        // cmp [rax], ecx
  EXPECT_FALSE(execute({0x89, 0xc8}));        // mov eax, ecx: no memory
  EXPECT_FALSE(execute({0xaa}));              // stosb
  EXPECT_FALSE(execute({0x0f, 0x11, 0x00}));  // movups [rax], xmm0
  EXPECT_FALSE(execute({0x64, 0x89, 0x08}));  // mov fs:[rax], ecx
  EXPECT_TRUE(std::equal(std::begin(before.registers), std::end(before.registers), thread_.registers));
}

}  // namespace
}  // namespace v3d::shim
