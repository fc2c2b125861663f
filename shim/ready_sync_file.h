/// The sync_file that a submit brought along because the client is expected to export it: Mesa's GL driver
/// exports its out-sync behind each flush.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "ioctl/wire.h"

namespace v3d::shim {

/// Of one file after another; zeros are a valid state. Thread safe, and in signal handlers: who finds it busy
/// does without.
class ReadySyncFile {
 public:
  /// A syncobj is exported.
  void note_export(uint32_t handle);
  /// A submit is about to be made: the syncobj that is expected to be exported next; 0 when none is.
  uint32_t wanted_by_submit();

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

  bool has_one() const;
  void drop();

  std::atomic<uint32_t> handle_;          // that was exported last; 0: none is expected to be
  std::atomic<uint32_t> submits_;         // since then
  std::atomic<uint32_t> expected_after_;  // so many

  std::atomic<bool> busy_;  // protects all below
  uint64_t token_;
  wire::ReadySyncFile what_;
  int fd_plus_one_;  // 0: none
  dev_t dev_;
  ino_t ino_;
  uint32_t unused_;  // in a row
};

}  // namespace v3d::shim
