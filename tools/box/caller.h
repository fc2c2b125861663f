/// The caller is the process for which the supervisor answers a system call: its memory and its descriptors.
/// What the preload library's sources do with the memory and descriptors of their own process
/// (shim/process/user_memory.h, shim/process/user_descriptors.h) they do with these here, on the thread that
/// has a Caller.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace v3d::box {

class Caller {
 public:
  /// @param listener  of the filter; both outlive this
  Caller(int listener, const seccomp_notif& call);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  static Caller* current();  ///< of this thread

  const seccomp_data& data() const { return call_.data; }
  pid_t thread() const { return static_cast<pid_t>(call_.pid); }
  uint64_t id() const { return call_.id; }

  /// Whether the call still waits. If so, its numbers and memory were not those of another process so far.
  bool is_waiting() const;
  bool read(void* to, uint64_t from, size_t size) const;
  bool write(uint64_t to, const void* from, size_t size) const;
  /// A path; false: no text of less than PATH_MAX bytes.
  bool read_path(uint64_t from, std::string* path) const;

  /// "/proc/THREAD/fd/3", "/proc/THREAD/cwd" ...: what the caller sees, for calls of ours.
  std::string proc(const std::string& name) const;
  std::string proc_fd(int number) const { return proc("fd/" + std::to_string(number)); }
  /// Whether it opens files as the user that this process is.
  bool is_same_user() const;
  /// Whether its paths lead where those of this process do: to the same root, of the same mounts. Files and
  /// folders of ours are for no others: by ".." of a folder's descriptor they would leave their own root.
  bool shares_root() const;
  /// A descriptor of ours for its file, closed with this object; negative errno.
  int borrow(int number);
  /// A descriptor of ours that this object closes as if it were borrowed.
  void keep(int fd) { borrowed_.push_back(fd); }
  /// Gives it a copy of a descriptor. Its number, or a negative errno.
  int give(int fd, bool close_on_exec) const;
  /// The same, closed by exec, with a number above those that programs use.
  int give_high(int fd) const;
  /// The same as give() as the result of the call, which ends. False: the kernel cannot do both at once.
  bool answer_with(int fd, bool close_on_exec) const;
  /// The call ends. @param result  value or negative errno
  void answer(int64_t result) const;
  /// The kernel does what it would have done.
  void pass_on() const;

 private:
  int add(int fd, uint32_t flags, int number, bool close_on_exec) const;

  int listener_;
  seccomp_notif call_;
  int process_ = -1;  // pidfd
  std::vector<int> borrowed_;
};

}  // namespace v3d::box
