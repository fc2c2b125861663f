#include "gpu/perf/record/recorder.h"

#include <algorithm>
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

uint32_t num_quads(LaneMask lanes) {
  uint32_t quads = 0;
  for (int quad = 0; quad < kLanes / 4; ++quad) quads += (lanes >> (4 * quad) & 15) != 0;
  return quads;
}

}  // namespace

/// One batch on its way.
class Recorder::BatchRecorder final : public qpu::Observer {
 public:
  BatchRecorder(Recorder& recorder, size_t number)
      : r_(recorder),
        number_(number),
        program_(recorder.trace_.batches[number].program),
        code_(recorder.trace_.programs[program_].code) {}

  void before(const qpu::Thread& t, uint64_t, const qpu::Instruction* instruction) override {
    if (!watches_tmu_ && t.tmu) t.tmu->set_footprint(&r_.footprint_);
    watches_tmu_ = true;
    const uint32_t number = (t.pc - code_) / 8;
    if (number >= kMaxInstructions)
      r_.fail(absl::StrFormat("code at %#x is not among %d instructions from its start at %#x", t.pc,
                              kMaxInstructions, code_));
    if (r_.failed() || !instruction) return;
    if (count_ == 0 || number != first_ + count_ || count_ == Event::kMaxCount) {
      flush();
      first_ = number;
    }
    ++count_;
    uniforms_ = t.uniforms;
    unifa_ = t.unifa;
    taken_ = t.pending.fifo_head;
    const Fact& fact = r_.fact(program_, number, *instruction);
    const bool sfu = sfu_result_ != qpu::kNoRegister && fact.reads.has(sfu_result_);
    const bool rep = rep_result_ != qpu::kNoRegister && fact.reads.has(rep_result_);
    sfu_result_ = fact.sfu_result;
    rep_result_ = fact.rep_result;
    if (sfu) add(Kind::kSfu);
    if (rep) add(Kind::kRep);
    if (fact.waits) add(Kind::kWait);
    if (fact.tlb && !wrote_) add(Kind::kTlb);
    wrote_ |= fact.tlb;
  }

  void general_lookup(const qpu::Thread& t, const tmu::GeneralLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    add_lookup(shape_of(lookup, words, &lines_of_lookup_));
  }

  void texture_lookup(const qpu::Thread& t, const tmu::TextureLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    add_lookup(shape_of(lookup, r_.footprint_, words, &lines_of_lookup_));
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
    Batch& batch = r_.trace_.batches[number_];
    batch.path = r_.path_number(std::exchange(path_, {}));
    lines_.shrink_to_fit();
    batch.lines = std::exchange(lines_, {});
    over_ = true;
  }

  bool over() const { return over_; }

 private:
  void add_lookup(Shape shape) {
    if (shape.num_lines > 1 && r_.trace_.shapes.size() >= kMaxShapes && !r_.shapes_.contains(shape)) {
      shape.lines.clear();
      shape.lines_follow = true;
    }
    add(Kind::kLookup, r_.shape_number(shape));
    const size_t kept = shape.lines_follow ? lines_of_lookup_.size() : std::min<size_t>(shape.num_lines, 1);
    lines_.insert(lines_.end(), lines_of_lookup_.begin(),
                  lines_of_lookup_.begin() + static_cast<ptrdiff_t>(kept));
    r_.spend(kept * sizeof(uint32_t));
  }

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
      ++r_.trace_.uniform_words;
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
  const uint32_t program_;
  const GpuAddr code_;
  std::vector<Event> path_;
  std::vector<uint32_t> lines_, lines_of_lookup_;
  uint32_t first_ = 0, count_ = 0;  // instructions that are no event yet
  GpuAddr uniforms_ = 0, unifa_ = 0;
  uint32_t uniform_line_ = ~0u, unifa_line_ = ~0u;
  uint32_t taken_ = 0;
  qpu::Register sfu_result_ = qpu::kNoRegister, rep_result_ = qpu::kNoRegister;
  bool watches_tmu_ = false;
  bool wrote_ = false;  // to the tile buffer
  bool over_ = false;
};

Recorder::Recorder(const Setting& setting) : setting_(setting) {}
Recorder::~Recorder() = default;

void Recorder::start(const char* stage, qpu::Thread& thread) {
  thread.observer = nullptr;
  if (failed()) return;
  std::erase_if(batches_, [](const auto& batch) { return batch->over(); });
  Batch& batch = trace_.batches.emplace_back();
  batch.program = program_number(
      {.stage = stage, .code = thread.pc & ~7u, .threads_per_qpu = thread.four_threads ? 4u : 2u});
  batch.draw = draw_;
  batch.fetched = std::exchange(fetched_, {});
  batch.fetched_words = static_cast<uint16_t>(std::min<uint32_t>(std::exchange(fetched_words_, 0), 0xffff));
  batch.tlb_quads = static_cast<uint16_t>(num_quads(nonzero(thread.msf)) * pixel_words_);
  spend(sizeof(Batch) + batch.fetched.size() * sizeof(uint32_t));
  if (failed()) return;
  batches_.push_back(std::make_unique<BatchRecorder>(*this, trace_.batches.size() - 1));
  thread.observer = batches_.back().get();
}

void Recorder::add_fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes) {
  if (failed() || bytes == 0) return;
  fetched_words_ += (bytes + 3) / 4;
  for (int lane = 0; lane < kLanes; ++lane)
    if (lanes >> lane & 1) add_lines(&fetched_, addresses[lane], bytes);
}

Trace Recorder::take() { return std::move(trace_); }

void Recorder::fail(std::string why) {
  if (failed()) return;
  failure_ = std::move(why);
  trace_ = {};
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

const Recorder::Fact& Recorder::fact(uint32_t program, uint32_t number, const qpu::Instruction& i) {
  std::vector<Fact>& facts = facts_[program];
  if (number >= facts.size()) facts.resize(number + 1);
  Fact& fact = facts[number];
  if (fact.known) return fact;
  fact.known = true;
  const qpu::flow::Access access = qpu::flow::access_of(setting_.version, i);
  fact.reads = access.reads.registers;
  for (const qpu::flow::Event& event : access.events())
    fact.tlb |= event.kind == qpu::flow::Event::Kind::kLdtlb || event.effect == qpu::Effect::kTlb;
  if (i.is_branch) return fact;
  if ((qpu::info(i.add.op).traits & qpu::kSfu) && !i.add.magic) fact.sfu_result = i.add.waddr;
  fact.rep_result = rep_result_of(i.add);
  if (fact.rep_result == qpu::kNoRegister) fact.rep_result = rep_result_of(i.mul);
  fact.waits = i.add.op == qpu::Op::kTmuwt;
  return fact;
}

uint32_t Recorder::program_number(const Program& program) {
  const auto [found, is_new] = programs_.emplace(program, static_cast<uint32_t>(trace_.programs.size()));
  if (is_new) {
    trace_.programs.push_back(program);
    facts_.emplace_back();
  }
  return found->second;
}

size_t Recorder::ProgramHash::operator()(const Program& p) const {
  return mixed(mixed(mixed(kBasis, reinterpret_cast<uintptr_t>(p.stage)), p.code), p.threads_per_qpu);
}

uint32_t Recorder::shape_number(const Shape& shape) {
  const auto [found, is_new] = shapes_.emplace(shape, static_cast<uint32_t>(trace_.shapes.size()));
  if (is_new) trace_.shapes.push_back(shape);
  return found->second;
}

size_t Recorder::ShapeHash::operator()(const Shape& s) const {
  uint64_t hash = mixed(kBasis, static_cast<uint64_t>(s.access));
  for (const uint32_t value : {uint32_t{s.results}, uint32_t{s.inputs}, uint32_t{s.quad_words},
                               uint32_t{s.texels}, uint32_t{s.lines_follow}, uint32_t{s.num_lines}})
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
    if (trace_.paths[it->second] != path) continue;
    bytes_ -= std::min<uint64_t>(bytes_, path.size() * sizeof(Event));
    return it->second;
  }
  path.shrink_to_fit();
  trace_.paths.push_back(std::move(path));
  paths_.emplace(hash, trace_.paths.size() - 1);
  return trace_.paths.size() - 1;
}

}  // namespace v3d::timing
