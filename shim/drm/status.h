/// Some calls need no message: what the daemon shows of a file (wire::Status) answers waits for its syncobjs
/// and idle BOs, and clients change syncobjs there.
#pragma once

#include <cstdint>

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/link/wire.h"
#include "shim/drm/local_call.h"
#include "shim/drm/ready_sync_file.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

/// From now on knows the file's status. @param fd  the memory, which stays the caller's
void remember_status(uint64_t token, int fd, uint32_t bytes);

/// @name Where the status says enough (LocalIoctl::answer)
int answer_wait_bo(LocalCall& call, ioctl::drm::WaitBo& args);
int answer_syncobj_wait(LocalCall& call, ioctl::drm::SyncobjWait& args);
int answer_syncobj_reset(LocalCall& call, ioctl::drm::SyncobjArray& args);
int answer_syncobj_create(LocalCall& call, ioctl::drm::SyncobjCreate& args);
int answer_syncobj_destroy(LocalCall& call, ioctl::drm::SyncobjDestroy& args);
/// Of what has no fence, or one whose sync_file came with the submit.
int answer_syncobj_to_fd(LocalCall& call, ioctl::drm::SyncobjHandle& args);
/// Of such a sync_file.
int answer_syncobj_from_fd(LocalCall& call, ioctl::drm::SyncobjHandle& args);

/// The syncobjs that are expected to be exported.
Exports expected_exports(const File& file);
/// A submit that gives one of them a fence, while this exists.
class SubmitOfExpected {
 public:
  SubmitOfExpected(const File& file, uint32_t syncobj);
  SubmitOfExpected(const SubmitOfExpected&) = delete;
  SubmitOfExpected& operator=(const SubmitOfExpected&) = delete;
  ~SubmitOfExpected();
  /// Whether it is to bring the sync_file.
  bool wants() const { return ready_ != nullptr; }

 private:
  ReadySyncFile* ready_;
};
/// What the daemon made of that. @param fd  is used up
void remember_ready(const File& file, const wire::ReadySyncFile& what, int fd);

/// wire::Status::bo_changes of the file, and whether that is known.
bool look_at_bo_changes(const File& file, uint32_t* changes);

/// Whether the file's status is known.
bool has_status(const File& file);
/// Wakes who sleeps there, in any process. @param offset  of a futex in the file's status, bytes
void wake_sleepers(const File& file, uint32_t offset);

/// Whether the daemon of a file still answers: 0 or a negative errno. Defined by those who can ask.
int ask_for_life(const File& file);

}  // namespace v3d::shim
