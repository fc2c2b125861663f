#include "shim/status.h"

#include <linux/futex.h>

#include <atomic>
#include <climits>
#include <cstring>

#include "ioctl/wire.h"
#include "shim/counts.h"
#include "shim/raw.h"
#include "shim/user_memory.h"

namespace v3d::shim {
namespace {

constexpr uint32_t kSyncobjWait = 0xc02064c3, kSyncobjWaitWithHint = 0xc02864c3;
constexpr uint32_t kSyncobjReset = 0xc01064c4;
constexpr uint32_t kWaitBo = 0xc0106441;
/// With and without the point of a timeline; the rest is the same.
constexpr uint32_t kSyncobjToFd = 0xc01864c1, kSyncobjToFdWithoutPoint = 0xc01064c1;
constexpr uint32_t kSyncFile = 1;  // flags of kSyncobjToFd
constexpr uint32_t kWaitAll = 1, kWaitForSubmit = 2;
constexpr uint32_t kMostHandles = 16;  // of a request that is answered here
constexpr int64_t kSecond = 1'000'000'000;
/// So often a thread that sleeps makes sure that there still is a daemon to wake it.
constexpr int64_t kLifePeriod = kSecond / 4;
/// So long the export of a syncobj without a fence waits for one. Mesa's Vulkan drivers export in a circle
/// until another of their threads has submitted (vk_drm_syncobj.c, spin_wait_for_sync_file), and would take
/// the processor from it and from the daemon.
constexpr int64_t kExportPatience = 500'000;
/// So long a fence may take that is waited for without sleeping.
constexpr int64_t kSpin = 20'000;

struct SyncobjWait {
  uint64_t handles;
  int64_t timeout_ns;
  uint32_t count_handles, flags, first_signaled, pad;
};
struct WaitBo {
  uint32_t handle, pad;
  uint64_t timeout_ns;
};
struct SyncobjArray {
  uint64_t handles;
  uint32_t count_handles, pad;
};
struct SyncobjToFd {
  uint32_t handle, flags;
  int32_t fd;
  uint32_t pad;
};

/// The files of this process. A place is taken once, and again when its file is closed.
struct Place {
  std::atomic<uint64_t> token;  ///< 0: none; 1: being written
  wire::Status* status;
  uint32_t bytes;
};
constexpr uint64_t kBeingWritten = 1;
Place places[32];

template <typename T>
T load(T& word) {
  return std::atomic_ref<T>(word).load();
}

uint32_t lower_half(uint64_t entry) { return static_cast<uint32_t>(entry); }
wire::SyncobjState state_of(uint64_t entry) { return static_cast<wire::SyncobjState>(entry & 3); }

/// A fence that was pending when it was looked up.
struct Pending {
  uint32_t index, number;
};

Pending pending_in(uint32_t place) {
  return {place & ((1u << wire::kFenceIndexBits) - 1), place >> wire::kFenceIndexBits};
}

class View {
 public:
  explicit View(wire::Status* status) : status_(*status) {}

  /// What a syncobj holds, if it is said. @param entry  for sleep_while_empty()
  wire::SyncobjState look(uint32_t handle, Pending* pending, uint32_t* entry) const {
    if (handle >= wire::Status::kSyncobjs) return wire::kAsk;
    const uint64_t whole = load(status_.syncobjs[handle]);
    *entry = lower_half(whole);
    const wire::SyncobjState state = state_of(whole);
    if (state <= wire::kEmpty) return state;
    if (load(status_.resets[handle]) == *entry) return wire::kEmpty;
    if (state == wire::kSignalled) return state;
    *pending = pending_in(static_cast<uint32_t>(whole >> 32));
    if (pending->index >= wire::Status::kFences) return wire::kAsk;
    return is_pending(*pending) ? wire::kPending : wire::kSignalled;
  }
  bool is_pending(const Pending& fence) const {
    return load(status_.fences[fence.index]) == fence.number * 2;
  }

  /// Whether it is said that no job uses a BO.
  bool is_idle(uint32_t handle) const {
    if (handle >= wire::Status::kBos) return false;
    const uint32_t place = load(status_.bos[handle]);
    if (place == wire::kAskOfBo || place == wire::kIdleBo) return place == wire::kIdleBo;
    const Pending fence = pending_in(place);
    return fence.index < wire::Status::kFences && !is_pending(fence);
  }

  /// False when the daemon has to be asked.
  bool reset(uint32_t handle) {
    Pending pending;
    uint32_t entry;
    const wire::SyncobjState state = look(handle, &pending, &entry);
    if (state <= wire::kEmpty) return state == wire::kEmpty;
    std::atomic_ref<uint32_t> word(status_.resets[handle]);
    uint32_t known = word.load();
    // Another thread may empty it of a later fence meanwhile. Entries are numbered from their third bit on.
    while (static_cast<int32_t>(entry - known) > 0 || known == 0) {
      if (word.compare_exchange_weak(known, entry)) break;
    }
    // The daemon may have ceased to listen, or the number of the last reset is too old to compare.
    const uint64_t whole = load(status_.syncobjs[handle]);
    return state_of(whole) != wire::kAsk && (lower_half(whole) != entry || word.load() == entry);
  }

  /// Sleeps until the word is another, a signal comes or it is time. 0, -EINTR, -ETIMEDOUT, or -ENOSYS.
  /// A handler with SA_RESTART does not end it, as it would end a futex(FUTEX_WAIT) with a time.
  int sleep_while(uint32_t* word, uint32_t value, int64_t until_ns) {
    const uint64_t offset = reinterpret_cast<uint64_t>(word) - reinterpret_cast<uint64_t>(&status_);
    std::atomic_ref<uint32_t> sleepers(status_.sleepers[wire::sleepers_of(offset)]);
    const timespec time{static_cast<time_t>(until_ns / kSecond), static_cast<long>(until_ns % kSecond)};
    futex_waitv waiter{};
    waiter.uaddr = reinterpret_cast<uint64_t>(word);
    waiter.val = value;
    waiter.flags = FUTEX_32;
    count(kFutexCalls);
    sleepers.fetch_add(1);
    const long error =
        raw::call(SYS_futex_waitv, raw::word(&waiter), 1, 0, raw::word(&time), CLOCK_MONOTONIC);
    sleepers.fetch_sub(1);
    return error < 0 && error != -EAGAIN ? static_cast<int>(error) : 0;
  }
  uint32_t* word_of(const Pending& fence) { return &status_.fences[fence.index]; }
  uint32_t* word_of(uint32_t handle) {
    return reinterpret_cast<uint32_t*>(&status_.syncobjs[handle]);  // the lower half
  }

 private:
  wire::Status& status_;
};

/// A wait for one syncobj after the other, until a deadline. Results: 0, a negative errno, or kAskDaemon.
class Wait {
 public:
  static constexpr int kAskDaemon = 1;

  static int64_t now() { return static_cast<int64_t>(raw::fast_monotonic_ns()); }

  Wait(const File& file, View& view, int64_t deadline_ns)
      : file_(file), view_(view), deadline_ns_(deadline_ns), check_ns_(0) {}

  int for_fence_to_appear(uint32_t handle, Pending* pending) {
    for (;;) {
      uint32_t entry;
      switch (view_.look(handle, pending, &entry)) {
        case wire::kAsk:
          return kAskDaemon;
        case wire::kSignalled:
          return 0;
        case wire::kPending:
          return until_signalled(*pending);
        case wire::kEmpty:
          // Another thread has to submit first, and may need this processor to do it.
          if (int error = sleep(view_.word_of(handle), entry)) return error;
      }
    }
  }

  /// Until the deadline or a signal. Whether it still is.
  bool while_empty(uint32_t handle) {
    Pending pending;
    uint32_t entry;
    for (int error = 0; view_.look(handle, &pending, &entry) == wire::kEmpty;) {
      if (error) return true;
      error = sleep(view_.word_of(handle), entry);
    }
    return false;
  }

  int until_signalled(const Pending& fence) {
    const int64_t start = now();
    if (start >= deadline_ns_) return view_.is_pending(fence) ? -ETIME : 0;
    if (worth_spinning()) note_spin(spin(fence, start + kSpin));
    while (view_.is_pending(fence)) {
      if (int error = sleep(view_.word_of(fence), fence.number * 2)) {
        return view_.is_pending(fence) ? error : 0;
      }
    }
    return 0;
  }

 private:
  bool spin(const Pending& fence, int64_t end_ns) {
    while (now() < end_ns) {
      for (int i = 0; i < 32; ++i) {
        if (!view_.is_pending(fence)) return true;
        raw::pause();
      }
    }
    return false;
  }

  int sleep(uint32_t* word, uint32_t value) {
    const int64_t time = now();
    if (time >= deadline_ns_) return -ETIME;
    if (check_ns_ == 0) check_ns_ = time + kLifePeriod;
    const int64_t until = deadline_ns_ < check_ns_ ? deadline_ns_ : check_ns_;
    const int error = view_.sleep_while(word, value, until);
    if (error != -ETIMEDOUT) return error && error != -EINTR ? kAskDaemon : error;  // not on this host
    if (now() >= deadline_ns_) return 0;  // the caller looks once more
    check_ns_ = 0;
    return ask_for_life(file_);
  }

  // How often spinning was in vain of late: after that, it is tried ever less.
  static inline std::atomic<uint32_t> s_failures{0}, s_skipped{0};
  static bool worth_spinning() {
    const uint32_t failures = s_failures.load(std::memory_order_relaxed);
    if (failures == 0) return true;
    const uint32_t period = 1u << (failures < 6 ? failures : 6);
    return s_skipped.fetch_add(1, std::memory_order_relaxed) % period == 0;
  }
  static void note_spin(bool useful) {
    const uint32_t failures = s_failures.load(std::memory_order_relaxed);
    if (useful && failures) s_failures.store(0, std::memory_order_relaxed);
    if (!useful && failures < 6) s_failures.store(failures + 1, std::memory_order_relaxed);
  }

  const File& file_;
  View& view_;
  const int64_t deadline_ns_;
  int64_t check_ns_;
};

/// In the kernel's order: syncobjs without a fence, what has signalled, the time.
int wait(const File& file, View& view, const uint32_t* handles, SyncobjWait* args) {
  const bool all = args->flags & kWaitAll, for_submit = args->flags & kWaitForSubmit;
  Pending pending[kMostHandles];
  bool signalled[kMostHandles];
  uint32_t first = ~0u, num_signalled = 0, num_empty = 0;
  for (uint32_t i = 0; i < args->count_handles; ++i) {
    uint32_t entry;
    const wire::SyncobjState state = view.look(handles[i], &pending[i], &entry);
    if (state == wire::kAsk || (state == wire::kEmpty && !for_submit)) return Wait::kAskDaemon;
    signalled[i] = state == wire::kSignalled;
    num_empty += state == wire::kEmpty;
    if (signalled[i] && num_signalled++ == 0) first = i;
  }
  const bool over = num_signalled == args->count_handles || (num_signalled && !all);
  Wait waiting(file, view, args->timeout_ns);
  if (!over && args->count_handles == 1) {
    const int error =
        num_empty ? waiting.for_fence_to_appear(handles[0], pending) : waiting.until_signalled(pending[0]);
    if (error) return error;
    if (!all) first = 0;
  } else if (!over) {
    // Fences that appear later would all have to be watched at once.
    if (!all || num_empty) return Wait::kAskDaemon;
    for (uint32_t i = 0; i < args->count_handles; ++i) {
      if (signalled[i]) continue;
      if (int error = waiting.until_signalled(pending[i])) return error;
    }
  }
  args->first_signaled = first;
  return 0;
}

/// What a wait for an idle BO has left of its timeout is what it had.
bool answer_wait_bo(const View& view, uint64_t argument, int* result) {
  WaitBo args;
  if (!copy_from_user(&args, argument, sizeof(args)) || args.pad || !view.is_idle(args.handle)) return false;
  *result = copy_to_user(argument, &args, sizeof(args)) ? 0 : -EFAULT;
  return true;
}

/// The export of a syncobj that has no fence.
bool answer_to_fd(const File& file, View& view, uint64_t argument, int* result) {
  SyncobjToFd args;
  if (!copy_from_user(&args, argument, sizeof(args)) || args.pad || args.flags != kSyncFile) return false;
  Wait waiting(file, view, Wait::now() + kExportPatience);
  if (!waiting.while_empty(args.handle)) return false;
  *result = copy_to_user(argument, &args, sizeof(args)) ? -EINVAL : -EFAULT;
  return true;
}

wire::Status* find_status(uint64_t token) {
  for (Place& place : places) {
    if (place.token.load(std::memory_order_acquire) == token) return place.status;
  }
  return nullptr;
}

bool read_handles(uint64_t address, uint32_t count, uint32_t* handles) {
  return count > 0 && count <= kMostHandles && copy_from_user(handles, address, count * sizeof(*handles));
}

bool answer_wait(const File& file, View& view, uint64_t argument, int* result) {
  SyncobjWait args;
  uint32_t handles[kMostHandles];
  if (!copy_from_user(&args, argument, sizeof(args)) || args.flags & ~(kWaitAll | kWaitForSubmit) ||
      !read_handles(args.handles, args.count_handles, handles)) {
    return false;
  }
  *result = wait(file, view, handles, &args);
  if (*result == Wait::kAskDaemon) return false;
  // The argument is copied out on errors too.
  if (!copy_to_user(argument, &args, sizeof(args))) *result = -EFAULT;
  return true;
}

bool answer_reset(View& view, uint64_t argument, int* result) {
  SyncobjArray args;
  uint32_t handles[kMostHandles];
  if (!copy_from_user(&args, argument, sizeof(args)) || args.pad ||
      !read_handles(args.handles, args.count_handles, handles)) {
    return false;
  }
  // All or nothing, as far as is seen; asking repeats what was done, which changes nothing.
  for (uint32_t i = 0; i < args.count_handles; ++i) {
    Pending pending;
    uint32_t entry;
    if (view.look(handles[i], &pending, &entry) == wire::kAsk) return false;
  }
  for (uint32_t i = 0; i < args.count_handles; ++i) {
    if (!view.reset(handles[i])) return false;
  }
  *result = copy_to_user(argument, &args, sizeof(args)) ? 0 : -EFAULT;
  return true;
}

}  // namespace

void remember_status(uint64_t token, int fd, uint32_t bytes) {
  if (bytes < sizeof(wire::Status) || find_status(token)) return;
  for (Place& place : places) {
    uint64_t owner = place.token.load(std::memory_order_acquire);
    if (owner == kBeingWritten || (owner != 0 && !load(place.status->closed))) continue;
    if (!place.token.compare_exchange_strong(owner, kBeingWritten, std::memory_order_acq_rel)) continue;
    // Over what was there: a thread that still looks at it must find memory.
    const bool reused = owner != 0 && place.bytes == bytes;
    void* memory = raw::mmap(reused ? place.status : nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | (reused ? MAP_FIXED : 0), fd, 0);
    if (memory) {
      place.status = static_cast<wire::Status*>(memory);
      place.bytes = bytes;
    }
    place.token.store(memory ? token : owner, std::memory_order_release);
    return;
  }
}

bool has_status(const File& file) { return find_status(file.token) != nullptr; }

void wake_sleepers(const File& file, uint32_t offset) {
  wire::Status* status = find_status(file.token);
  if (!status || offset % sizeof(uint32_t) || offset >= sizeof(*status)) return;
  count(kFutexCalls);
  raw::call(SYS_futex, raw::word(status) + offset, FUTEX_WAKE, INT_MAX);
}

bool find_status_answer(const File& file, uint32_t request, uint64_t argument, int* result) {
  const bool is_wait = request == kSyncobjWait || request == kSyncobjWaitWithHint;
  const bool is_export = request == kSyncobjToFd || request == kSyncobjToFdWithoutPoint;
  if (!is_wait && !is_export && request != kSyncobjReset && request != kWaitBo) return false;
  wire::Status* status = find_status(file.token);
  if (!status || load(status->closed)) return false;
  View view(status);
  if (request == kWaitBo) return answer_wait_bo(view, argument, result);
  if (is_export) return answer_to_fd(file, view, argument, result);
  return is_wait ? answer_wait(file, view, argument, result) : answer_reset(view, argument, result);
}

}  // namespace v3d::shim
