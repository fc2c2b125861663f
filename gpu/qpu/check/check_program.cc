/// Rules that a program breaks: on some path of its graph, with the history there; and of the TMU's words on
/// all of them.

#include <algorithm>
#include <set>
#include <vector>

#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/check/tmu_words.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu {
namespace {

class Walk {
 public:
  Walk(chip::Generation generation, bool four_threads, std::span<const uint64_t> words)
      : words_(words),
        flow_(flow::analyse({generation, starts_in_last_section(generation, words), {}}, words)),
        setting_{generation, flow_.setting.final_section, four_threads} {
    visits_.resize(flow_.nodes.size());
    facts_.reserve(flow_.nodes.size());
    for (const flow::Node& node : flow_.nodes) facts_.push_back(facts(node));
    if (words.empty()) return;
    open_.push_back({flow_.blocks[flow_.entry].first, HazardChecker(setting_)});
    while (!open_.empty()) {
      const Visit place = open_.back();
      open_.pop_back();
      visit(place);
    }
    follow_tmu();
  }

  std::vector<HazardReport> reports() const { return {found_.begin(), found_.end()}; }

 private:
  static constexpr int kMaxVisits = 256;  // of a node, with different histories
  struct Visit {
    uint32_t node;
    HazardChecker checker;
    auto operator<=>(const Visit&) const = default;
  };

  HazardFacts facts(const flow::Node& node) const {
    const Instruction* i = flow_.instruction(node);
    return i ? facts_of(setting_.generation, words_[index_of(node)], *i) : HazardFacts();
  }

  // What lies outside of the program counts for its last word.
  size_t index_of(const flow::Node& node) const {
    return std::min(static_cast<size_t>(node.index), words_.size() - 1);
  }

  void report(size_t index, HazardSet set, size_t early_index) {
    for (int n = 0; n < kNumHazards; ++n) {
      const auto hazard = static_cast<Hazard>(n);
      if (set & bit(hazard)) found_.insert({hazard == Hazard::kLdvaryCEarly ? early_index : index, hazard});
    }
  }
  void report(const Visit& p, HazardSet set) {
    report(index_of(flow_.nodes[p.node]), set, p.checker.early_index());
  }

  void visit(Visit p) {
    const flow::Node& node = flow_.nodes[p.node];
    const Instruction* i = flow_.instruction(node);
    if (!i) return report(p, p.checker.ran_off());
    if (visits_[p.node] >= kMaxVisits || !seen_.insert(p).second) return;
    ++visits_[p.node];
    const HazardFacts& f = facts_[p.node];
    const size_t index = index_of(node);
    report(p, p.checker.step(index, words_[index], *i, f));
    if (f.sums_halves) report(p, bit(Hazard::kHalfSums));
    flow_.for_each_next(p.node, [&](uint32_t next) { open_.push_back({next, p.checker}); });
  }

  void follow_tmu() {
    flow::follow_states<TmuWords>(flow_, [this](const flow::Block& block, TmuWords& words, bool settled) {
      const uint32_t end = block.first + block.count;
      for (uint32_t n = block.first; n < end; ++n) {
        const bool ends = n + 1 == end && block.exit.kind == flow::Exit::Kind::kEnd;
        const HazardSet found = words.step(facts_[n], setting_, ends);
        if (settled) report(index_of(flow_.nodes[n]), found, 0);
      }
    });
  }

  const std::span<const uint64_t> words_;
  const flow::Flow flow_;
  const HazardChecker::Setting setting_;
  std::vector<HazardFacts> facts_;  // of nodes
  std::vector<int> visits_;
  std::vector<Visit> open_;
  std::set<Visit> seen_;
  std::set<HazardReport> found_;
};

}  // namespace

bool starts_in_last_section(chip::Generation generation, std::span<const uint64_t> words) {
  int count = 0;
  bool pair = false, previous = false;
  for (const uint64_t word : words) {
    Instruction i;
    const bool thrsw = decode(generation, word, i) && !i.is_branch && (i.signals & kThrsw);
    pair = pair || (thrsw && previous);
    count += thrsw;
    previous = thrsw;
  }
  return !pair && count <= 1;
}

std::vector<HazardReport> check_program(chip::Generation generation, bool four_threads,
                                        std::span<const uint64_t> words, HazardSet wanted) {
  std::vector<HazardReport> reports = Walk(generation, four_threads, words).reports();
  std::erase_if(reports, [wanted](const HazardReport& r) { return !(wanted & bit(r.hazard)); });
  return reports;
}

}  // namespace v3d::qpu
