/// This step finds which writes belong to which TMU lookup, and which lookup each ldtmu takes its word from.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/qpu/flow/flow.h"

namespace v3d::qpu::flow {

/// An event of a node: Flow::access(node).events()[event].
struct EventOf {
  uint32_t node;
  uint8_t event;
  auto operator<=>(const EventOf&) const = default;
};

/// Where the configuration byte of a general lookup comes from.
struct GeneralConfig {
  enum class From : uint8_t {
    kStart,    ///< 0xff, as at thread start
    kUniform,  ///< `byte` of the word that `event` takes
    kTmuc,     ///< `byte` of lane 0 of what `event` writes
    kUnknown,  ///< ways with different ones
  } from = From::kStart;
  uint8_t byte = 0;
  EventOf event{kNowhere, 0};
  auto operator<=>(const GeneralConfig&) const = default;
};

struct Lookup {
  EventOf start{kNowhere, 0};        ///< the write that starts it
  Effect effect = Effect::kNothing;  ///< kGeneral, or that of a texture
  /// Writes of parameters and data since the lookup before, in their order. The interpreter takes the last of
  /// each parameter and the first four data words.
  std::vector<EventOf> writes;
  bool writes_known = false;     ///< the same on every way to here
  std::vector<EventOf> configs;  ///< of a texture: the uniforms of P0, P1, P2; more than three are dropped
  bool configs_known = false;
  GeneralConfig config;  ///< of a general lookup
  uint8_t data = 0;      ///< data words, 0..4, if writes_known
};

/// One ldtmu.
struct Pop {
  uint32_t node;
  uint32_t lookup = kNowhere;  ///< kNowhere: it depends on what is not known
  uint8_t word = 0;            ///< of those that the lookup returns
};

struct TmuFlow {
  std::vector<Lookup> lookups;  ///< in the order of their nodes
  std::vector<Pop> pops;        ///< likewise
  bool complete = false;        ///< every ldtmu has its lookup
};

/// The number of words that a lookup returns, 0..4; -1: not known.
using ReturnWords = std::function<int(const Lookup& lookup)>;
/// What the program alone tells. Configurations of most lookups stand in the uniforms.
int return_words_by_code(const Lookup& lookup);

TmuFlow follow_tmu(const Flow& flow, const ReturnWords& words = return_words_by_code);

}  // namespace v3d::qpu::flow
