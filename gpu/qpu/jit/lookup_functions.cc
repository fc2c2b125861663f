#include "gpu/qpu/jit/lookup_functions.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/graph/lookup_graph.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/jit/back_ends.h"

namespace v3d::qpu::jit {
namespace {

/// Of a node, in the units of a WorkMeter.
constexpr uint32_t kCompileCost = 200;

class FunctionOfLookup : public tmu::LookupCode {
 public:
  explicit FunctionOfLookup(CodeMemory memory) : memory_(std::move(memory)) {}
  const void* begin() const override { return memory_.begin(); }

 private:
  const CodeMemory memory_;
};

}  // namespace

size_t LookupFunctions::Hash::operator()(const tmu::LookupKind& kind) const {
  static_assert(std::has_unique_object_representations_v<tmu::LookupKind>);
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(&kind), sizeof(kind)});
}

std::optional<LookupCompiler::Made> LookupFunctions::code_of(const tmu::LookupKind& kind, const void* owner) {
  {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = entries_.try_emplace(kind, Entry{owner, 0});
    Entry& entry = at->second;
    entry.found = ++findings_;
    if (entry.is_made) return Made{entry.code};
    if (!is_new) return {};
    make_room();
  }
  Made made;
  made.code = compile(kind, made.cost);
  const std::lock_guard lock(mutex_);
  if (const auto at = entries_.find(kind); at != entries_.end()) {
    at->second.code = made.code;
    at->second.is_made = true;
  }
  return made;
}

std::shared_ptr<const tmu::LookupCode> LookupFunctions::compile(const tmu::LookupKind& kind, uint32_t& cost) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  const graph::Graph graph = graph::lookup_graph(kind, picks_lanes(target_));
  cost = static_cast<uint32_t>(graph.nodes().size()) * kCompileCost;
  g_longest_compiled.note(cost);
  const graph::Graph* const graphs[] = {&graph};
  FunctionCode code =
      functions_of(target_, graphs, [&](const graph::Graph& of) { return make_lookup_code(target_, of); });
  if (lister_) lister_("texture lookup: " + graph::to_text(graph));
  counters_.count(code, 0, begin, &Statistics::functions, &Statistics::others);
  if (!code.memory) return nullptr;
  if (listener_)
    listener_(*code.memory, absl::StrFormat("texture lookup, %d operations", graph.nodes().size()));
  return std::make_shared<FunctionOfLookup>(*std::move(code.memory));
}

void LookupFunctions::make_room() {
  if (entries_.size() <= most_) return;
  std::unordered_map<const void*, size_t> count;
  for (const auto& [kind, entry] : entries_) ++count[entry.owner];
  const auto weight = [&](const auto& at) { return std::pair(count[at.second.owner], ~at.second.found); };
  entries_.erase(std::max_element(entries_.begin(), entries_.end(),
                                  [&](const auto& a, const auto& b) { return weight(a) < weight(b); }));
}

size_t LookupFunctions::kept() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::string LookupFunctions::text_of(const Statistics& s) {
  std::string text = absl::StrFormat("%d functions for texture lookups: %d KiB, %.1f ms", s.functions,
                                     s.code_bytes >> 10, s.seconds * 1e3);
  if (s.others != 0) absl::StrAppendFormat(&text, "; %d not for want of memory", s.others);
  append_missing(text, s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
