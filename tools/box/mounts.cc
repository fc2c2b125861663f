#include "tools/box/mounts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "shim/process/config.h"
#include "shim/tree/tree.h"
#include "tools/box/box.h"

namespace v3d::box {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 20'000;  // for the server, whose start is some milliseconds

bool may_mount() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective >> CAP_SYS_ADMIN & 1);
}

bool write_text(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return good;
}

/// A user namespace in which this user is who it is outside, and may mount.
std::string enter_user_namespace() {
  const auto mapping = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; };
  const std::string user = mapping(geteuid()), group = mapping(getegid());
  if (unshare(CLONE_NEWUSER) != 0) return because("no user namespace");
  write_text("/proc/self/setgroups", "deny");  // without which an ordinary user may map no group
  if (!write_text("/proc/self/uid_map", user) || !write_text("/proc/self/gid_map", group))
    return because("the user cannot be mapped into a user namespace");
  return {};
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int which) {
    close(ends[which]);
    ends[which] = -1;
  }
};

/// The process that serves the tree. It stays in the old mount namespace, so that the new one, and the
/// mount with it, ends with the programs in it; and is nobody's child.
class TreeServer {
 public:
  std::string start(const std::string& program, int fuse) {
    fuse_ = fuse;
    const pid_t child = fork();
    if (child < 0) return because("fork");
    if (child == 0) {
      setsid();
      if (fork() == 0) become(program);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    go_.close_end(0);
    ready_.close_end(1);
    return {};
  }
  /// When the tree is mounted.
  bool begin() {
    if (write(go_.ends[1], "g", 1) != 1) return false;
    pollfd poll_ready{ready_.ends[0], POLLIN, 0};
    char byte;
    return poll(&poll_ready, 1, kPatienceMs) == 1 && read(ready_.ends[0], &byte, 1) == 1;
  }

 private:
  [[noreturn]] void become(const std::string& program) {
    close(go_.ends[1]);
    char byte;
    if (read(go_.ends[0], &byte, 1) != 1) _exit(1);
    // None of the program's: whoever waits for the end of a pipe must not wait for this process.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 2; ++fd) dup2(null, fd);
    for (const int fd : {fuse_, ready_.ends[1]}) fcntl(fd, F_SETFD, 0);
    for (int fd = 3; fd < static_cast<int>(sysconf(_SC_OPEN_MAX)) && fd < 4096; ++fd)
      if (fd != fuse_ && fd != ready_.ends[1]) close(fd);
    const auto words =
        exec_words({program, "--serve-tree", std::to_string(fuse_), std::to_string(ready_.ends[1])});
    execv(program.c_str(), words.data());
    _exit(127);
  }

  Pipe go_, ready_;
  int fuse_ = -1;
};

bool is_kind(const fs::path& path, mode_t kind) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

std::string link_of(const fs::path& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

bool bind(const fs::path& from, const fs::path& to) {
  return mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

/// Puts what `from` is at `to`, where nothing is.
bool copy_place(const fs::path& from, const fs::path& to) {
  if (is_kind(from, S_IFLNK)) return symlink(link_of(from).c_str(), to.c_str()) == 0;
  if (is_kind(from, S_IFDIR)) {
    if (mkdir(to.c_str(), 0755) != 0) return false;
  } else {
    const int fd = open(to.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    close(fd);
  }
  if (bind(from, to)) return true;
  const int error = errno;
  std::error_code ignored;
  fs::remove(to, ignored);  // better nothing than something else
  errno = error;
  return false;
}

/// The places where the mounts are made before they are moved to where programs look.
class Places {
 public:
  Places(const shim::Tree& tree, const fs::path& folder)
      : tree_(tree), ours_(folder / "tree"), stage_(folder / "merge") {}

  std::string make() const {
    std::error_code error;
    for (const fs::path& folder : {ours_, stage_})
      if (fs::create_directories(folder, error); error)
        return folder.string() + " cannot be made: " + error.message();
    return {};
  }
  std::string mount_tree(int fuse) const {
    const std::string options = "fd=" + std::to_string(fuse) +
                                ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                                ",group_id=" + std::to_string(getegid()) + ",allow_other,default_permissions";
    return mount("v3demu", ours_.c_str(), "fuse", MS_NODEV | MS_NOSUID | MS_NOEXEC | MS_RDONLY,
                 options.c_str()) == 0
               ? std::string()
               : because("FUSE cannot be mounted");
  }
  void unmount_tree() const { umount2(ours_.c_str(), MNT_DETACH); }

  std::string show_all() const {
    for (const char* folder : shim::kMerged)
      if (std::string failure = show(folder); !failure.empty()) return failure;
    return show_processors();
  }

 private:
  fs::path ours(const fs::path& path) const { return ours_ / path.relative_path(); }

  /// Whether the host has such a thing in the place of one of ours, so that ours only has to hide it.
  bool host_has(const fs::path& path) const {
    const fs::path mine = ours(path);
    if (is_kind(mine, S_IFDIR)) return is_kind(path, S_IFDIR);
    return is_kind(mine, S_IFLNK) && link_of(mine) == link_of(path);
  }
  /// Whether none of the host's entries would be taken for the GPU's, where ours do not hide them.
  bool host_shows_none(const fs::path& folder) const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (tree_.owns(entry.path().c_str()) && !host_has(entry.path())) return false;
    return true;
  }

  std::string show(const fs::path& folder) const {
    std::error_code error;
    bool enough = host_shows_none(folder);
    for (const auto& entry : fs::directory_iterator(ours(folder), error))
      enough = enough && host_has(folder / entry.path().filename());
    if (!enough) return merge(folder);
    for (const auto& entry : fs::directory_iterator(ours(folder), error)) {
      const fs::path path = folder / entry.path().filename();
      if (is_kind(entry.path(), S_IFDIR) && !shim::is_merged(path.c_str()) && leads_to_ours(path) &&
          !bind(entry.path(), path))
        return because(path.string() + " cannot be mounted");
    }
    return {};
  }
  /// In /proc, where nothing can be added, a file can be hidden.
  static constexpr char kProcessors[] = "/proc/cpuinfo";
  std::string show_processors() const {
    if (!is_kind(ours(kProcessors), S_IFREG) || bind(ours(kProcessors), kProcessors)) return {};
    return because(std::string(kProcessors) + " cannot be mounted");
  }
  /// Of folders that host and tree both have, as /sys/class: they lie on the way to what is ours.
  bool leads_to_ours(const fs::path& path) const { return tree_.owns(path.c_str()); }

  /// A folder with the host's entries and ours over the host's.
  std::string merge(const fs::path& folder) const {
    if (mount("v3demu", stage_.c_str(), "tmpfs", MS_NOSUID, "mode=755") != 0)
      return because("no file system in memory");
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (!tree_.owns(entry.path().c_str())) copy_place(entry.path(), stage_ / entry.path().filename());
    std::string failure;
    for (const auto& entry : fs::directory_iterator(ours(folder), error)) {
      const fs::path place = stage_ / entry.path().filename();
      if (!is_kind(place, S_IFDIR) && !copy_place(entry.path(), place))
        failure = because((folder / entry.path().filename()).string() + " cannot be mounted");
    }
    if (failure.empty() && mount(stage_.c_str(), folder.c_str(), nullptr, MS_MOVE, nullptr) != 0)
      failure = because(folder.string() + " cannot be mounted");
    if (!failure.empty()) umount2(stage_.c_str(), MNT_DETACH);
    return failure;
  }

  const shim::Tree& tree_;
  fs::path ours_, stage_;
};

}  // namespace

std::string enter_sandbox(const std::string& tree_server) {
  const shim::Tree* tree = shim::tree();
  if (!tree) return "there is no device tree";
  if (shim::config().host_dri) return "V3DEMU_HOST_DRI=1 is a matter of interposed paths";
  const Places places(*tree, fs::path(shim::config().runtime_dir.c_str()) / "sandbox");
  if (std::string failure = places.make(); !failure.empty()) return failure;
  if (!may_mount())
    if (std::string failure = enter_user_namespace(); !failure.empty()) return failure;
  const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0) return because("/dev/fuse cannot be opened");
  TreeServer server;
  std::string failure = server.start(tree_server, fuse);
  if (failure.empty() && unshare(CLONE_NEWNS) != 0) failure = because("no mount namespace");
  if (failure.empty() && mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    failure = because("mounts cannot be made private");
  if (failure.empty()) failure = places.mount_tree(fuse);
  close(fuse);
  if (!failure.empty()) return failure;
  failure = server.begin() ? places.show_all() : "the server of the tree has ended";
  if (!failure.empty()) places.unmount_tree();
  return failure;
}

}  // namespace v3d::box
