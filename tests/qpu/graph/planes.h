/// Runs code of blocks on planes of a tile: one block, without varyings that have a slope. Code that draws
/// two blocks side by side must give the same of each of several.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::graph {

/// The planes of several blocks, one after the other.
template <size_t kBlocks>
struct Planes {
  std::array<Lanes, kBlocks> depth, color;
};

/// @param c  coefficients of varyings, which stay
/// @param middle_of_memory  of graphs that gather
/// @return  whether there is code
template <size_t kBlocks>
bool run_on(jit::Target target, const Graph& graph, Planes<kBlocks>& planes, const std::vector<uint32_t>& c,
            jit::Pairs pairs, jit::Gathers gathers = jit::Gathers::kWherePays,
            const uint8_t* middle_of_memory = nullptr) {
  const std::vector<uint8_t> bytes = jit::make_block_code_with(target, graph, pairs, gathers);
  const uint32_t no_faults = 0;
  const auto code = bytes.empty() ? std::nullopt : jit::CodeMemory::copy_of(bytes);
  if (!code) return false;
  BlockCoefficients coefficients{};
  for (size_t n = 0; n < c.size(); ++n) coefficients.c[n] = c[n];
  std::array<Block, kBlocks> blocks = {};
  for (size_t n = 0; n < kBlocks; ++n) blocks[n].place = static_cast<uint32_t>(n * sizeof(Lanes));
  BlockRun run;
  run.depth = reinterpret_cast<uint32_t*>(planes.depth.data());
  run.color = reinterpret_cast<uint32_t*>(planes.color.data());
  run.bytes_of_rows = sizeof(Lanes) / 2;
  run.coefficients = &coefficients;
  run.middle_of_memory = middle_of_memory;
  run.fault_cost = &no_faults;
  run.blocks = blocks.data();
  run.end = run.blocks + kBlocks;
  std::bit_cast<BlockFn>(code->begin())(&run);
  EXPECT_EQ(run.blocks, run.end);
  return true;
}

/// Three blocks, of which the second one has other quads.
inline void expect_same_of_pairs(jit::Target target, const Graph& graph, const Lanes& depth,
                                 const Lanes& color, const std::vector<uint32_t>& c, const Lanes& wanted) {
  const auto turned = [](const Lanes& v) {
    Lanes result;
    for (int i = 0; i < kLanes; ++i) result[i] = v[(i + 4) % kLanes];
    return result;
  };
  Planes<3> all = {{depth, turned(depth), depth}, {color, turned(color), color}};
  Planes<1> second = {{turned(depth)}, {turned(color)}};
  if (!run_on(target, graph, second, c, jit::Pairs::kWherePays) ||
      !run_on(target, graph, all, c, jit::Pairs::kAlways))
    return;
  for (int i = 0; i < kLanes; ++i) {
    EXPECT_EQ(all.color[0][i], wanted[i]) << "lane " << i;
    EXPECT_EQ(all.color[1][i], second.color[0][i]) << "lane " << i;
    EXPECT_EQ(all.color[2][i], wanted[i]) << "lane " << i;
  }
}

/// @return  what stands in the plane of colours; nothing if there is no code
inline std::optional<Lanes> run_on_planes(jit::Target target, const Graph& graph, Lanes depth, Lanes color,
                                          const std::vector<uint32_t>& c = {}) {
  Planes<1> planes = {{depth}, {color}};
  if (!run_on(target, graph, planes, c, jit::Pairs::kWherePays)) return {};
  if (target == jit::Target::kAvx512) expect_same_of_pairs(target, graph, depth, color, c, planes.color[0]);
  return planes.color[0];
}

}  // namespace v3d::qpu::graph
