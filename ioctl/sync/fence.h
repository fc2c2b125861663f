/// A fence is an event that happens once and is immutable (the kernel's dma_fence); watchers wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ioctl/base/account.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/sync/file_status.h"

namespace v3d::ioctl {

/// Something that wants to know of fences. Fences hold their watchers by shared_ptr, so a late call is
/// harmless.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Called on any thread, with no lock of this layer held except perhaps those of submissions.
  virtual void notify() = 0;
};

class Fence;
using FencePtr = std::shared_ptr<Fence>;

class Fence : public std::enable_shared_from_this<Fence> {
 public:
  /// Names are those of dma_fence_ops (shown by SYNC_IOC_FILE_INFO); they live as long as the program.
  Fence(const char* driver_name, const char* timeline_name, uint64_t context, uint64_t seqno)
      : driver_name_(driver_name), timeline_name_(timeline_name), context_(context), seqno_(seqno) {}
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  /// A fence that is signalled already.
  static FencePtr stub();
  /// A fence that signals when both have. Signalled parts are left out; of one context the later is kept.
  static FencePtr merge(const FencePtr& a, const FencePtr& b);

  const char* driver_name() const { return driver_name_; }
  const char* timeline_name() const { return timeline_name_; }
  /// Fences of one context signal in the order of their seqnos.
  uint64_t context() const { return context_; }
  uint64_t seqno() const { return seqno_; }

  bool is_signalled() const { return signalled_.load(std::memory_order_acquire); }
  /// 0 pending, 1 signalled, negative errno when it signalled with an error.
  int status() const;
  /// CLOCK_MONOTONIC at which it signalled, 0 before.
  int64_t timestamp_ns() const { return is_signalled() ? timestamp_ns_ : 0; }

  /// @param error  positive errno or 0. A second call does nothing.
  void signal(int error = 0);
  /// False, and the watcher is not kept, when the fence has signalled.
  bool watch(std::shared_ptr<Watcher> watcher);
  /// Nothing when it does not watch. However many others do, it takes as long as for one.
  void unwatch(const Watcher* watcher);

  /// The fences it was merged from; itself when it was not.
  std::vector<FencePtr> parts();
  size_t num_parts() const { return merged_from_.empty() ? 1 : merged_from_.size(); }
  /// Clients of a file read there that it signals. Before others know of the fence, which is held already.
  void show_in(std::shared_ptr<FileStatus> status);
  /// Where it is shown to clients of that file; 0 when it is not.
  uint32_t place_in(const FileStatus& status) const { return status_.get() == &status ? place_ : 0; }
  /// Of the file to whose clients it is shown; null: none.
  FileStatus* shown_in() const { return status_.get(); }
  /// Takes a charge for what it holds. Before others know of the fence.
  void keep(Charge charge) { charge_ = std::move(charge); }

 private:
  class PartWatcher;

  const char* const driver_name_;
  const char* const timeline_name_;
  const uint64_t context_, seqno_;
  std::vector<FencePtr> merged_from_;
  Charge charge_;
  std::shared_ptr<FileStatus> status_;
  uint32_t place_ = 0;  // in status_

  using Positions = std::unordered_multimap<const Watcher*, size_t>;
  std::vector<std::shared_ptr<Watcher>>::iterator find_watcher(const Watcher* watcher);
  void close_gaps();

  std::mutex mutex_;  // protects all below, and the transition to signalled
  /// In the order of their coming, with gaps where many went.
  std::vector<std::shared_ptr<Watcher>> watchers_;
  size_t gaps_ = 0;
  std::unique_ptr<Positions> positions_;  // in watchers_, since one of many went; null: not known
  int error_ = 0;
  int64_t timestamp_ns_ = 0;
  std::atomic<bool> signalled_{false};
};

/// A number that no other context has.
uint64_t new_fence_context();

/// CLOCK_MONOTONIC in nanoseconds.
int64_t monotonic_ns();

/// What a thread of the daemon sleeps on inside a blocking ioctl.
class Waiter : public Watcher {
 public:
  /// @param connection  the client's control socket, whose end aborts the wait; -1 for none
  /// @param process  pidfd of the client, whose end aborts it too; -1 for none
  explicit Waiter(int connection = -1, int process = -1);

  void notify() override;
  /// Forgets earlier notifications; call before looking at what is waited for.
  void clear();
  enum class Result { kNotified, kTimedOut, kAborted };
  /// @param deadline_ns  CLOCK_MONOTONIC; INT64_MAX waits for ever
  Result wait(int64_t deadline_ns);

 private:
  UniqueFd event_;
  const int connection_, process_;
  std::atomic<bool> pending_{false};
};

/// Waits for all fences. 0, ETIME or EINTR (aborted).
int wait_for_all(const std::vector<FencePtr>& fences, const std::shared_ptr<Waiter>& waiter,
                 int64_t deadline_ns);

}  // namespace v3d::ioctl
