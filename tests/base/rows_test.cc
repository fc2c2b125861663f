#include "gpu/base/rows.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace v3d {
namespace {

/// Two pages, of which the second one cannot be read.
class Edge {
 public:
  Edge() {
    pages_ = static_cast<char*>(
        mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages_ + size_, size_, PROT_NONE);
  }
  ~Edge() { munmap(pages_, 2 * size_); }
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;
  char* end() const { return pages_ + size_; }

 private:
  const size_t size_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* pages_;
};

template <uint32_t kWords>
void expect_rows() {
  const Edge edge;
  std::array<std::array<uint32_t, kWords>, kLanes> elements;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t c = 0; c < kWords; ++c) elements[lane][c] = 100 * c + lane + 0xff800000u;
  char* const first = edge.end() - sizeof(elements);
  std::memcpy(first, &elements, sizeof(elements));
  Lanes rows[kWords];
  load_rows<kWords>([&](size_t lane) { return first + lane * sizeof(elements[0]); }, rows);
  for (uint32_t c = 0; c < kWords; ++c)
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_EQ(rows[c][lane], elements[static_cast<size_t>(lane)][c]) << c << " of " << lane;
}

TEST(Rows, ElementsAreReadToTheirEndAndNotBeyond) {
  expect_rows<2>();
  expect_rows<3>();
  expect_rows<4>();
}

TEST(Rows, QuadsTurnedTwiceAreWhatTheyWere) {
  Lanes in[4], out[4], again[4];
  for (uint32_t i = 0; i < 4; ++i) in[i] = kLaneIndex + 100u * i;
  transpose_quads(in, out);
  transpose_quads(out, again);
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      EXPECT_EQ(out[i][lane], lane / 4 * 4 + i + 100 * (lane % 4));
      EXPECT_EQ(again[i][lane], in[i][lane]);
    }
}

}  // namespace
}  // namespace v3d
