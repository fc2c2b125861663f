#include "gpu/qpu/graph/lookups.h"

#include <cstddef>
#include <utility>

#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::graph {
namespace {

using tmu::LookupKind;

/// Lanes of quads of which a lane lives.
Value whole_quads(Value live) {
  const Value pairs = live | of_quad_lanes<1, 0, 3, 2>(live);
  return pairs | of_quad_lanes<2, 3, 0, 1>(pairs);
}

}  // namespace

void Lookups::configure(uint32_t uniform) {
  if (num_config_ < next_.uniforms.size()) next_.uniforms[num_config_++] = static_cast<uint16_t>(uniform);
}

bool Lookups::write(Effect port, Value v, Value exec, const char** why) {
  const auto set = [&](tmu::Parameter parameter) {
    next_.written |= parameter;
    return true;
  };
  switch (port) {
    case Effect::kTmuT:
      parameters_.t = v;
      return set(tmu::kT);
    case Effect::kTmuR:
      parameters_.r = v;
      return set(tmu::kR);
    case Effect::kTmuI:
      parameters_.layer = v;
      return set(tmu::kI);
    case Effect::kTmuB:
      parameters_.bias = v;
      return set(tmu::kB);
    case Effect::kTmuDref:
      parameters_.reference = v;
      return set(tmu::kDref);
    case Effect::kTmuOff:
      return set(tmu::kOff);
    case Effect::kTexture:
      *why = launch(tmu::Launcher::kS, v, exec);
      return true;
    case Effect::kTextureCube:
      *why = launch(tmu::Launcher::kSCm, v, exec);
      return true;
    case Effect::kTextureFetch:
      *why = launch(tmu::Launcher::kSF, v, exec);
      return true;
    case Effect::kTextureLod:
      *why = launch(tmu::Launcher::kSLod, v, exec);
      return true;
    default:
      return false;
  }
}

const char* Lookups::launch(tmu::Launcher launcher, Value s, Value exec) {
  if (num_config_ == 0) return "a lookup without configuration";
  if (found_.size() == BlockLookups::kMostLookups) return "many lookups";
  const size_t number = found_.size();
  const std::vector<Value> data = memory_.take_data();
  next_.launcher = launcher;
  next_.num_data = static_cast<uint8_t>(data.size());
  found_.push_back(std::exchange(next_, BlockLookup{}));
  num_config_ = 0;
  if (kinds_ == nullptr) return nullptr;
  if (number >= kinds_->size()) return "a lookup that was not there before";
  const LookupKind& kind = (*kinds_)[number];
  if (const char* const why = refusal(kind); why != nullptr) return why;
  kind.stored_words != 0 ? store(kind, s, exec, data) : look_up(kind, s, exec);
  return nullptr;
}

const char* Lookups::refusal(const LookupKind& kind) const {
  if (kind.none != tmu::NotGenerated::kNothing) return tmu::name(kind.none);
  if (results_.size() + kind.num_words > kTmuFifo) return "many results of lookups";
  if (kind.stored_words == 0 && memory_.has_stored()) return "a lookup behind a store";
  return nullptr;
}

LookupNodes::Point Lookups::point(Value s) const {
  return {{s, parameters_.t, parameters_.r}, parameters_.bias, parameters_.reference, parameters_.layer};
}

void Lookups::store(const LookupKind& kind, Value s, Value exec, const std::vector<Value>& data) {
  LookupNodes nodes(graph_, kind, lanes(kind.per_pixel) & exec, num_kept_, {.picks_lanes = picks_lanes_});
  const LookupNodes::Texel texel = nodes.fetched_texel(point(s));
  for (uint32_t n = 0; n < kind.stored_words; ++n)
    memory_.store(texel.address, data[n], nodes.lanes() & texel.exists,
                  static_cast<uint32_t>(n * sizeof(uint32_t)));
}

void Lookups::look_up(const LookupKind& kind, Value s, Value exec) {
  const Value lanes = this->lanes(kind.per_pixel) & exec;
  LookupNodes nodes(graph_, kind, lanes, num_kept_, {.picks_lanes = picks_lanes_});
  const LookupNodes::Channels words = nodes.words(point(s));
  // Quads without a lane that lives, now or later, do not matter.
  const bool are_whole = !kind.per_pixel && !others_may_live_ && graph_.is_constant(exec.id, ~0u);
  for (size_t n = 0; n < kind.num_words; ++n)
    results_.push_back(are_whole ? words[n] : choose(lanes, words[n], constant(graph_, 0)));
}

Value Lookups::lanes(bool per_pixel) const { return per_pixel ? live_ : whole_quads(live_); }

bool Lookups::add_result(Value v) {
  if (results_.size() == kTmuFifo) return false;
  results_.push_back(v);
  return true;
}

Value Lookups::take() {
  if (kinds_ == nullptr) return constant(graph_, 0);
  if (results_.empty()) return {};
  const Value v = results_.front();
  results_.pop_front();
  return v;
}

}  // namespace v3d::qpu::graph
