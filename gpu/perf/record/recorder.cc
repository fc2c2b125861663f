#include "gpu/perf/record/recorder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/perf/record/path_recorder.h"
#include "gpu/perf/record/shape.h"
#include "gpu/perf/record/vc4_batch_recorder.h"
#include "gpu/qpu/flow/access.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

constexpr uint64_t kPrime = 0x100000001b3, kBasis = 0xcbf29ce484222325;

uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ value) * kPrime; }

constexpr std::string_view kCompute = "compute", kFragment = "fragment", kUser = "user";

}  // namespace

/// One batch on its way.
class Recorder::BatchRecorder final : public qpu::Observer, PathRecorder {
 public:
  explicit BatchRecorder(Recorder& recorder) : PathRecorder(recorder) {}

  void begin(size_t number, GpuAddr uniforms) {
    PathRecorder::begin(number, uniforms);
    in_ = {};
  }
  uint64_t clocks() const { return clock_.now() + clock_.of(at_.count); }

  void before(const qpu::Thread& t, uint64_t, const qpu::Instruction* instruction) override {
    if (t.tmu != in_.tmu && t.tmu) t.tmu->set_footprint(&r_.footprint_);
    in_.tmu = t.tmu;
    const uint32_t number = number_of(t.pc);
    if (r_.failed() || !instruction) return;
    issue(number);
    at_.varies |= instruction->is_branch;
    in_.uniforms = t.uniforms;
    in_.unifa = t.unifa;
    in_.taken = t.pending.fifo_head;
    at_.tidx = t.tidx;
    const Fact& fact = r_.fact(at_.program, number, *instruction);
    const bool sfu = in_.sfu_result != qpu::kNoRegister && fact.reads.has(in_.sfu_result);
    const bool rep = in_.rep_result != qpu::kNoRegister && fact.reads.has(in_.rep_result);
    in_.sfu_result = fact.sfu_result;
    in_.rep_result = fact.rep_result;
    if (sfu) add(Kind::kSfu);
    if (rep) add(Kind::kRep);
    if (fact.waits) add(Kind::kWait);
    if (fact.tlb && !in_.wrote) add(Kind::kTlb);
    in_.wrote |= fact.tlb;
  }

  void general_lookup(const qpu::Thread& t, const tmu::GeneralLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    set_shape(lookup, words, &r_.shape_, &lines_of_lookup_);
    add_lookup();
  }

  void texture_lookup(const qpu::Thread& t, const tmu::TextureLookup& lookup, int words) override {
    if (r_.failed()) return;
    add_uniforms(t);
    set_shape(lookup, r_.footprint_, words, &r_.shape_, &lines_of_lookup_);
    add_lookup();
  }

  void after(const qpu::Thread& t, const char* error) override {
    if (error) return r_.fail("a batch hangs");
    if (r_.failed()) return;
    add_uniforms(t);
    // After a lookup of the same instruction: that does not wait for what the instruction takes.
    for (; in_.taken != t.pending.fifo_head; ++in_.taken) add(Kind::kRead);
  }

  void finished(const qpu::Thread& t, Next next) override {
    if (r_.failed() || next == Next::kContinue || next == Next::kJump) return;
    const bool barrier = next == Next::kBarrier && t.pending.sync == qpu::Thread::Pending::Sync::kBarrier;
    at_.varies |= next == Next::kBarrier;
    add(next == Next::kEnd ? Kind::kEnd : barrier ? Kind::kBarrier : Kind::kSwitch);
    if (next == Next::kEnd && !r_.failed()) end(t);
  }

  /// The batch goes on, perhaps on another worker. @return  whether it is still watched
  bool begin_slice(qpu::Thread& t) {
    in_.tmu = nullptr;
    const uint64_t issued = at_.issued + at_.count, most = r_.setting_.max_instructions;
    if (issued < most) t.budget = std::min(t.budget, most - issued);
    if (r_.failed() || issued < most) return true;
    at_.varies = true;
    add(Kind::kEnd);
    end(t);
    return false;
  }

 private:
  void end(const qpu::Thread& t) {
    if (t.tmu) t.tmu->set_footprint(nullptr);
    PathRecorder::end();
    r_.idle_.push_back(this);
  }

  /// What the instruction took from the uniform streams since the last look.
  void add_uniforms(const qpu::Thread& t) {
    add_uniforms(&in_.uniforms, t.uniforms, &in_.uniform_line);
    at_.varies |= in_.unifa != t.unifa;
    add_uniforms(&in_.unifa, t.unifa, &in_.unifa_line);
  }
  void add_uniforms(GpuAddr* from, GpuAddr to, uint32_t* line) {
    constexpr GpuAddr kMost = 16;  // bytes of an instruction; more is another stream
    const bool moved = to - *from > kMost;
    for (; !moved && *from != to; *from += 4) {
      ++at_.uniform_words;
      if (*from / kLineBytes == *line) continue;
      *line = *from / kLineBytes;
      add(Kind::kUniforms);
      add_line(*line);
    }
    *from = to;
  }

  /// Of the thread, at the instruction.
  struct In {
    GpuAddr uniforms = 0, unifa = 0;  // next ones
    uint32_t uniform_line = ~0u, unifa_line = ~0u;
    uint32_t taken = 0;
    qpu::Register sfu_result = qpu::kNoRegister, rep_result = qpu::kNoRegister;
    const tmu::Unit* tmu = nullptr;  // that tells its footprints
    bool wrote = false;              // to the tile buffer
  } in_;
};

Recorder::Recorder(const Setting& setting)
    : setting_(setting), bytes_(std::make_shared<std::atomic<uint64_t>>(0)), alone_(true) {
  if (setting.profile) latencies_.emplace(*setting.profile, setting.parameters);
}
Recorder::Recorder(const Recorder& of, Part)
    : setting_(of.setting_), latencies_(of.latencies_), bytes_(of.bytes_), alone_(false) {}
Recorder::~Recorder() = default;

void Recorder::start(const char* stage, qpu::Thread& thread) {
  thread.observer = nullptr;
  if (failed()) return;
  const Program program{
      .stage = stage, .code = thread.pc & ~7u, .threads_per_qpu = thread.four_threads ? 4u : 2u};
  Batch& batch = add_batch(program, num_quads(nonzero(thread.msf)) * pixel_words_);
  if (failed() || take_known(program, thread.uniforms, &batch)) return;
  BatchRecorder& recorder = idle_recorder();
  recorder.begin(trace_.batches.size() - 1, thread.uniforms);
  thread.observer = &recorder;
  watched_.fetch_add(1, std::memory_order_relaxed);
}

/// One quad takes the tile buffer as long with four samples as with one (vc4-timing.md 2.6).
void Recorder::start_vc4(const char* stage, qpu::vc4::Thread& thread) {
  thread.observer = nullptr;
  if (failed()) return;
  const Program program{.stage = stage, .code = thread.pc & ~7u, .threads_per_qpu = thread.threads_per_qpu};
  Batch& batch = add_batch(program, num_quads(nonzero(thread.ms_flags)));
  if (failed() || (stage != kUser && take_known(program, thread.uniforms, &batch))) return;
  const auto free =
      std::find_if(vc4_batches_.begin(), vc4_batches_.end(), [](const auto& b) { return b->is_idle(); });
  Vc4BatchRecorder& recorder = free != vc4_batches_.end()
                                   ? **free
                                   : *vc4_batches_.emplace_back(std::make_unique<Vc4BatchRecorder>(*this));
  recorder.begin(trace_.batches.size() - 1, thread);
  thread.observer = &recorder;
  watched_.fetch_add(1, std::memory_order_relaxed);
}

Batch& Recorder::add_batch(const Program& program, uint32_t tlb_quads) {
  Batch& batch = trace_.batches.emplace_back();
  batch.program = program_number(program);
  batch.draw = draw_;
  batch.fetched = std::exchange(fetched_, {});
  batch.fetched_words = static_cast<uint16_t>(std::min<uint32_t>(std::exchange(fetched_words_, 0), 0xffff));
  batch.tlb_quads = static_cast<uint16_t>(tlb_quads);
  spend(sizeof(Batch) + batch.fetched.size() * sizeof(uint32_t));
  return batch;
}

void Recorder::begin_slice(qpu::Thread& thread) {
  if (thread.observer && static_cast<BatchRecorder*>(thread.observer)->begin_slice(thread)) return;
  thread.observer = nullptr;
  if (thread.tmu) thread.tmu->set_footprint(nullptr);
}

/// Of a batch that is not watched: those of its instructions.
uint64_t Recorder::clocks(const qpu::Thread& thread) const {
  return thread.observer ? static_cast<const BatchRecorder*>(thread.observer)->clocks()
                         : setting_.parameters.instruction * thread.instructions;
}

/// Whether the batch need not be watched.
bool Recorder::take_known(const Program& program, GpuAddr uniforms, Batch* batch) {
  const auto [found, is_new] = known_.try_emplace(key_of(batch->program, uniforms));
  Known& known = found->second;
  if (is_new || !known.is_set) return false;
  const bool is_vertices = program.stage != kCompute && program.stage != kFragment;
  if (!known.by_all && (!is_vertices || ++known.times % setting_.sampling.vertices == 0)) return false;
  batch->path = known.path;
  batch->lines = known.lines;
  trace_.uniform_words += known.uniform_words;
  spend(known.lines.size() * sizeof(uint32_t));
  return true;
}

Recorder::BatchRecorder& Recorder::idle_recorder() {
  if (idle_.empty()) return *batches_.emplace_back(std::make_unique<BatchRecorder>(*this));
  BatchRecorder& recorder = *idle_.back();
  idle_.pop_back();
  return recorder;
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
  if (bytes_->fetch_add(bytes, std::memory_order_relaxed) + bytes > setting_.max_bytes)
    fail(absl::StrFormat("its events take more than %d MiB", setting_.max_bytes >> 20));
}

qpu::Register Recorder::rep_result_of(const qpu::AluHalf& half) const {
  if (!half.magic || !qpu::info(half.op).has_destination) return qpu::kNoRegister;
  const qpu::WaddrInfo& to = qpu::waddr_info(setting_.generation, half.waddr);
  return to.effect == qpu::Effect::kLane0 ? to.reg : qpu::kNoRegister;
}

const Recorder::Fact& Recorder::fact(uint32_t program, uint32_t number, const qpu::Instruction& i) {
  std::vector<Fact>& facts = facts_[program];
  if (number >= facts.size()) facts.resize(number + 1);
  Fact& fact = facts[number];
  if (fact.known) return fact;
  fact.known = true;
  const qpu::flow::Access access = qpu::flow::access_of(setting_.generation, i);
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
  const auto [found, is_new] = programs_.try_emplace(program, static_cast<uint32_t>(trace_.programs.size()));
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
  const auto [found, is_new] = shapes_.try_emplace(shape, static_cast<uint32_t>(trace_.shapes.size()));
  if (is_new) trace_.shapes.push_back(shape);
  return found->second;
}

/// Shapes beyond them keep all of their lines with the batch: lookups at random places have ever new ones.
bool Recorder::has_all_shapes() const {
  constexpr size_t kMaxShapes = 4096;
  return trace_.shapes.size() >= kMaxShapes;
}

size_t Recorder::ShapeHash::operator()(const Shape& s) const {
  uint64_t hash = mixed(kBasis, static_cast<uint64_t>(s.access));
  for (const uint32_t value : {uint32_t{s.results}, uint32_t{s.inputs}, uint32_t{s.quad_words},
                               uint32_t{s.texels}, uint32_t{s.lines_follow}, uint32_t{s.num_lines}})
    hash = mixed(hash, value);
  for (const int32_t line : s.lines) hash = mixed(hash, static_cast<uint32_t>(line));
  return hash;
}

uint32_t Recorder::add(Recorder& other, uint32_t first, uint32_t count, Numbers* numbers) {
  constexpr auto kNone = ~0u;
  constexpr auto kNoPath = ~size_t{0};
  const Trace& from = other.trace_;
  const uint32_t begin = batches();
  if (failed() || other.failed()) return begin;
  numbers->programs.resize(from.programs.size(), kNone);
  numbers->shapes.resize(from.shapes.size(), kNone);
  numbers->paths.resize(from.paths.size(), kNoPath);
  trace_.uniform_words += std::exchange(other.trace_.uniform_words, 0);
  for (uint32_t i = first; i < first + count; ++i) {
    Batch& batch = trace_.batches.emplace_back(std::move(other.trace_.batches[i]));
    uint32_t& program = numbers->programs[batch.program];
    if (program == kNone) program = program_number(from.programs[batch.program]);
    batch.program = program;
    if (batch.path >= from.paths.size()) continue;  // it never ended
    size_t& path = numbers->paths[batch.path];
    if (path == kNoPath) path = path_number(renumbered(from, from.paths[batch.path], &numbers->shapes));
    batch.path = path;
  }
  return begin;
}

/// The path of another trace, with numbers of shapes as they are here.
std::vector<Event> Recorder::renumbered(const Trace& from, const std::vector<Event>& path,
                                        std::vector<uint32_t>* shapes) {
  std::vector<Event> events;
  events.reserve(path.size());
  for (const Event event : path) {
    if (event.kind() != Kind::kLookup) {
      events.push_back(event);
      continue;
    }
    uint32_t& shape = (*shapes)[event.value()];
    if (shape == ~0u) shape = shape_number(from.shapes[event.value()]);
    events.emplace_back(Kind::kLookup, shape);
  }
  return events;
}

/// Batches that went the same way share it. What is shared is known only when the recorders of all workers
/// are together, so with several it counts as if nothing were.
size_t Recorder::path_number(const std::vector<Event>& path) {
  uint64_t hash = kBasis;
  for (const Event event : path) hash = mixed(hash, event.word());
  const auto [begin, end] = paths_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (trace_.paths[it->second] != path) continue;
    if (alone_) bytes_->fetch_sub(path.size() * sizeof(Event), std::memory_order_relaxed);
    return it->second;
  }
  trace_.paths.push_back(path);
  paths_.emplace(hash, trace_.paths.size() - 1);
  return trace_.paths.size() - 1;
}

}  // namespace v3d::timing
