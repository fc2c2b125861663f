/// A submit brings a sync_file along when the client is expected to export it: Mesa's GL driver exports its
/// out-sync after each flush, its Vulkan drivers export a semaphore twice before they wait for it, to see
/// that it has a fence.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "ioctl/link/wire.h"

namespace v3d::shim {

/// Handles of syncobjs; 0: none.
using Exports = std::array<uint32_t, 4>;

/// Of one file after another; zeros are a valid state. Thread safe, and in signal handlers: who finds it busy
/// does without.
class ReadySyncFile {
 public:
  /// A syncobj is exported.
  void note_export(uint32_t handle);
  /// The syncobjs that were exported last, and are expected to be again.
  Exports expected() const;
  /// A submit that gives one of them a fence is about to be made: whether that is the last one before the
  /// export.
  bool is_wanted_by_submit(uint32_t handle);

  /// Around such a submit, until its reply has been taken.
  void begin_coming();
  void end_coming();
  /// Of raw::fast_monotonic_ns().
  void wait_while_coming(int64_t until_ns);

  /// @param token  of the file
  /// @param fd  is used up
  void put(uint64_t token, const wire::ReadySyncFile& what, int fd);
  /// The sync_file of what a syncobj holds, the caller's from now on, under the lowest number that is free.
  /// @param entry  of the syncobj
  /// @param place  of its fence; 0: it has none
  /// @return  negative: it is not here
  int take(uint64_t token, uint32_t entry, uint32_t* place);

 private:
  /// So many in a row that nobody exports end the expectation.
  static constexpr uint32_t kMostUnused = 4;

  /// An export that is expected, as soon as there is a handle.
  struct Expected {
    std::atomic<uint32_t> handle;
    std::atomic<uint32_t> submits;  // since the last export, that gave it a fence
    std::atomic<uint32_t> after;    // so many of them
  };
  Expected* find(uint32_t handle);
  bool has_one() const;
  void drop();

  std::array<Expected, std::tuple_size_v<Exports>> expected_;
  std::atomic<uint32_t> oldest_;  // of these
  std::atomic<uint32_t> coming_;  // submits under way; a futex

  std::atomic<bool> busy_;  // protects all below
  uint64_t token_;
  wire::ReadySyncFile what_;
  int fd_plus_one_;  // 0: none
  dev_t dev_;
  ino_t ino_;
  bool is_used_;     // it has been exported
  bool is_kept_;     // for whoever exports it again, as somebody has done
  uint32_t unused_;  // in a row
};

}  // namespace v3d::shim
