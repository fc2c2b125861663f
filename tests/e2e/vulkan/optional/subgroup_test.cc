/// Operations among the lanes of a subgroup. Where an invocation stands is asked of the shader; what it
/// should get is computed here from the values of its subgroup.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <random>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kCount = 64;  // one workgroup

/// One workgroup of a shader with subgroup.glsl in it.
class Workgroup {
 public:
  Workgroup(Gpu& gpu, std::span<const uint32_t> code, uint32_t results) : results_(results) {
    std::mt19937 random(5);
    values_.resize(kCount + 1);
    for (uint32_t& v : values_) v = static_cast<uint32_t>(random());
    values_[kCount] = 3;  // a delta that the compiler does not know
    const Buffer where = storage_buffer(gpu, kCount * 4);
    out_ = compute<uint32_t>(gpu, code, {storage_buffer_of(gpu, values_), where}, kCount * results, 1);
    for (uint32_t i = 0; i < kCount; ++i) {
      lane_.push_back(where.as<uint32_t>()[i] & 0xffff);
      subgroup_.push_back(where.as<uint32_t>()[i] >> 16);
      members_[subgroup_[i]].resize(std::max<size_t>(members_[subgroup_[i]].size(), lane_[i] + 1), kCount);
      members_[subgroup_[i]][lane_[i]] = i;
    }
  }

  uint32_t value(uint32_t invocation) const { return values_[invocation]; }
  uint32_t delta() const { return values_[kCount]; }
  uint32_t lane(uint32_t invocation) const { return lane_[invocation]; }
  uint32_t result(uint32_t invocation, uint32_t at) const { return out_[invocation * results_ + at]; }
  uint32_t size(uint32_t invocation) const {
    return static_cast<uint32_t>(members_.at(subgroup_[invocation]).size());
  }
  /// The invocation in `lane` of the subgroup of `invocation`.
  uint32_t peer(uint32_t invocation, uint32_t lane) const { return members_.at(subgroup_[invocation])[lane]; }

  /// Folds, in the order of lanes, the values of those lanes of the invocation's subgroup that `takes_part`
  /// accepts.
  template <typename T>
  T fold(uint32_t invocation, T start, const std::function<T(T, uint32_t)>& step,
         const std::function<bool(uint32_t lane)>& takes_part) const {
    for (uint32_t lane = 0; lane < size(invocation); ++lane)
      if (takes_part(lane)) start = step(start, value(peer(invocation, lane)));
    return start;
  }

 private:
  uint32_t results_;
  std::vector<uint32_t> values_, out_, lane_, subgroup_;
  std::map<uint32_t, std::vector<uint32_t>> members_;  // invocations of a subgroup by lane
};

using Step = std::function<uint32_t(uint32_t, uint32_t)>;

const Step kAdd = [](uint32_t a, uint32_t b) { return a + b; };
const Step kMul = [](uint32_t a, uint32_t b) { return a * (b | 1); };
const Step kMin = [](uint32_t a, uint32_t b) { return std::min(a, b); };
const Step kMax = [](uint32_t a, uint32_t b) { return std::max(a, b); };
const Step kAnd = [](uint32_t a, uint32_t b) { return a & b; };
const Step kOr = [](uint32_t a, uint32_t b) { return a | b; };
const Step kXor = [](uint32_t a, uint32_t b) { return a ^ b; };
const Step kMinSigned = [](uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)));
};
const Step kMaxSigned = [](uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
};

float small_float(uint32_t v) { return static_cast<float>(v & 1023) - 512; }

TEST(VulkanSubgroup, ArithmeticReducesAndScans) {
  Gpu gpu;
  REQUIRE_SUBGROUP_OPERATION(gpu, ARITHMETIC);
  const Workgroup run(gpu, kSubgroupArithmeticComp, 21);
  enum Extent { kAll, kUpTo, kBefore };
  const struct {
    uint32_t at;
    Extent lanes;
    uint32_t start;
    const Step& step;
  } results[] = {{0, kAll, 0, kAdd},
                 {1, kAll, 1, kMul},
                 {2, kAll, ~0u, kMin},
                 {3, kAll, 0, kMax},
                 {4, kAll, ~0u, kAnd},
                 {5, kAll, 0, kOr},
                 {6, kAll, 0, kXor},
                 {7, kUpTo, 0, kAdd},
                 {8, kUpTo, 1, kMul},
                 {9, kUpTo, ~0u, kMin},
                 {10, kUpTo, 0, kMax},
                 {11, kUpTo, 0, kXor},
                 {12, kBefore, 0, kAdd},
                 {13, kBefore, 1, kMul},
                 {14, kBefore, ~0u, kMin},
                 {15, kBefore, 0, kMax},
                 {16, kBefore, 0, kXor},
                 {17, kAll, 0x7fffffff, kMinSigned},
                 {18, kUpTo, 0x80000000, kMaxSigned}};
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t me = run.lane(i);
    for (const auto& r : results)
      ASSERT_EQ(run.result(i, r.at), run.fold<uint32_t>(i, r.start, r.step,
                                                        [&](uint32_t lane) {
                                                          return r.lanes == kAll || lane < me ||
                                                                 (r.lanes == kUpTo && lane == me);
                                                        }))
          << "invocation " << i << ", lane " << me << ", result " << r.at;
    ASSERT_EQ(
        std::bit_cast<float>(run.result(i, 19)),
        run.fold<float>(
            i, 0.0f, [](float a, uint32_t v) { return a + small_float(v); }, [](uint32_t) { return true; }));
    ASSERT_EQ(std::bit_cast<float>(run.result(i, 20)),
              run.fold<float>(
                  i, 1e9f, [](float a, uint32_t v) { return std::min(a, small_float(v)); },
                  [&](uint32_t lane) { return lane <= me; }));
  }
}

TEST(VulkanSubgroup, ArithmeticLeavesOutLanesOfTheOtherBranch) {
  Gpu gpu;
  REQUIRE_SUBGROUP_OPERATION(gpu, ARITHMETIC);
  const Workgroup run(gpu, kSubgroupDivergedComp, 3);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t me = run.lane(i);
    const bool odd = run.value(i) & 1;
    const auto together = [&](uint32_t lane) {
      return (run.value(run.peer(i, lane)) & 1) == (odd ? 1u : 0u);
    };
    const auto earlier = [&](uint32_t lane) { return together(lane) && (lane < me || (odd && lane == me)); };
    ASSERT_EQ(run.result(i, 0), run.fold<uint32_t>(i, 0, odd ? kAdd : kXor, together)) << i;
    ASSERT_EQ(run.result(i, 1), run.fold<uint32_t>(i, 0, kAdd, earlier)) << i;
    ASSERT_EQ(run.result(i, 2), run.fold<uint32_t>(i, odd ? ~0u : 0u, odd ? kMin : kMax, together)) << i;
  }
}

TEST(VulkanSubgroup, ClusteredReductions) {
  Gpu gpu;
  REQUIRE_SUBGROUP_OPERATION(gpu, CLUSTERED);
  if (gpu.subgroup_properties().subgroupSize < 8) GTEST_SKIP() << "subgroupSize of the device is less than 8";
  const Workgroup run(gpu, kSubgroupClusteredComp, 8);
  const struct {
    uint32_t at, cluster, start;
    const Step& step;
  } results[] = {{0, 2, 0, kAdd},
                 {1, 4, 0, kAdd},
                 {2, 8, 0, kAdd},
                 {3, 4, ~0u, kMin},
                 {4, 8, 0, kMax},
                 {5, 2, 0, kXor},
                 {6, 8, 0x7fffffff, kMinSigned},
                 {7, 1, 0, kAdd}};
  for (uint32_t i = 0; i < kCount; ++i)
    for (const auto& r : results)
      ASSERT_EQ(run.result(i, r.at), run.fold<uint32_t>(i, r.start, r.step,
                                                        [&](uint32_t lane) {
                                                          return lane / r.cluster == run.lane(i) / r.cluster;
                                                        }))
          << "invocation " << i << ", result " << r.at;
}

TEST(VulkanSubgroup, Rotates) {
  Gpu gpu({feature::kSubgroupRotate});
  REQUIRE_FEATURES(gpu);
  const Workgroup run(gpu, kSubgroupRotateComp, 4);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t size = run.size(i), deltas[] = {1, 5, size - 1, run.delta()};
    for (uint32_t k = 0; k < 4; ++k)
      ASSERT_EQ(run.result(i, k), run.value(run.peer(i, (run.lane(i) + deltas[k]) % size))) << i << "." << k;
  }
}

TEST(VulkanSubgroup, RotatesWithinClusters) {
  Gpu gpu({feature::kSubgroupRotate, feature::kSubgroupRotateClustered});
  REQUIRE_FEATURES(gpu);
  const Workgroup run(gpu, kSubgroupRotateClusteredComp, 4);
  const uint32_t deltas[] = {1, 3, 5, run.delta()}, clusters[] = {2, 4, 8, 4};
  for (uint32_t i = 0; i < kCount; ++i)
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t lane = run.lane(i), first = lane / clusters[k] * clusters[k];
      const uint32_t from = first + (lane - first + deltas[k]) % clusters[k];
      ASSERT_EQ(run.result(i, k), run.value(run.peer(i, from))) << i << "." << k;
    }
}

TEST(VulkanSubgroup, ArithmeticOfSmallTypes) {
  Gpu gpu({feature::kSubgroupExtendedTypes, feature::kInt8, feature::kInt16, feature::kFloat16});
  REQUIRE_FEATURES(gpu);
  REQUIRE_SUBGROUP_OPERATION(gpu, ARITHMETIC);
  const Workgroup run(gpu, kSubgroupSmallTypesComp, 7);
  const auto all = [](uint32_t) { return true; };
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t me = run.lane(i);
    const auto up_to = [me](uint32_t lane) { return lane <= me; };
    const auto before = [me](uint32_t lane) { return lane < me; };
    ASSERT_EQ(run.result(i, 0), run.fold<uint32_t>(i, 0, kAdd, all) & 0xff) << i;
    ASSERT_EQ(run.result(i, 1), run.fold<uint32_t>(i, 0, kAdd, up_to) & 0xffff) << i;
    ASSERT_EQ(
        static_cast<int32_t>(run.result(i, 2)),
        run.fold<int32_t>(
            i, 127, [](int32_t a, uint32_t v) { return std::min<int32_t>(a, static_cast<int8_t>(v)); }, all));
    ASSERT_EQ(static_cast<int32_t>(run.result(i, 3)),
              run.fold<int32_t>(
                  i, -32768,
                  [](int32_t a, uint32_t v) { return std::max<int32_t>(a, static_cast<int16_t>(v)); }, all));
    ASSERT_EQ(run.result(i, 4), run.fold<uint32_t>(i, 0, kXor, before) & 0xffff) << i;
    ASSERT_EQ(std::bit_cast<float>(run.result(i, 5)),
              run.fold<float>(
                  i, 0, [](float a, uint32_t v) { return a + static_cast<float>(v & 63) - 32; }, all));
    ASSERT_EQ(
        std::bit_cast<float>(run.result(i, 6)),
        run.fold<float>(
            i, 0, [](float a, uint32_t v) { return std::max(a, static_cast<float>(v & 1023)); }, up_to));
  }
}

TEST(VulkanSubgroup, MaximalReconvergence) {
  Gpu gpu({feature::kMaximalReconvergence});
  REQUIRE_FEATURES(gpu);
  REQUIRE_SUBGROUP_OPERATION(gpu, BALLOT);
  const Workgroup run(gpu, kReconvergenceComp, 20);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t v = run.value(i) & 7;
    const auto count = [&](const std::function<bool(uint32_t)>& condition) {
      return run.fold<uint32_t>(
          i, 0, [&](uint32_t sum, uint32_t other) { return sum + (condition(other & 7) ? 1 : 0); },
          [](uint32_t) { return true; });
    };
    const uint32_t all = run.size(i);
    for (uint32_t k = 0; k <= v; ++k)
      ASSERT_EQ(run.result(i, k), count([k](uint32_t o) { return o >= k; })) << i << "." << k;
    ASSERT_EQ(run.result(i, 8), count([v](uint32_t o) { return o == v; })) << i;
    if (v > 0 && v % 2 == 0) {
      ASSERT_EQ(run.result(i, 9), count([v](uint32_t o) { return o >= v && o % 2 == 0; })) << i;
    }
    ASSERT_EQ(run.result(i, 10), all) << i;
    if (v % 4 > 0) {
      ASSERT_EQ(run.result(i, 10 + v % 4), count([v](uint32_t o) { return o % 4 == v % 4; })) << i;
    }
    ASSERT_EQ(run.result(i, 14), all) << i;
  }
}

/// Points beside each other, which share quads and begin with the first pixel of each: invocations of a
/// subgroup find the values of those that a ballot tells them of, and whoever is not elected knows of one
/// before it.
TEST(VulkanSubgroup, OfPointsBesideEachOther) {
  Gpu gpu;
  REQUIRE_SUBGROUP_OPERATION(gpu, BALLOT);
  REQUIRE_SUBGROUP_OPERATION(gpu, SHUFFLE);
  constexpr uint32_t kWidth = 70, kRows[] = {1, 2, 3, 5, 8, 16, 37, kWidth};
  std::vector<uint32_t> values(gpu.subgroup_properties().subgroupSize);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = 1000 + i;
  const Buffer buffer = storage_buffer_of(gpu, values);
  const Image image = gpu.image(kWidth, 2 * std::size(kRows), VK_FORMAT_R32G32B32A32_UINT,
                                {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu.target({&image, 1});
  PipelineOptions o;
  o.vertex = kPointsInRowsVert;
  o.fragment = kSubgroupOfPointsFrag;
  o.topology = VK_PRIMITIVE_TOPOLOGY_POINT_LIST;
  o.descriptors = {kStorage};
  const Pipeline pipeline = gpu.graphics(target, o);
  const VkDescriptorSet set = gpu.descriptors(pipeline, {{kStorage, &buffer}});
  gpu.run([&](VkCommandBuffer c) {
    begin_pass(c, target, {0, 0, 0, 0});
    bind(c, pipeline, set);
    for (uint32_t row = 0; row < std::size(kRows); ++row) vkCmdDraw(c, kRows[row], 1, 128 * row, 0);
    vkCmdEndRenderPass(c);
  });
  const std::vector<uint8_t> got = gpu.download(image, 16);
  for (uint32_t row = 0; row < std::size(kRows); ++row)
    for (uint32_t x = 0; x < kWidth; ++x) {
      uint32_t texel[4];
      std::memcpy(texel, &got[size_t{16} * (2 * row * kWidth + x)], 16);
      ASSERT_EQ(texel[3], x < kRows[row] ? 1u : 0u) << x << "," << row;
      if (texel[3] == 0) continue;
      EXPECT_EQ(texel[0], 0u) << x << "," << row << ": values of others";
      EXPECT_EQ(texel[1], 0u) << x << "," << row << ": the value of the second half";
      EXPECT_NE(texel[2], 0u) << x << "," << row << ": nobody before this one";
    }
}

}  // namespace
}  // namespace e2e
