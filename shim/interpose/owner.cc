/// chmod and chown: of a node as of the device that it stands for, of other things in the tree never.

#include <unistd.h>

#include "shim/interpose/interpose.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

/// What is not a node other processes read, too; and the nodes of a board are root's. 0 or a negative errno.
int refuse_change(const Rewritten& to, int flags) {
  struct stat st;
  const int follow = flags & AT_SYMLINK_NOFOLLOW;
  if (const int missing = raw::fstatat(to.dir(), to.path(), &st, follow); missing < 0) return missing;
  return to.node(follow) && raw::geteuid() == 0 ? 0 : -EPERM;
}

using ChangeMode = int(const char*, mode_t);
using ChangeOwner = int(const char*, uid_t, gid_t);

int change_owner(const char* path, uid_t user, gid_t group, int flags, ChangeOwner* next) {
  Rewritten to(path);
  const int refused = to.ours() ? refuse_change(to, flags) : 0;
  return refused ? raw::result(refused) : next(to.path(), user, group);
}

}  // namespace

V3D_INTERPOSE(int, mode_changed, "chmod", (const char* path, mode_t mode)) {
  Rewritten to(path);
  const int refused = to.ours() ? refuse_change(to, 0) : 0;
  return refused ? raw::result(refused) : V3D_NEXT(ChangeMode, "chmod")(to.path(), mode);
}

V3D_INTERPOSE(int, mode_changed_at, "fchmodat", (int dir, const char* path, mode_t mode, int flags)) {
  using ChangeModeAt = int(int, const char*, mode_t, int);
  Rewritten to(dir, path, Purpose::kLookup);
  const int refused = to.ours() ? refuse_change(to, flags) : 0;
  return refused ? raw::result(refused)
                 : V3D_NEXT(ChangeModeAt, "fchmodat")(to.dir(), to.path(), mode, flags);
}

V3D_INTERPOSE(int, owner_changed, "chown", (const char* path, uid_t user, gid_t group)) {
  return change_owner(path, user, group, 0, V3D_NEXT(ChangeOwner, "chown"));
}

V3D_INTERPOSE(int, link_owner_changed, "lchown", (const char* path, uid_t user, gid_t group)) {
  return change_owner(path, user, group, AT_SYMLINK_NOFOLLOW, V3D_NEXT(ChangeOwner, "lchown"));
}

V3D_INTERPOSE(int, owner_changed_at, "fchownat",
              (int dir, const char* path, uid_t user, gid_t group, int flags)) {
  using ChangeOwnerAt = int(int, const char*, uid_t, gid_t, int);
  ChangeOwnerAt* next = V3D_NEXT(ChangeOwnerAt, "fchownat");
  if (flags & AT_EMPTY_PATH) return next(dir, path, user, group, flags);
  Rewritten to(dir, path, Purpose::kLookup);
  const int refused = to.ours() ? refuse_change(to, flags) : 0;
  return refused ? raw::result(refused) : next(to.dir(), to.path(), user, group, flags);
}

}  // namespace v3d::shim
