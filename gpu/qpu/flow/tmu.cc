#include "gpu/qpu/flow/tmu.h"

#include <algorithm>

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

using From = GeneralConfig::From;

constexpr size_t kMaxList = 64;  // writes, or lookups under way: the interpreter's queue has no more words
constexpr int kMaxData = 4;

// A list that ways may disagree about.
template <typename T>
struct List {
  std::vector<T> items;
  bool known = true;

  void push(const T& item) {
    if (!known) return;
    if (items.size() == kMaxList) return forget();
    items.push_back(item);
  }
  void forget() {
    known = false;
    items.clear();
  }
  void clear() {
    known = true;
    items.clear();
  }
  // True if it changed.
  bool join(const List& other) {
    if (!known || (other.known && items == other.items)) return false;
    forget();
    return true;
  }
};

// A lookup under way, by its start; how many of its words were taken. No number: they are not known any more.
struct Waiting {
  EventOf start;
  int left, taken;
  bool operator==(const Waiting&) const = default;
};

struct State {
  List<EventOf> writes, configs;
  List<Waiting> queue;
  GeneralConfig config;

  bool join(const State& other) {
    bool changed = writes.join(other.writes);
    changed |= configs.join(other.configs);
    changed |= queue.join(other.queue);
    if (config == other.config || config.from == From::kUnknown) return changed;
    config = {From::kUnknown, 0, {kNowhere, 0}};
    return true;
  }
};

class Follow {
 public:
  Follow(const Flow& flow, const ReturnWords& words) : flow_(flow), words_(words) {}

  TmuFlow run() {
    if (flow_.entry == kNowhere) return {};
    follow_events<State>(flow_, [this](const Event& event, EventOf at, State& s, bool reports) {
      reports_ = reports;
      apply(event, at, s);
    });
    resolve();
    return std::move(found_);
  }

 private:
  void apply(const Event& event, EventOf at, State& s) {
    if (event.kind == Event::Kind::kLdtmu) return pop(at, s);
    if (event.kind == Event::Kind::kWrtmuc) return s.configs.push(at);
    if (event.kind != Event::Kind::kWrite) return;
    if (event.effect == Effect::kTmuConfig) s.config = {From::kTmuc, 0, at};
    if (event.effect >= Effect::kTmuT && event.effect <= Effect::kTmuOff) s.writes.push(at);
    if (event.effect == Effect::kTmuData) s.writes.push(at);
    if (starts_lookup(event.effect)) launch(event, at, s);
  }

  void launch(const Event& event, EventOf at, State& s) {
    Lookup lookup;
    lookup.start = at;
    lookup.effect = event.effect;
    lookup.writes = s.writes.items;
    lookup.writes_known = s.writes.known;
    lookup.data = data_of(lookup);
    s.writes.clear();
    if (starts_texture(event.effect)) {
      lookup.configs = s.configs.items;
      lookup.configs_known = s.configs.known;
      s.configs.clear();
    } else {
      if (event.stream == Stream::kMain) s.config = {From::kUniform, 0, at};
      lookup.config = s.config;
      shift(s.config);
    }
    const int count = words_(lookup);
    if (count != 0) s.queue.push({at, count, 0});
    if (reports_) found_.lookups.push_back(std::move(lookup));
  }

  // TMUDREF and TMUOFF are data words 0 and 1 of general lookups.
  uint8_t data_of(const Lookup& lookup) const {
    int data = 0, at_least = 0;
    for (const EventOf& write : lookup.writes) {
      const Effect effect = effect_of(write);
      data += effect == Effect::kTmuData;
      if (effect == Effect::kTmuDref) at_least = std::max(at_least, 1);
      if (effect == Effect::kTmuOff) at_least = 2;
    }
    if (lookup.effect == Effect::kGeneral) data = std::max(data, at_least);
    return static_cast<uint8_t>(std::min(data, kMaxData));
  }

  Effect effect_of(EventOf at) const { return flow_.access(flow_.nodes[at.node]).events()[at.event].effect; }

  // Each general lookup takes a byte; ones come after them.
  static void shift(GeneralConfig& config) {
    if (config.from != From::kUniform && config.from != From::kTmuc) return;
    if (++config.byte == 4) config = GeneralConfig();
  }

  void pop(EventOf at, State& s) {
    Pop taken{at.node};
    if (s.queue.known && !s.queue.items.empty()) {
      Waiting& first = s.queue.items.front();
      if (first.left >= 0 || s.queue.items.size() == 1) {
        taken.lookup = static_cast<uint32_t>(starts_.size());  // resolved when all lookups are found
        taken.word = static_cast<uint8_t>(first.taken);
        if (reports_) starts_.push_back(first.start);
        ++first.taken;
        if (first.left > 0 && --first.left == 0) s.queue.items.erase(s.queue.items.begin());
      } else {
        s.queue.forget();
      }
    }
    // From an empty queue the thread hangs: that lookup is nobody's, but nothing is unknown.
    if (!reports_) return;
    found_.complete =
        found_.complete && (taken.lookup != kNowhere || (s.queue.known && s.queue.items.empty()));
    found_.pops.push_back(taken);
  }

  void resolve() {
    for (Pop& p : found_.pops)
      if (p.lookup != kNowhere) p.lookup = index_of(found_.lookups, &Lookup::start, starts_[p.lookup]);
  }

  const Flow& flow_;
  const ReturnWords& words_;
  std::vector<EventOf> starts_;
  TmuFlow found_{{}, {}, true};
  bool reports_ = false;
};

}  // namespace

// Configuration 0xff: one word of 32 bits, and a load without data (texture.md 2.4).
int return_words_by_code(const Lookup& lookup) {
  if (lookup.effect != Effect::kGeneral || lookup.config.from != From::kStart || !lookup.writes_known)
    return -1;
  return lookup.data == 0 ? 1 : 0;
}

TmuFlow follow_tmu(const Flow& flow, const ReturnWords& words) { return Follow(flow, words).run(); }

}  // namespace v3d::qpu::flow
