#include "tools/cli/files/size_text.h"

#include <gtest/gtest.h>

namespace v3d::tools {
namespace {

TEST(SizeText, NamesTheUnitThatFits) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1), "1 byte");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1024), "1.0 KiB");
  EXPECT_EQ(size_text(12'595), "12.3 KiB");
  EXPECT_EQ(size_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(size_text(uint64_t{5} << 30), "5.0 GiB");
  EXPECT_EQ(size_text(uint64_t{5000} << 40), "5000.0 TiB");
}

}  // namespace
}  // namespace v3d::tools
