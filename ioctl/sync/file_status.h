/// A FileStatus tells a file's clients of its syncobjs in memory that they share (wire::Status).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"

namespace v3d::ioctl {

class Fence;

/// Thread safe. What clients write there is read once and compared, and no more than that.
class FileStatus {
 public:
  /// @return null when the host has no memory, mappings or descriptors left
  static std::shared_ptr<FileStatus> create();
  ~FileStatus();
  FileStatus(const FileStatus&) = delete;
  FileStatus& operator=(const FileStatus&) = delete;

  int memfd() const { return memfd_.get(); }
  static uint64_t bytes();

  /// @name Fences
  /// A place for a fence that is pending, to be given back. 0 when there is none left.
  uint32_t take_place(std::weak_ptr<Fence> fence);
  /// The fence has signalled, or will be nobody's.
  void show_signal(uint32_t place);
  /// Wakes who sleeps there, after show_signal().
  void give_back(uint32_t place);

  /// @name Syncobjs
  /// Says what a syncobj holds. @return the lower half of the entry: what a client replaces that changes it
  uint32_t say(uint32_t handle, const Fence* fence);
  /// Says nothing any more. @return 0, which is no entry
  uint32_t forget(uint32_t handle);
  /// What a client has made of the syncobj since it was said what it holds: a wire::Change or the place of a
  /// fence, as clients write it.
  std::optional<uint32_t> change_of(uint32_t handle, uint32_t entry) const;
  /// What the syncobj holds then; null for nothing.
  std::shared_ptr<Fence> fence_of_change(uint32_t change);

  /// Wakes who sleeps on the futex at that offset, bytes.
  void wake_at(uint32_t offset);

  /// @name BOs
  /// Says which job uses a BO last, and ends after all others that do.
  /// @param fence  null: none; one that is not shown to clients says nothing
  void say_bo(uint32_t handle, const Fence* fence);
  /// Says nothing any more.
  void forget_bo(uint32_t handle);
  /// A handle is no more, or a BO has other memory: see wire::Status::bo_changes.
  void say_bos_changed();

  /// The file is closed.
  void close();

 private:
  FileStatus(UniqueFd memfd, wire::Status* status);
  void wake(uint32_t* word);

  const UniqueFd memfd_;
  wire::Status* const status_;
  const std::shared_ptr<Fence> signalled_;  // for syncobjs that clients give one; made before it is needed
  std::atomic<uint32_t> next_{1};

  std::mutex mutex_;                                    // protects all below
  std::vector<uint32_t> free_;                          // indices of fences
  uint32_t numbers_[wire::Status::kFences] = {};        // of their last fence
  std::weak_ptr<Fence> fences_[wire::Status::kFences];  // that one
};

}  // namespace v3d::ioctl
