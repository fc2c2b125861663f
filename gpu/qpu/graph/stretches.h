/// A compute program with barriers, loops or branches that lanes decide on is cut into stretches: from where
/// it begins, or goes on behind such a place, to the next one. Each becomes a graph, and a function of its
/// own. What is needed behind a cut stands in slots of a frame meanwhile, or is a constant or a uniform on
/// all ways to it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::graph {

// ---- One stretch, as program_front_end.cc executes it

/// What there is besides registers, which are items of their own numbers.
enum Item : uint16_t {
  kItemFlagA = kNumRegisters,
  kItemFlagB,
  kItemRtop,
  kItemSfu,                         ///< two of them
  kItemAddress = kItemSfu + 2,      ///< of the second stream of uniforms
  kItemResults = kItemAddress + 1,  ///< of the TMU, in their order
};

/// Where a stretch begins.
struct StretchPoint {
  static constexpr uint32_t kNoTarget = ~0u;
  uint32_t block = 0;           ///< of the flow
  uint32_t position = 0;        ///< words of uniforms that were taken
  uint32_t target = kNoTarget;  ///< the position when the branch under way takes effect, if that changes it
  uint32_t results = 0;         ///< of the TMU that wait
  bool has_address = false;     ///< of the second stream
  auto operator<=>(const StretchPoint&) const = default;
};

/// Where an item stands when a stretch begins.
struct Held {
  enum class Where : uint8_t { kConst, kUniform, kSlot } where = Where::kSlot;
  uint32_t number = 0;  ///< the word, or which one
  bool operator==(const Held&) const = default;
};
using HeldItems = std::map<uint16_t, Held>;

struct TracedStretch {
  Graph graph;  ///< without its end
  uint32_t uniforms = 0, instructions = 0;
  struct Exit {
    bool ends = false, waits = false;  ///< the program; at a barrier
    StretchPoint point;
  };
  Id condition = kNoNode;  ///< none: only the first one is there
  Exit exits[2];           ///< where some lane has the condition; where none has
  std::map<uint16_t, Id> values;
};

struct StretchBegin {
  bool is_first = false;  ///< of the program
  StretchPoint point;
  HeldItems items;
  bool stops_at_loops = false;  ///< else loops of known length are unrolled
};

/// @param key  has the parts of a BatchKey
/// @param found  gets what the stretch takes of dispatches, where that is all that is wanted; else null
/// @return  empty: `why` says why
std::optional<TracedStretch> trace_stretch(const flow::Flow& flow, const BlockKey& key, bool is_whole,
                                           const StretchBegin& begin, BlockLookups* found, const char** why);
/// Why trace_stretch() gives nothing for a program that is cut, but would if loops were.
inline constexpr char kTooManyInstructions[] = "too many instructions";

// ---- All of a program

struct StretchGraphs {
  struct Part {
    Graph graph;
    uint32_t instructions = 0;
    int32_t first = 0;       ///< index of its first instruction
    bool has_turns = false;  ///< it leads to itself
  };
  std::vector<Part> parts;  ///< the first one begins the program
  uint32_t uniforms = 0;    ///< words that the program reads
  uint32_t instructions = 0;
  uint32_t slots = 0;
};

/// Empty if the program does what no function does: then `why` says what.
std::optional<StretchGraphs> stretch_graphs(const flow::Flow& flow, const BatchKey& key, const char** why);

/// What such a program takes of its dispatches. Empty as above.
std::optional<BlockLookups> find_stretch_lookups(const flow::Flow& flow, const char** why);

}  // namespace v3d::qpu::graph
