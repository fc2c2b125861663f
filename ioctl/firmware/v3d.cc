#include "ioctl/firmware/v3d.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/perf/counter_table.h"
#include "gpu/perf/counters.h"
#include "ioctl/firmware/user_program_gpu.h"
#include "ioctl/memory/memory_file.h"

namespace v3d::ioctl::firmware {
namespace {

/// Offsets (VideoCoreIV-AG100-R, section 10).
enum Register : uint32_t {
  kIdent0 = 0x000,
  kIdent1 = 0x004,
  kIdent2 = 0x008,
  kScratch = 0x010,
  kL2Cactl = 0x020,
  kSlcactl = 0x024,
  kIntctl = 0x030,
  kIntena = 0x034,
  kIntdis = 0x038,
  kSqrsv0 = 0x410,
  kSqrsv1 = 0x414,
  kSqcntl = 0x418,
  kSrqpc = 0x430,
  kSrqua = 0x434,
  kSrqul = 0x438,
  kSrqcs = 0x43c,
  kVpacntl = 0x500,
  kVpmbase = 0x504,
  kPctrc = 0x670,
  kPctre = 0x674,
  kPctr0 = 0x680,   // and every second word
  kPctrs0 = 0x684,  // the same
  kPctrEnd = 0x700,
  kDbcfg = 0xe00,
  kDbqite = 0xe2c,
  kDbqitc = 0xe30,
  kErrstat = 0xf20,
};
constexpr uint32_t kNumCounters = 16;
constexpr uint32_t kCountersEnabled = 1u << 31;
/// What a V3D without power reads as.
constexpr uint32_t kNoPower = 0xdeadbeef;
/// Programs that the hardware's queue holds, besides those that QPUs have already.
constexpr size_t kQueue = 16;
/// Of programs that no EXECUTE_QPU started: JobContext::instruction_limit bounds them.
constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr uint32_t kRegistersBatch = 0;

perf::Counts counts_of(uint64_t instructions) {
  perf::Counts counts;
  counts[perf::kQpuActive] = instructions;
  perf::derive(&counts);
  return counts;
}

}  // namespace

std::shared_ptr<V3d> V3d::create(const chip::Profile& profile) {
  const auto file = MemoryFile::create("v3demu-registers", kRegisterBytes);
  if (!file) return nullptr;
  void* page = mmap(nullptr, kRegisterBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->memfd.get(), 0);
  if (page == MAP_FAILED) return nullptr;
  return std::shared_ptr<V3d>(new V3d(profile, std::move(file->memfd), static_cast<uint32_t*>(page)));
}

V3d::V3d(const chip::Profile& profile, UniqueFd memfd, uint32_t* page)
    : profile_(profile), memfd_(std::move(memfd)), page_(page), qpus_(profile.qpu_count()) {
  std::memcpy(page_ + wire::kRegisterMark / 4, &wire::kRegisterMagic, sizeof wire::kRegisterMagic);
  fill(kNoPower);
}

V3d::~V3d() { munmap(page_, kRegisterBytes); }

void V3d::put(uint32_t offset, uint32_t value) {
  std::atomic_ref(page_[offset / 4]).store(value, std::memory_order_release);
}
uint32_t V3d::get(uint32_t offset) const {
  return std::atomic_ref(page_[offset / 4]).load(std::memory_order_relaxed);
}

void V3d::fill(uint32_t value) {
  for (uint32_t offset = 0; offset < wire::kRegisterMark; offset += 4) put(offset, value);
}

/// As behind power-on, and what the firmware sets: the L2 cache is on, and the VPM is for user programs.
void V3d::reset_registers() {
  fill(0);
  put(kIdent0, profile_.core_ident0);
  put(kIdent1, profile_.core_ident1);
  put(kIdent2, profile_.core_ident2);
  put(kL2Cactl, 1);
  put(kVpmbase, qpu::vc4::kVpmRows / 4);
  requests_ = completed_ = 0;
  overflowed_ = false;
  reserved_ = 0;
}

void V3d::set_power(bool on) {
  const std::lock_guard lock(mutex_);
  if (on && powered_++ == 0) reset_registers();
  if (on || powered_ == 0 || --powered_ > 0) return;
  waiting_.clear();
  has_been_off_ = true;
  fill(kNoPower);
}

bool V3d::has_power() const {
  const std::lock_guard lock(mutex_);
  return powered_ > 0;
}

size_t V3d::most_waiting() const { return static_cast<size_t>(profile_.qpu_count()) + kQueue; }

void V3d::show_queue() {
  if (powered_ == 0) return;
  const auto waiting = static_cast<uint32_t>(waiting_.size());
  put(kSrqcs, std::min(waiting, 63u) | (overflowed_ ? 1u << 7 : 0) | (requests_ & 0xff) << 8 |
                  (completed_ & 0xff) << 16);
}

/// @return whether it is one of these registers
bool V3d::write_queue(uint32_t offset, uint32_t value, After* after) {
  switch (offset) {
    case kSrqua:
      put(offset, value);
      return true;
    case kSrqul:
      put(offset, value & 0xfff);
      return true;
    case kSrqpc:
      put(offset, value);
      if (waiting_.size() >= most_waiting()) {
        overflowed_ = true;
      } else {
        waiting_.push_back({value, get(kSrqua), kNoLimit, kRegistersBatch});
        ++requests_;
        if (!has_job_) *after = After::kRun;
        has_job_ = true;
      }
      break;
    case kSrqcs:
      if (value & 1) waiting_.clear();
      if (value & 1u << 7) overflowed_ = false;
      if (value & 1u << 8) requests_ = 0;
      if (value & 1u << 16) completed_ = 0;
      break;
    default:
      return false;
  }
  show_queue();
  return true;
}

bool V3d::write_counters(uint32_t offset, uint32_t value) {
  if (offset == kPctre) {
    put(offset, value & (kCountersEnabled | 0xffff));
  } else if (offset == kPctrc) {
    for (uint32_t n = 0; n < kNumCounters; ++n)
      if (value >> n & 1) put(kPctr0 + 8 * n, 0);
  } else if (offset >= kPctr0 && offset < kPctrEnd) {
    put(offset, offset & 4 ? value & 0x1f : value);
  } else {
    return false;
  }
  return true;
}

/// Bit 0 of a QPU's four keeps user programs from it.
void V3d::update_reserved() {
  uint32_t reserved = 0;
  for (uint32_t n = 0; n < 16; ++n) reserved |= (get(n < 8 ? kSqrsv0 : kSqrsv1) >> (n % 8 * 4) & 1) << n;
  reserved_ = reserved;
}

/// What is kept, or cleared by ones. Caches need not be cleared: memory is coherent here.
bool V3d::write_state(uint32_t offset, uint32_t value) {
  switch (offset) {
    case kIdent0:
    case kIdent1:
    case kIdent2:
    case kSlcactl:
      return true;
    case kL2Cactl:
      put(offset, (get(offset) | (value & 1)) & ~(value >> 1 & 1));
      return true;
    case kIntena:
    case kIntdis: {
      const uint32_t enabled = get(kIntena);
      const uint32_t now = offset == kIntena ? enabled | (value & 0xf) : enabled & ~value;
      put(kIntena, now);
      put(kIntdis, now);
      return true;
    }
    case kIntctl:
    case kDbqitc:
    case kErrstat:
      put(offset, get(offset) & ~value);
      return true;
    case kScratch:
    case kSqcntl:
    case kVpacntl:
    case kVpmbase:
    case kDbcfg:
    case kDbqite:
      put(offset, value);
      return true;
    case kSqrsv0:
    case kSqrsv1:
      put(offset, value);
      update_reserved();
      return true;
    default:
      return false;
  }
}

V3d::After V3d::write(uint32_t offset, uint32_t value) {
  const std::lock_guard lock(mutex_);
  After after = After::kNothing;
  if (powered_ == 0) return after;
  const bool known =
      write_queue(offset, value, &after) || write_counters(offset, value) || write_state(offset, value);
  return known ? after : After::kUnknown;
}

void V3d::drop_waiting() {
  const std::lock_guard lock(mutex_);
  has_job_ = false;
  std::erase_if(waiting_, [](const csd::UserProgram& p) { return p.batch == kRegistersBatch; });
  show_queue();
}

bool V3d::enqueue(std::span<csd::UserProgram> programs, uint64_t* batch) {
  const std::lock_guard lock(mutex_);
  if (programs.size() > most_waiting() - std::min(most_waiting(), waiting_.size())) return false;
  *batch = ++last_batch_;
  batches_[*batch] = programs.size();
  for (csd::UserProgram& program : programs) {
    program.batch = *batch;
    waiting_.push_back(program);
  }
  requests_ += static_cast<uint32_t>(programs.size());
  show_queue();
  return true;
}

bool V3d::finish(uint64_t batch) {
  const std::lock_guard lock(mutex_);
  const auto it = batches_.find(batch);
  if (it == batches_.end()) return true;
  const bool ended = it->second == 0;
  batches_.erase(it);
  std::erase_if(waiting_, [&](const csd::UserProgram& p) { return p.batch == batch; });
  show_queue();
  return ended;
}

bool V3d::take(csd::UserProgram* program) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return false;
  *program = waiting_.front();
  waiting_.pop_front();
  show_queue();
  return true;
}

std::vector<csd::UserProgram> V3d::queued() const {
  const std::lock_guard lock(mutex_);
  return {waiting_.begin(), waiting_.end()};
}

void V3d::end(const csd::UserProgram& program, int qpu, bool interrupts) {
  const std::lock_guard lock(mutex_);
  if (powered_ == 0) return;
  ++completed_;
  if (interrupts && get(kDbqite) >> qpu & 1) put(kDbqitc, get(kDbqitc) | 1u << qpu);
  if (const auto it = batches_.find(program.batch); it != batches_.end()) --it->second;
  show_queue();
}

bool V3d::is_counting() const { return powered_ > 0 && get(kPctre) & kCountersEnabled; }

/// Only while it is counting.
void V3d::count(const perf::Counts& counts) {
  const uint32_t enabled = get(kPctre);
  const chip::Generation generation = profile_.generation;
  const auto sources = static_cast<uint32_t>(perf::counter_table(generation).size());
  for (uint32_t n = 0; n < kNumCounters; ++n) {
    const uint32_t source = get(kPctrs0 + 8 * n);
    if (!(enabled >> n & 1) || source >= sources) continue;
    const int index = perf::index_in_counts(generation, static_cast<int>(source));
    if (index < 0) continue;
    const uint64_t more = counts.values[static_cast<size_t>(index)];
    put(kPctr0 + 8 * n, get(kPctr0 + 8 * n) + static_cast<uint32_t>(more));
  }
}

void V3d::executed(uint64_t instructions) {
  const std::lock_guard lock(mutex_);
  told_ += instructions;
  if (is_counting()) count(counts_of(instructions));
}

/// What is known when a job has ended, and not earlier.
void V3d::count_rest(const perf::Counts& counts) {
  const perf::Counts told = counts_of(std::exchange(told_, 0));
  if (!is_counting()) return;
  perf::Counts rest = counts;
  for (size_t n = 0; n < rest.values.size(); ++n) rest.values[n] -= std::min(rest.values[n], told.values[n]);
  count(rest);
}

device::JobResult V3d::run(GpuContext& gpu, bool alone, JobControl& control) {
  auto* const runner = dynamic_cast<UserProgramGpu*>(&gpu);
  if (!runner) {
    device::JobResult none;
    none.end = device::JobResult::End::kError;
    none.message = "this GPU runs no user programs";
    return none;
  }
  if (has_been_off_.exchange(false)) qpus_.reset();
  for (;;) {
    device::JobResult result = runner->run_user_programs(qpus_, *this, alone, control);
    if (get(kPctre) & kCountersEnabled) result.predict();
    const std::lock_guard lock(mutex_);
    count_rest(result.counts);
    // What came meanwhile has no job of its own.
    if (result.end == device::JobResult::End::kDone && !waiting_.empty() && !control.cancelled() &&
        reserved_qpus() != (1u << profile_.qpu_count()) - 1)
      continue;
    if (result.end != device::JobResult::End::kDone) waiting_.clear();
    has_job_ = false;
    show_queue();
    return result;
  }
}

}  // namespace v3d::ioctl::firmware
