#include "shim/drm/files.h"

#include <sys/socket.h>

#include <cstring>

#include "shim/board/board_devices.h"
#include "shim/drm/framebuffer.h"
#include "shim/drm/status.h"
#include "shim/link/connect.h"
#include "shim/link/connection.h"
#include "shim/process/own_pid.h"
#include "shim/process/raw.h"
#include "shim/tree/tree.h"

namespace v3d::shim {
namespace {

/// @param status_fd  which of the received descriptors shows the file's status, if one does
bool parse(Call* call, int status_fd, File* file) {
  wire::FileReply reply;
  if (call->reply_size() < sizeof(reply)) return false;
  memcpy(&reply, call->reply(), sizeof(reply));
  *file = {reply.token, reply.minor, call->daemon(), reply.driver};
  if (const int fd = reply.status_bytes ? call->take(status_fd) : -1; fd >= 0) {
    remember_status(reply.token, fd, reply.status_bytes);
    raw::close(fd);
  }
  return true;
}

/// Asks the daemon whether a descriptor that came from elsewhere is one of its files. Starts none: a daemon
/// that does not run has no files. As identify_file().
int adopt(int fd, const struct stat& st, File* file) {
  raw::KeepErrno keep;
  Call call(wire::kAdopt, kCloseOnExec);
  // A daemon of another user, say, whose descriptor was inherited.
  int error = call.open(0, is_named_node(fd) ? fd : -1);
  if (error == ENODEV) return -ENOTTY;
  if (!error && !call.attach(fd)) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error == ENOTTY) remember_other(st);
  if (error) return -error;
  if (!parse(&call, 0, file)) return -EPROTO;
  remember_file(st, *file);
  return 0;
}

/// A socket of the one kind that the daemon makes for its files; says nothing about whose it is.
bool could_be_file(int fd, const struct stat& st) {
  if (!S_ISSOCK(st.st_mode)) return false;
  int value = 0;
  socklen_t size = sizeof(value);
  if (raw::getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) < 0 || value != SOCK_SEQPACKET) return false;
  // A socket pair carries the credentials of whoever made it, and the daemon is another process.
  ucred maker{};
  size = sizeof(maker);
  return raw::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid != own_pid();
}

}  // namespace

int identify_file(int fd, const struct stat& st, File* file) {
  if (!S_ISSOCK(st.st_mode)) return -ENOTTY;
  if (find_known_file(st, file)) return 0;
  if (is_known_other(st)) return -ENOTTY;
  return could_be_file(fd, st) ? adopt(fd, st, file) : -ENOTTY;
}

int identify_file(int fd, File* file) {
  struct stat st;
  return raw::fstat(fd, &st) == 0 ? identify_file(fd, st, file) : -ENOTTY;
}

bool find_file(int fd, const struct stat& st, File* file) { return identify_file(fd, st, file) == 0; }

bool find_file(int fd, File* file) { return identify_file(fd, file) == 0; }

int open_file(uint32_t wire_minor, int flags) {
  if (wire_minor == wire::kFramebufferMinor) return open_framebuffer(flags);
  if (wire_minor >= kFirstBoardDevice) return open_board_device(wire_minor - kFirstBoardDevice, flags);
  raw::KeepErrno keep;
  Call call(wire::kOpen, kStartDaemon | (flags & O_CLOEXEC ? unsigned{kCloseOnExec} : 0u));
  wire::OpenRequest request{wire_minor, flags};
  int error = call.open();
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  File file;
  int fd = call.take(0);
  if (fd < 0) return -EMFILE;  // the kernel drops what does not fit in
  struct stat st;
  if (!parse(&call, 1, &file) || raw::fstat(fd, &st) < 0) {
    raw::close(fd);
    return -ENODEV;
  }
  if (flags & O_NONBLOCK) raw::fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
  remember_file(st, file);
  return fd;
}

}  // namespace v3d::shim
