#include "gpu/qpu/flow/tlb.h"

#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

using From = TlbSpecifier::From;

struct State {
  TlbSpecifier next;  // of the next sequence
  // The sequence under way: none if have == need. Not known which if !known.
  bool known = true, reads = false;
  EventOf first{kNowhere, 0};
  int have = 0, need = 0;  // need 0 with have > 0: the sequence is known, its length is not
  auto operator<=>(const State&) const = default;

  bool under_way() const { return have != 0; }
  void finish() {
    known = true;
    reads = false;
    first = {kNowhere, 0};
    have = need = 0;
  }
  // True if it changed.
  bool join(const State& other) {
    const State old = *this;
    if (next != other.next) next = {From::kUnknown, 0, {kNowhere, 0}};
    const bool same = known && other.known && reads == other.reads && first == other.first &&
                      have == other.have && need == other.need;
    if (!same) {
      finish();
      known = false;
    }
    return *this != old;
  }
};

class Follow {
 public:
  Follow(const Flow& flow, const SequenceWords& words) : flow_(flow), words_(words) {}

  TlbFlow run() {
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
    const bool reads = event.kind == Event::Kind::kLdtlb;
    const bool writes = event.kind == Event::Kind::kWrite && event.effect == Effect::kTlb;
    if (reads || writes) word(at, event.stream == Stream::kMain, reads, s);
  }

  // One word, as write_tlb() and read_tlb() of the interpreter.
  void word(EventOf at, bool configures, bool reads, State& s) {
    if (configures) {
      s.finish();
      s.next = {From::kUniform, 0, at};
    }
    TlbWord found{at, kNowhere, 0};
    if (s.known && s.under_way() && s.reads != reads) s.finish();
    if (s.known && !s.under_way()) begin(at, reads, s);
    if (s.known && (s.need != 0 || s.have == 0)) {
      found.sequence = static_cast<uint32_t>(firsts_.size());
      found.word = static_cast<uint8_t>(s.have);
      if (reports_) firsts_.push_back(s.first);
      if (++s.have == s.need) s.finish();
    } else if (s.known) {  // the same sequence or the next one
      s.finish();
      s.known = false;
      s.next = {From::kUnknown, 0, {kNowhere, 0}};
    }
    if (!reports_) return;
    found_.complete = found_.complete && found.sequence != kNowhere;
    found_.words.push_back(found);
  }

  void begin(EventOf at, bool reads, State& s) {
    s.reads = reads;
    s.first = at;
    s.need = words_(s.next);
    if (reports_) found_.sequences.push_back({at, s.next, reads, static_cast<uint8_t>(s.need)});
    if (s.next.from == From::kUniform && ++s.next.byte == 4) s.next = TlbSpecifier();
  }

  void resolve() {
    for (TlbWord& w : found_.words)
      if (w.sequence != kNowhere)
        w.sequence = index_of(found_.sequences, &TlbSequence::first, firsts_[w.sequence]);
  }

  const Flow& flow_;
  const SequenceWords& words_;
  std::vector<EventOf> firsts_;
  TlbFlow found_{{}, {}, true};
  bool reports_ = false;
};

}  // namespace

// 0xff: colour of render target 0 in halves, four components, per pixel.
int sequence_words_by_code(const TlbSpecifier& specifier) { return specifier.from == From::kOnes ? 2 : 0; }

TlbFlow follow_tlb(const Flow& flow, const SequenceWords& words) { return Follow(flow, words).run(); }

}  // namespace v3d::qpu::flow
