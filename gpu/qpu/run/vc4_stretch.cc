#include "gpu/qpu/run/vc4_stretch.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "gpu/qpu/isa/vc4_access.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::vc4 {
namespace {

using Target = StepTarget::Target;

bool may_be_compiled(const Half& half) {
  if (!half.alu) return true;
  switch (half.to.target) {
    case Target::kNone:
    case Target::kRegister:
      return true;
    case Target::kPort:
      return is_quick(half.to.port) || is_tmu(half.to.port) || is_sfu(half.to.port);
    default:
      return false;
  }
}

/// Lookups along a stretch: those that are being set up, and those whose results wait.
class Lookups {
 public:
  /// False if the step has to be interpreted.
  bool pass(const Step& step) {
    const Signal signal = step.signal;
    if (signal == Signal::kLoadTmu0 || signal == Signal::kLoadTmu1) {
      uint32_t& waiting = units_[signal == Signal::kLoadTmu1].waiting;
      if (waiting == 0) return false;
      --waiting;
    }
    for (const Half* half : {&step.add, &step.mul})
      if (half->alu && half->to.target == Target::kPort && is_tmu(half->to.port) && !write(half->to.port))
        return false;
    return true;
  }
  bool are_set_up() const { return units_[0].parameters == 0 && units_[1].parameters == 0; }

  /// Words of the stream that lookups took.
  uint32_t uniforms = 0;
  bool starts = false;  ///< the last step started one

 private:
  bool write(WritePort port) {
    Unit& unit = units_[tmu_of(port)];
    const bool is_s = tmu_parameter_of(port) == 0;
    if (!is_s || unit.parameters != 0) {
      ++uniforms;
      if (++unit.parameters > 4) return false;
    }
    if (!is_s) return true;
    starts = true;
    unit.parameters = 0;
    return ++unit.waiting <= kTmuResults;
  }

  struct Unit {
    uint32_t parameters = 0, waiting = 0;
  };
  std::array<Unit, 2> units_;
};

/// The steps from one on, chunk by chunk.
class Walk {
 public:
  Walk(const Chunk& chunk, uint32_t first, const std::function<const Chunk*(GpuAddr)>& chunk_at)
      : chunk_(&chunk), next_(first), chunk_at_(chunk_at) {}
  /// Null: it was not decoded.
  const Step* next() {
    if (next_ == Chunk::kWords) {
      chunk_ = chunk_at_(chunk_->address + Chunk::kBytes);
      next_ = 0;
    }
    return chunk_ ? &chunk_->steps[next_++] : nullptr;
  }

 private:
  const Chunk* chunk_;
  uint32_t next_;
  const std::function<const Chunk*(GpuAddr)>& chunk_at_;
};

bool ends(const Step& step) { return step.signal == Signal::kEnd; }
bool reads_uniform(const Step& step) {
  return step.read_a == ReadPort::kUniform || step.read_b == ReadPort::kUniform;
}

// ---- What is live

constexpr size_t kFirstFlag = Thread::kPortA;
size_t register_of(uint16_t offset) { return offset / sizeof(Lanes); }

/// What a half reads, and what it writes wholly.
void pass_half(const Half& half, bool sets_flags, Live& reads, Live& writes) {
  if (!half.alu) return;
  for (const Source* s : {&half.a, &half.b})
    if (const size_t n = register_of(s->offset); !s->immediate && n < kFirstFlag) reads.set(n);
  const bool always = half.condition == kAlways;
  if (half.condition.flag != Thread::kNone) reads.set(kFirstFlag + half.condition.flag);
  if (half.to.target == Target::kRegister) {
    const size_t n = register_of(half.to.offset);
    (always && half.pack == Half::Pack::kNone ? writes : reads).set(n);
  }
  for (size_t flag = Thread::kZ; sets_flags && flag <= Thread::kC; ++flag)
    (always ? writes : reads).set(kFirstFlag + flag);
}

/// r4 and r5, which signals and varyings write.
void pass_accumulators(const Step& step, Live& writes) {
  if (step.signal == Signal::kLoadTmu0 || step.signal == Signal::kLoadTmu1 ||
      step.signal == Signal::kColorLoad)
    writes.set(Thread::kAccumulators + 4);
  if (step.reads_varying) writes.set(Thread::kAccumulators + 5);
}

}  // namespace

bool may_be_compiled(const Step& step) {
  return step.kind == Step::Kind::kGeneral && !step.is_semaphore && !step.rotates &&
         step.read_a != ReadPort::kMutex && step.read_b != ReadPort::kMutex &&
         step.signal != Signal::kColorLoadEnd && may_be_compiled(step.add) && may_be_compiled(step.mul);
}

Stretch stretch_at(const Chunk& chunk, uint32_t first,
                   const std::function<const Chunk*(GpuAddr address)>& chunk_at) {
  Stretch stretch;
  stretch.address = chunk.address + first * 8;
  stretch.is_known = true;
  Walk walk(chunk, first, chunk_at);
  Lookups lookups;
  size_t whole = 0;        // steps behind which no lookup is half set up
  uint32_t unguarded = 0;  // uniforms since code looked for memory
  while (stretch.steps.size() < Stretch::kMostSteps) {
    const Step* const step = walk.next();
    if (!step) {
      stretch.is_known = false;
      break;
    }
    const uint32_t before = lookups.uniforms;
    lookups.starts = false;
    if (!step->compiles || !lookups.pass(*step)) break;
    unguarded += lookups.uniforms - before + reads_uniform(*step);
    if (unguarded > Stretch::kMostUniforms) break;
    if (lookups.starts) unguarded = 0;
    if (ends(*step) && stretch.steps.size() + 3 > Stretch::kMostSteps) break;
    stretch.steps.push_back(step);
    if (lookups.are_set_up()) whole = stretch.steps.size();
    if (!ends(*step)) continue;
    // Two more; else it goes on as if nothing ended.
    const Step *const second = walk.next(), *const third = second ? walk.next() : nullptr;
    const bool has_both = third && second->compiles && third->compiles && !ends(*second) && !ends(*third) &&
                          lookups.pass(*second) && lookups.pass(*third) && lookups.are_set_up();
    if (has_both) {
      stretch.steps.insert(stretch.steps.end(), {second, third});
      whole = stretch.steps.size();
      stretch.ends = true;
    } else {
      stretch.is_known = third != nullptr;
      whole = std::min(whole, stretch.steps.size() - 1);
    }
    break;
  }
  stretch.steps.resize(whole);
  return stretch;
}

std::vector<Live> live_behind(const Stretch& stretch) {
  std::vector<Live> live(stretch.steps.size());
  Live now;
  if (!stretch.ends) {  // and a thread may stop anywhere
    for (Live& all : live) all.set();
    return live;
  }
  for (size_t n = stretch.steps.size(); n-- > 0;) {
    live[n] = now;
    const Step& step = *stretch.steps[n];
    Live reads, writes;
    pass_half(step.add, step.add_sets_flags, reads, writes);
    pass_half(step.mul, step.mul_sets_flags, reads, writes);
    pass_accumulators(step, writes);
    now = (now & ~writes) | reads;
  }
  return live;
}

}  // namespace v3d::qpu::vc4
