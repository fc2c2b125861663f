#include "gpu/perf/record/recorder.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/perf/record/shape.h"
#include "gpu/qpu/flow/access.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

constexpr uint32_t kMaxInstructions = 1u << 16;
/// Shapes beyond them keep all of their lines with the batch: lookups at random places have ever new ones.
constexpr size_t kMaxShapes = 4096;
constexpr uint64_t kPrime = 0x100000001b3, kBasis = 0xcbf29ce484222325;

uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ value) * kPrime; }

}  // namespace

/// One batch on its way.
class Recorder::BatchRecorder final : public qpu::Observer {
 public:
  BatchRecorder(Recorder& recorder, size_t number) : r_(recorder), number_(number) {}

  void before(const qpu::Thread& t, uint64_t, const qpu::Instruction* instruction) override {
    const uint32_t number = (t.pc - r_.dispatch_.code) / 8;
    if (number >= kMaxInstructions)
      r_.fail(absl::StrFormat("code at %#x is not among %d instructions from its start at %#x", t.pc,
                              kMaxInstructions, r_.dispatch_.code));
    if (r_.failed() || !instruction) return;
    if (count_ == 0 || number != first_ + count_ || count_ == Event::kMaxCount) {
      flush();
      first_ = number;
    }
    ++count_;
    uniforms_ = t.uniforms;
    unifa_ = t.unifa;
    taken_ = t.pending.fifo_head;
    const Fact& fact = r_.fact(number, *instruction);
    const bool sfu = sfu_result_ != qpu::kNoRegister && fact.reads.has(sfu_result_);
    const bool rep = rep_result_ != qpu::kNoRegister && fact.reads.has(rep_result_);
    sfu_result_ = fact.sfu_result;
    rep_result_ = fact.rep_result;
    if (sfu) add(Kind::kSfu);
    if (rep) add(Kind::kRep);
    if (fact.waits) add(Kind::kWait);
  }

  void general_lookup(const qpu::Thread& t, const tmu::GeneralLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    Shape shape = shape_of(lookup, words, &lines_of_lookup_);
    if (shape.num_lines > 1 && r_.dispatch_.shapes.size() >= kMaxShapes && !r_.shapes_.contains(shape)) {
      shape.lines.clear();
      shape.lines_follow = true;
    }
    add(Kind::kLookup, r_.shape_number(shape));
    const size_t kept = shape.lines_follow ? lines_of_lookup_.size() : std::min<size_t>(shape.num_lines, 1);
    lines_.insert(lines_.end(), lines_of_lookup_.begin(),
                  lines_of_lookup_.begin() + static_cast<ptrdiff_t>(kept));
    r_.spend(kept * sizeof(uint32_t));
  }

  void texture_lookup(const qpu::Thread& t, const tmu::TextureLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    ++r_.dispatch_.texture_lookups;
    Shape shape;
    shape.access = Shape::Access::kNothing;
    shape.results = static_cast<uint8_t>(words);
    shape.inputs = static_cast<uint8_t>(1 + __builtin_popcount(lookup.written) + lookup.num_data);
    shape.quads = 4;
    shape.quad_words = 16;  // four clocks a quad: compute-and-timing.md 18.3
    add(Kind::kLookup, r_.shape_number(shape));
  }

  void after(const qpu::Thread& t, const char* error) override {
    if (error) return r_.fail("a batch hangs");
    if (r_.failed()) return;
    add_uniforms(t);
    // Behind a lookup of the same instruction: that does not wait for what the instruction takes.
    for (; taken_ != t.pending.fifo_head; ++taken_) add(Kind::kRead);
  }

  void finished(const qpu::Thread& t, Next next) override {
    if (r_.failed() || next == Next::kContinue || next == Next::kJump) return;
    const bool barrier = next == Next::kBarrier && t.pending.sync == qpu::Thread::Pending::Sync::kBarrier;
    add(next == Next::kEnd ? Kind::kEnd : barrier ? Kind::kBarrier : Kind::kSwitch);
    if (next != Next::kEnd || r_.failed()) return;
    Batch& batch = r_.dispatch_.batches[number_];
    batch.path = r_.path_number(std::exchange(path_, {}));
    lines_.shrink_to_fit();
    batch.lines = std::exchange(lines_, {});
    over_ = true;
  }

  bool over() const { return over_; }

 private:
  void flush() {
    if (count_ == 0) return;
    path_.push_back(Event::issue(first_, count_));
    count_ = 0;
    r_.spend(sizeof(Event));
  }
  void add(Kind kind, uint32_t value = 0) {
    flush();
    path_.emplace_back(kind, value);
    r_.spend(sizeof(Event));
  }

  /// What the instruction took from the uniform streams since the last look.
  void add_uniforms(const qpu::Thread& t) {
    add_uniforms(&uniforms_, t.uniforms, &uniform_line_);
    add_uniforms(&unifa_, t.unifa, &unifa_line_);
  }
  void add_uniforms(GpuAddr* from, GpuAddr to, uint32_t* line) {
    constexpr GpuAddr kMost = 16;  // bytes of an instruction; more is another stream
    const bool moved = to - *from > kMost;
    for (; !moved && *from != to; *from += 4) {
      ++r_.dispatch_.uniform_words;
      if (*from / kLineBytes == *line) continue;
      *line = *from / kLineBytes;
      add(Kind::kUniforms);
      lines_.push_back(*line);
      r_.spend(sizeof(uint32_t));
    }
    *from = to;
  }

  Recorder& r_;
  const size_t number_;
  std::vector<Event> path_;
  std::vector<uint32_t> lines_, lines_of_lookup_;
  uint32_t first_ = 0, count_ = 0;  // instructions that are no event yet
  GpuAddr uniforms_ = 0, unifa_ = 0;
  uint32_t uniform_line_ = ~0u, unifa_line_ = ~0u;
  uint32_t taken_ = 0;
  qpu::Register sfu_result_ = qpu::kNoRegister, rep_result_ = qpu::kNoRegister;
  bool over_ = false;
};

Recorder::Recorder(const Setting& setting) : setting_(setting) {
  dispatch_.code = setting.code & ~7u;
  dispatch_.batches_per_supergroup = setting.batches_per_supergroup;
  dispatch_.threads_per_qpu = setting.threads_per_qpu;
}
Recorder::~Recorder() = default;

void Recorder::start(const char*, qpu::Thread& thread) {
  thread.observer = nullptr;
  if (failed()) return;
  std::erase_if(batches_, [](const auto& batch) { return batch->over(); });
  batches_.push_back(std::make_unique<BatchRecorder>(*this, dispatch_.batches.size()));
  dispatch_.batches.emplace_back();
  spend(sizeof(Batch));
  thread.observer = batches_.back().get();
}

Dispatch Recorder::take() { return std::move(dispatch_); }

void Recorder::fail(std::string why) {
  if (failed()) return;
  failure_ = std::move(why);
  dispatch_ = {};
}

void Recorder::spend(uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > setting_.max_bytes)
    fail(absl::StrFormat("its events take more than %d MiB", setting_.max_bytes >> 20));
}

qpu::Register Recorder::rep_result_of(const qpu::AluHalf& half) const {
  if (!half.magic || !qpu::info(half.op).has_destination) return qpu::kNoRegister;
  const qpu::WaddrInfo& to = qpu::waddr_info(setting_.version, half.waddr);
  return to.effect == qpu::Effect::kLane0 ? to.reg : qpu::kNoRegister;
}

const Recorder::Fact& Recorder::fact(uint32_t number, const qpu::Instruction& i) {
  if (number >= facts_.size()) facts_.resize(number + 1);
  Fact& fact = facts_[number];
  if (fact.known) return fact;
  fact.known = true;
  fact.reads = qpu::flow::access_of(setting_.version, i).reads.registers;
  if (i.is_branch) return fact;
  if ((qpu::info(i.add.op).traits & qpu::kSfu) && !i.add.magic) fact.sfu_result = i.add.waddr;
  fact.rep_result = rep_result_of(i.add);
  if (fact.rep_result == qpu::kNoRegister) fact.rep_result = rep_result_of(i.mul);
  fact.waits = i.add.op == qpu::Op::kTmuwt;
  return fact;
}

uint32_t Recorder::shape_number(const Shape& shape) {
  const auto [found, is_new] = shapes_.emplace(shape, static_cast<uint32_t>(dispatch_.shapes.size()));
  if (is_new) dispatch_.shapes.push_back(shape);
  return found->second;
}

size_t Recorder::ShapeHash::operator()(const Shape& s) const {
  uint64_t hash = mixed(kBasis, static_cast<uint64_t>(s.access));
  for (const uint32_t value : {uint32_t{s.results}, uint32_t{s.inputs}, uint32_t{s.quad_words},
                               uint32_t{s.lines_follow}, uint32_t{s.num_lines}})
    hash = mixed(hash, value);
  for (const int32_t line : s.lines) hash = mixed(hash, static_cast<uint32_t>(line));
  return hash;
}

/// Batches that went the same way share it.
size_t Recorder::path_number(std::vector<Event> path) {
  uint64_t hash = kBasis;
  for (const Event event : path) hash = mixed(hash, event.word());
  const auto [begin, end] = paths_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (dispatch_.paths[it->second] != path) continue;
    bytes_ -= std::min<uint64_t>(bytes_, path.size() * sizeof(Event));
    return it->second;
  }
  path.shrink_to_fit();
  dispatch_.paths.push_back(std::move(path));
  paths_.emplace(hash, dispatch_.paths.size() - 1);
  return dispatch_.paths.size() - 1;
}

}  // namespace v3d::timing
