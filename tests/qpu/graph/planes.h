/// Runs code of blocks on planes of a tile: one block, without varyings that have a slope.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::graph {

/// @param c  coefficients of varyings, which stay
/// @return  what stands in the plane of colours; nothing if there is no code
inline std::optional<Lanes> run_on_planes(jit::Target target, const Graph& graph, Lanes depth, Lanes color,
                                          const std::vector<uint32_t>& c = {}) {
  const std::vector<uint8_t> bytes = jit::make_block_code(target, graph);
  const auto code = bytes.empty() ? std::nullopt : jit::CodeMemory::copy_of(bytes);
  if (!code) return {};
  BlockCoefficients coefficients{};
  for (size_t n = 0; n < c.size(); ++n) coefficients.c[n] = c[n];
  const Block block = {};
  BlockRun run;
  run.depth = reinterpret_cast<uint32_t*>(&depth);
  run.color = reinterpret_cast<uint32_t*>(&color);
  run.bytes_of_rows = sizeof(Lanes) / 2;
  run.coefficients = &coefficients;
  run.blocks = &block;
  run.end = &block + 1;
  std::bit_cast<BlockFn>(code->begin())(&run);
  return color;
}

}  // namespace v3d::qpu::graph
