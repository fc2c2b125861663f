#include "shim/drm/status.h"

#include <atomic>
#include <cerrno>

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/link/wire.h"
#include "shim/drm/local_call.h"
#include "shim/drm/status_view.h"
#include "shim/link/submit_order.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {

namespace drm = ioctl::drm;

namespace {

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

/// The files of this process. A place is taken once, and again when its file is closed.
struct StatusSlot {
  std::atomic<uint64_t> token;  ///< 0: none; 1: being written
  wire::Status* status;
  uint32_t bytes;
  ReadySyncFile ready;
};
constexpr uint64_t kBeingWritten = 1;
StatusSlot places[32];

template <typename T>
T load(T& word) {
  return std::atomic_ref<T>(word).load();
}

/// A wait for one syncobj after the other, until a deadline. Results: 0, a negative errno, or kAskDaemon.
class Wait {
 public:
  static constexpr int kAskDaemon = LocalCall::kAskDaemon;

  static int64_t now() { return static_cast<int64_t>(raw::fast_monotonic_ns()); }

  Wait(const File& file, StatusView& view, int64_t deadline_ns)
      : file_(file), view_(view), deadline_ns_(deadline_ns), check_ns_(0) {}

  int for_fence_to_appear(uint32_t handle) {
    for (;;) {
      const StatusView::Syncobj seen = view_.look(handle);
      if (seen.state == wire::kAsk) return kAskDaemon;
      if (seen.state == wire::kSignalled) return 0;
      if (seen.state == wire::kPending) return until_signalled(seen.pending);
      // Another thread has to submit first, and may need this processor to do it.
      if (int error = sleep([&](int64_t until) { return view_.sleep_while_same(handle, seen, until); })) {
        return error;
      }
    }
  }

  /// Until the deadline or a signal. Whether it still is.
  bool while_empty(uint32_t handle) {
    StatusView::Syncobj seen;
    for (int error = 0; (seen = view_.look(handle)).state == wire::kEmpty;) {
      if (error) return true;
      error = sleep([&](int64_t until) { return view_.sleep_while_same(handle, seen, until); });
    }
    return false;
  }

  int until_signalled(const Pending& fence) {
    const int64_t start = now();
    if (start >= deadline_ns_) return view_.is_pending(fence) ? -ETIME : 0;
    if (worth_spinning()) note_spin(spin(fence, start + kSpin));
    while (view_.is_pending(fence)) {
      if (int error = sleep([&](int64_t until) { return view_.sleep_while_pending(fence, until); })) {
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

  /// @param sleep_until  what sleeps at most so long
  template <typename Fn>
  int sleep(Fn&& sleep_until) {
    const int64_t time = now();
    if (time >= deadline_ns_) return -ETIME;
    if (check_ns_ == 0) check_ns_ = time + kLifePeriod;
    const int64_t until = deadline_ns_ < check_ns_ ? deadline_ns_ : check_ns_;
    const int error = sleep_until(until);
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
  StatusView& view_;
  const int64_t deadline_ns_;
  int64_t check_ns_;
};

/// In the kernel's order: syncobjs without a fence, what has signalled, the time.
int wait(const File& file, StatusView& view, const uint32_t* handles, drm::SyncobjWait* args) {
  const bool all = args->flags & drm::kWaitAll, for_submit = args->flags & drm::kWaitForSubmit;
  StatusView::Syncobj seen[kMostHandles];
  uint32_t first = ~0u, num_signalled = 0, num_empty = 0;
  for (uint32_t i = 0; i < args->count_handles; ++i) {
    seen[i] = view.look(handles[i]);
    const wire::SyncobjState state = seen[i].state;
    if (state == wire::kAsk || (state == wire::kEmpty && !for_submit)) return Wait::kAskDaemon;
    num_empty += state == wire::kEmpty;
    if (state == wire::kSignalled && num_signalled++ == 0) first = i;
  }
  const bool over = num_signalled == args->count_handles || (num_signalled && !all);
  Wait waiting(file, view, args->timeout_ns);
  if (!over && args->count_handles == 1) {
    const int error =
        num_empty ? waiting.for_fence_to_appear(handles[0]) : waiting.until_signalled(seen[0].pending);
    if (error) return error;
    if (!all) first = 0;
  } else if (!over) {
    // Fences that appear later would all have to be watched at once.
    if (!all || num_empty) return Wait::kAskDaemon;
    for (uint32_t i = 0; i < args->count_handles; ++i) {
      if (seen[i].state == wire::kSignalled) continue;
      if (int error = waiting.until_signalled(seen[i].pending)) return error;
    }
  }
  args->first_signaled = first;
  return 0;
}

StatusSlot* find_place(uint64_t token) {
  for (StatusSlot& place : places) {
    if (place.token.load(std::memory_order_acquire) == token) return &place;
  }
  return nullptr;
}

wire::Status* find_status(uint64_t token) {
  const StatusSlot* place = find_place(token);
  return place ? place->status : nullptr;
}

bool read_handles(uint64_t address, uint32_t count, uint32_t* handles) {
  return count > 0 && count <= kMostHandles && copy_from_user(handles, address, count * sizeof(*handles));
}

/// The status of an open file; null: nothing is known.
StatusSlot* find_open_place(const File& file) {
  StatusSlot* place = find_place(file.token);
  return place && !load(place->status->closed) ? place : nullptr;
}

}  // namespace

void remember_status(uint64_t token, int fd, uint32_t bytes) {
  if (bytes < sizeof(wire::Status) || find_status(token)) return;
  for (StatusSlot& place : places) {
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

bool look_at_bo_changes(const File& file, uint32_t* changes) {
  wire::Status* const status = find_status(file.token);
  if (!status || load(status->closed)) return false;
  *changes = load(status->bo_changes);
  return true;
}

bool has_status(const File& file) { return find_status(file.token) != nullptr; }

void wake_sleepers(const File& file, uint32_t offset) {
  wire::Status* status = find_status(file.token);
  if (!status || offset % sizeof(uint32_t) || offset >= sizeof(*status)) return;
  StatusView::wake(reinterpret_cast<uint32_t*>(status) + offset / sizeof(uint32_t));
}

void remember_ready(const File& file, const wire::ReadySyncFile& what, int fd) {
  StatusSlot* place = find_place(file.token);
  if (place)
    place->ready.put(file.token, what, fd);
  else
    raw::close(fd);
}

Exports expected_exports(const File& file) {
  const StatusSlot* place = find_place(file.token);
  return place ? place->ready.expected() : Exports{};
}

SubmitOfExpected::SubmitOfExpected(const File& file, uint32_t syncobj) : ready_(nullptr) {
  StatusSlot* place = find_place(file.token);
  if (!place || !place->ready.is_wanted_by_submit(syncobj)) return;
  ready_ = &place->ready;
  ready_->begin_coming();
}

SubmitOfExpected::~SubmitOfExpected() {
  if (ready_) ready_->end_coming();
}

/// What a wait for an idle BO has left of its timeout is what it had.
int answer_wait_bo(LocalCall& call, drm::WaitBo& args) {
  StatusSlot* place = find_open_place(call.file);
  return place && !args.pad && StatusView(place->status).is_idle(args.handle) ? 0 : LocalCall::kAskDaemon;
}

int answer_syncobj_wait(LocalCall& call, drm::SyncobjWait& args) {
  StatusSlot* place = find_open_place(call.file);
  uint32_t handles[kMostHandles];
  if (!place || args.flags & ~uint32_t{drm::kWaitAll | drm::kWaitForSubmit} ||
      !read_handles(args.handles, args.count_handles, handles)) {
    return LocalCall::kAskDaemon;
  }
  StatusView view(place->status);
  const int result = wait(call.file, view, handles, &args);
  if (result != 0) return result;
  SyncobjSet waited = 0;
  for (uint32_t i = 0; i < args.count_handles; ++i) waited |= set_of(handles[i]);
  SubmitOrder::let_others_go_on(waited);
  return 0;
}

int answer_syncobj_reset(LocalCall& call, drm::SyncobjArray& args) {
  StatusSlot* place = find_open_place(call.file);
  uint32_t handles[kMostHandles];
  if (!place || args.pad || !read_handles(args.handles, args.count_handles, handles))
    return LocalCall::kAskDaemon;
  StatusView view(place->status);
  // All or nothing, as far as is seen; asking repeats what was done, which changes nothing.
  for (uint32_t i = 0; i < args.count_handles; ++i)
    if (view.look(handles[i]).state == wire::kAsk) return LocalCall::kAskDaemon;
  for (uint32_t i = 0; i < args.count_handles; ++i)
    if (!view.change(handles[i], wire::kEmptied)) return LocalCall::kAskDaemon;
  return 0;
}

/// A handle that was destroyed without telling the daemon is one again.
int answer_syncobj_create(LocalCall& call, drm::SyncobjCreate& args) {
  StatusSlot* place = find_open_place(call.file);
  if (!place || args.flags & ~drm::kSyncobjCreateSignaled) return LocalCall::kAskDaemon;
  const uint32_t handle = StatusView(place->status).create(args.flags ? wire::kSignalledNow : wire::kEmptied);
  if (!handle) return LocalCall::kAskDaemon;
  args.handle = handle;
  return 0;
}

int answer_syncobj_destroy(LocalCall& call, drm::SyncobjDestroy& args) {
  StatusSlot* place = find_open_place(call.file);
  return place && !args.pad && StatusView(place->status).destroy(args.handle) ? 0 : LocalCall::kAskDaemon;
}

/// The export as a sync_file of a syncobj that has no fence, or whose sync_file is here already.
int answer_syncobj_to_fd(LocalCall& call, drm::SyncobjHandle& args) {
  StatusSlot* place = find_open_place(call.file);
  if (!place || args.pad || args.flags != drm::kSyncobjSyncFile) return LocalCall::kAskDaemon;
  StatusView view(place->status);
  place->ready.note_export(args.handle);
  uint32_t fence;
  const auto take = [&] {
    const uint32_t entry = view.entry_as_said(args.handle);
    return entry ? place->ready.take(call.file.token, entry, &fence) : -1;
  };
  int fd = take();
  if (fd < 0) {
    const int64_t until = Wait::now() + kExportPatience;
    Wait waiting(call.file, view, until);
    if (waiting.while_empty(args.handle)) return -EINVAL;
    // The fence is seen before the submit's reply, which may bring the sync_file.
    place->ready.wait_while_coming(until);
    if ((fd = take()) < 0) return LocalCall::kAskDaemon;
  }
  if (fence) remember_sync_file(fd, call.file.token, fence);
  args.fd = call.descriptor = give_descriptor(fd, true);
  return args.fd < 0 ? args.fd : 0;
}

/// The import of a sync_file whose fence is shown.
int answer_syncobj_from_fd(LocalCall& call, drm::SyncobjHandle& args) {
  StatusSlot* place = find_open_place(call.file);
  if (!place || args.pad || args.flags != drm::kSyncobjSyncFile) return LocalCall::kAskDaemon;
  StatusView view(place->status);
  const int fd = find_descriptor(args.fd);
  uint32_t fence;
  if (fd < 0 || !find_sync_file(fd, call.file.token, &fence)) return LocalCall::kAskDaemon;
  const uint32_t now = view.is_pending(pending_in(fence)) ? fence : uint32_t{wire::kSignalledNow};
  return view.change(args.handle, now) ? 0 : LocalCall::kAskDaemon;
}

}  // namespace v3d::shim
