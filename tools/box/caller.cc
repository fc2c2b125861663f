#include "tools/box/caller.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "ioctl/base/received_fd.h"
#include "shim/drm/moved_memory.h"
#include "shim/link/connect.h"
#include "shim/process/config.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"
#include "tools/box/box.h"
#include "tools/box/writable_memory.h"

#ifndef SECCOMP_ADDFD_FLAG_SEND  // Linux 5.14
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

namespace v3d::box {
namespace {

constexpr uint64_t kPage = 4096;
/// So many numbers are looked at for a free one.
constexpr int kMostHigh = 256;

thread_local Caller* current_caller = nullptr;

/// A line of /proc/THREAD/status, up to its end. Empty: there is none.
std::string status_line(const Caller& caller, const std::string& name) {
  std::ifstream status(caller.proc("status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return line.substr(name.size());
  return {};
}

/// The process of a thread. Kernels before 6.9 make descriptors for processes alone.
pid_t process_of(const Caller& caller) {
  std::istringstream line(status_line(caller, "Tgid:"));
  pid_t process = caller.thread();
  return line >> process ? process : caller.thread();
}

/// As whom a thread opens files.
std::optional<uid_t> file_system_user(const Caller& caller) {
  std::istringstream line(status_line(caller, "Uid:"));
  uid_t real, effective, saved, file_system;
  if (line >> real >> effective >> saved >> file_system) return file_system;
  return {};
}

/// A root: the mount, whose number no other one of any namespace has, and the folder in it.
struct Root {
  uint64_t mount = 0, inode = 0;
  bool operator==(const Root&) const = default;
};

std::optional<Root> find_root(const std::string& path) {
  struct statx st = {};
  constexpr unsigned kWanted = STATX_MNT_ID | STATX_INO;
  if (statx(AT_FDCWD, path.c_str(), 0, kWanted, &st) != 0 || (st.stx_mask & kWanted) != kWanted) return {};
  return Root{st.stx_mnt_id, st.stx_ino};
}

int open_process(const Caller& caller) {
  return static_cast<int>(syscall(SYS_pidfd_open, process_of(caller), 0));
}

/// Whether there is a link, wherever it leads.
bool is_there(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

/// Workers answer others' calls, too. Nodes and fences are local sockets; of those that the caller made a
/// queue may hold what takes long to close, which is then its own programs' loss alone.
void give_back(v3d::ioctl::UniqueFd fd) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX) return;
  v3d::ioctl::close_received(std::move(fd));
}

iovec piece(uint64_t address, size_t size) {
  return {reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
}

/// One address space may be read as another's within a piece that the kernel copies in parts.
template <typename Copy>
bool copy_all(Copy copy, uint64_t remote, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t part = copy(done, piece(remote + done, size - done));
    if (part <= 0) return false;
    done += static_cast<size_t>(part);
  }
  return true;
}

}  // namespace

Caller::Caller(int listener, const seccomp_notif& call) : listener_(listener), call_(call) {
  current_caller = this;
}

Caller::~Caller() {
  current_caller = nullptr;
  for (const int fd : borrowed_) give_back(v3d::ioctl::UniqueFd(fd));
  if (process_ >= 0) close(process_);
}

Caller* Caller::current() { return current_caller; }

bool Caller::is_waiting() const { return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &call_.id) == 0; }

bool Caller::read(void* to, uint64_t from, size_t size) const {
  auto* bytes = static_cast<uint8_t*>(to);
  const bool good = copy_all(
      [&](size_t done, iovec there) {
        iovec here{bytes + done, size - done};
        return process_vm_readv(thread(), &here, 1, &there, 1, 0);
      },
      from, size);
  return good && is_waiting();
}

/// Files of /proc stay those of the memory that they were opened of: while the call waited, the caller's. The
/// thread's number may be another program's by the time of the copy. By such a file the kernel would write
/// what the caller itself may not.
bool Caller::write(uint64_t to, const void* from, size_t size) const {
  if (size == 0) return true;
  const v3d::ioctl::UniqueFd memory(open(proc("mem").c_str(), O_RDWR | O_CLOEXEC));
  const v3d::ioctl::UniqueFd maps(open(proc("maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory || !maps || !is_waiting() || !is_writable(maps.get(), to, size)) return false;
  const auto* bytes = static_cast<const uint8_t*>(from);
  return copy_all(
      [&](size_t done, iovec there) {
        return pwrite(memory.get(), bytes + done, there.iov_len,
                      static_cast<off_t>(reinterpret_cast<uintptr_t>(there.iov_base)));
      },
      to, size);
}

bool Caller::read_path(uint64_t from, std::string* path) const {
  path->clear();
  char part[kPage];
  while (path->size() < PATH_MAX) {
    const size_t size = kPage - (from + path->size()) % kPage;
    if (!read(part, from + path->size(), size)) return false;
    const size_t length = strnlen(part, size);
    path->append(part, length);
    if (length < size) return path->size() < PATH_MAX;
  }
  return false;
}

std::string Caller::proc(const std::string& name) const {
  return "/proc/" + std::to_string(thread()) + "/" + name;
}

bool Caller::is_same_user() const { return file_system_user(*this) == geteuid() && is_waiting(); }

bool Caller::shares_root() const {
  static const std::optional<Root> own = find_root("/");
  return own && find_root(proc("root")) == own && is_waiting();
}

int Caller::borrow(int number) {
  if (process_ < 0) process_ = open_process(*this);
  if (process_ < 0) return -errno;
  const int fd = static_cast<int>(syscall(SYS_pidfd_getfd, process_, number, 0));
  if (fd < 0) return -errno;
  borrowed_.push_back(fd);
  return is_waiting() ? fd : -ESRCH;
}

/// @param flags  SECCOMP_ADDFD_FLAG_*  @param number  where these choose it
/// @return the copy's number or a negative errno
int Caller::add(int fd, uint32_t flags, int number, bool close_on_exec) const {
  seccomp_notif_addfd added{};
  added.id = call_.id;
  added.flags = flags;
  added.srcfd = static_cast<uint32_t>(fd);
  added.newfd = static_cast<uint32_t>(number);
  added.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  const int result = ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
  return result < 0 ? -errno : result;
}

int Caller::give(int fd, bool close_on_exec) const { return add(fd, 0, 0, close_on_exec); }

int Caller::give_high(int fd) const {
  rlimit limit{};
  if (prlimit(thread(), RLIMIT_NOFILE, nullptr, &limit) != 0) return -errno;
  const int first = limit.rlim_cur > shim::kPrivateFds ? static_cast<int>(shim::kPrivateFds)
                                                       : static_cast<int>(limit.rlim_cur / 2);
  for (int number = first; number < first + kMostHigh && static_cast<rlim_t>(number) < limit.rlim_cur;
       ++number) {
    if (!is_there(proc_fd(number))) return add(fd, SECCOMP_ADDFD_FLAG_SETFD, number, true);
  }
  return -EMFILE;
}

bool Caller::answer_with(int fd, bool close_on_exec) const {
  const int number = add(fd, SECCOMP_ADDFD_FLAG_SEND, 0, close_on_exec);
  if (number == -EINVAL) return false;
  if (number < 0) answer(number);
  return true;
}

void Caller::answer(int64_t result) const {
  seccomp_notif_resp response{};
  response.id = call_.id;
  response.val = result < 0 ? 0 : result;
  response.error = result < 0 ? static_cast<int32_t>(result) : 0;
  ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void Caller::pass_on() const {
  seccomp_notif_resp response{};
  response.id = call_.id;
  response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

}  // namespace v3d::box

// What the preload library's sources call.
namespace v3d::shim {

bool copy_from_user(void* destination, uint64_t source, size_t size) {
  return box::Caller::current()->read(destination, source, size);
}

bool copy_to_user(uint64_t destination, const void* source, size_t size) {
  return box::Caller::current()->write(destination, source, size);
}

bool is_readable_path(const char*) { return true; }  // a path of ours

int find_descriptor(int number) { return box::Caller::current()->borrow(number); }

int give_descriptor(int fd, bool close_on_exec) {
  const int number = box::Caller::current()->give(fd, close_on_exec);
  close(fd);
  return number;
}

void withdraw_descriptor(int) {}  // it stays: nothing closes it from here

uint32_t mappings_epoch() { return 0; }

void replace_mappings(const wire::Move&, int) {
  complain("a small BO that a supervised program exports is another one to what it has mapped of it");
}

}  // namespace v3d::shim
