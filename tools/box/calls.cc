#include "tools/box/calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <optional>
#include <string>
#include <string_view>

#include "ioctl/abi/request.h"
#include "ioctl/link/wire.h"
#include "shim/board/board_devices.h"
#include "shim/board/firmware.h"
#include "shim/board/physical_memory.h"
#include "shim/drm/driver.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/drm/files.h"
#include "shim/drm/framebuffer.h"
#include "shim/drm/mapping.h"
#include "shim/drm/marshal.h"
#include "shim/tree/live_text.h"
#include "shim/tree/paths.h"
#include "shim/tree/tree.h"
#include "tools/box/injection.h"
#include "tools/box/registers.h"

namespace v3d::box {
namespace {

struct OpenArguments {
  int dir;
  std::string path;
  int flags;
  uint64_t resolve = 0;  // of openat2
};

bool read_open(const Caller& caller, OpenArguments* out) {
  const __u64* args = caller.data().args;
#if defined(SYS_open)
  if (caller.data().nr == SYS_open) {
    *out = {AT_FDCWD, {}, static_cast<int>(args[1])};
    return caller.read_path(args[0], &out->path);
  }
#endif
  open_how how{};
  how.flags = args[2];
  if (caller.data().nr == SYS_openat2 && !caller.read(&how, args[2], sizeof how)) return false;
  *out = {static_cast<int>(args[0]), {}, static_cast<int>(how.flags), how.resolve};
  return caller.read_path(args[1], &out->path);
}

/// Where relative paths begin, as a path of ours.
std::string base_of(const Caller& caller, int dir) {
  return dir == AT_FDCWD ? caller.proc("cwd") : caller.proc_fd(dir);
}

/// The path from the root, unless it does not tell.
std::string absolute_path(const Caller& caller, const OpenArguments& arguments) {
  if (arguments.path[0] == '/') return arguments.path;
  char base[PATH_MAX];
  const ssize_t size = readlink(base_of(caller, arguments.dir).c_str(), base, sizeof base);
  return size > 0 && base[0] == '/' ? std::string(base, static_cast<size_t>(size)) + "/" + arguments.path
                                    : std::string();
}

/// What a path leads to in the caller's mounts, without opening it.
bool stat_there(const Caller& caller, const OpenArguments& open_call, struct stat* st) {
  const bool absolute = open_call.path[0] == '/';
  const std::string base = absolute ? caller.proc("root") : base_of(caller, open_call.dir);
  const int folder = open(base.c_str(), O_PATH | O_CLOEXEC);
  if (folder < 0) return false;
  open_how how{};
  how.flags = static_cast<uint64_t>(O_PATH | O_CLOEXEC | (open_call.flags & O_NOFOLLOW));
  how.resolve = open_call.resolve | (absolute ? RESOLVE_IN_ROOT : 0);
  const long fd = syscall(SYS_openat2, folder, open_call.path.c_str(), &how, sizeof how);
  close(folder);
  if (fd < 0) return false;
  const bool good = fstat(static_cast<int>(fd), st) == 0;
  close(static_cast<int>(fd));
  return good;
}

/// The node that a path of the caller's leads to. nullptr: none.
const shim::Node* mounted_node(const Caller& caller, const OpenArguments& arguments) {
  struct stat st;
  const shim::Tree* tree = shim::tree();
  const shim::Node* node = tree && stat_there(caller, arguments, &st) ? tree->node_shown(st) : nullptr;
  if (!node || arguments.path[0] == '/' || caller.shares_root()) return node;
  // From a folder this process goes beyond the caller's root, where ".." or a link leads there.
  const OpenArguments from_root = {AT_FDCWD, absolute_path(caller, arguments), arguments.flags,
                                   arguments.resolve};
  return !from_root.path.empty() && stat_there(caller, from_root, &st) ? tree->node_shown(st) : nullptr;
}

/// @param fd  is used up
void answer_with_file(const Caller& caller, int fd, int flags) {
  const bool close_on_exec = flags & O_CLOEXEC;
  if (!caller.answer_with(fd, close_on_exec)) caller.answer(caller.give(fd, close_on_exec));
  close(fd);
}

void answer_with_node(const Caller& caller, const shim::Node& node, int flags) {
  if (flags & O_DIRECTORY) {
    caller.answer(-ENOTDIR);
    return;
  }
  const int fd =
      shim::open_file(node.wire_minor, (flags & (O_NONBLOCK | O_ACCMODE)) | O_CLOEXEC | wire::kOwnMemory);
  if (fd < 0) {
    caller.answer(fd);
    return;
  }
  answer_with_file(caller, fd, flags);
}

/// The tree is mounted: the kernel does all but opening the devices.
void open_mounted(const Caller& caller, const OpenArguments& arguments) {
  const shim::Node* node = mounted_node(caller, arguments);
  if (node && caller.is_same_user())
    answer_with_node(caller, *node, arguments.flags);
  else
    caller.pass_on();
}

/// The tree is the preload library's, of which folders and files are opened in the caller's stead.
void open_rewritten(const Caller& caller, const OpenArguments& arguments) {
  const std::string path = absolute_path(caller, arguments);
  const bool reads = (arguments.flags & O_ACCMODE) == O_RDONLY && !(arguments.flags & (O_CREAT | O_TRUNC));
  const shim::Rewritten to(path.c_str(), reads ? shim::Purpose::kList : shim::Purpose::kLookup);
  if (!to.ours() || !caller.shares_root() || !caller.is_same_user()) {
    caller.pass_on();
    return;
  }
  if (const shim::Node* node = to.node(arguments.flags & O_NOFOLLOW)) {
    answer_with_node(caller, *node, arguments.flags);
    return;
  }
  int fd = reads ? shim::open_live_text(to, AT_FDCWD, path.c_str(), arguments.flags) : -1;
  if (fd < 0) fd = reads ? open(to.path(), arguments.flags | O_CLOEXEC) : -1;
  if (fd < 0)
    caller.answer(reads ? -errno : -EACCES);
  else
    answer_with_file(caller, fd, arguments.flags);
}

constexpr std::string_view kProc = "/proc/", kDeviceTree = "/proc/device-tree";

/// Whether a path of the caller's leads to what the supervisor sees under the same path.
bool has_own_processes(const Caller& caller) {
  struct stat own, its;
  return stat("/proc/self/ns/pid", &own) == 0 && stat(caller.proc("ns/pid").c_str(), &its) == 0 &&
         own.st_ino == its.st_ino;
}

/// The same path with the caller in the place of "self". Empty: it would be another process's here.
std::string without_self(const Caller& caller, const std::string& path) {
  for (const std::string self : {"/proc/self/", "/proc/thread-self/"})
    if (path.starts_with(self)) return caller.proc(path.substr(self.size()));
  return has_own_processes(caller) ? path : std::string();
}

/// What the board shows in /proc, where nothing can be mounted: its device tree, its lines in cpuinfo, and
/// who uses the GPU. False: the path is none of these.
bool open_in_proc(const Caller& caller, const OpenArguments& arguments) {
  const bool beneath_descriptor = arguments.dir != AT_FDCWD && isdigit(arguments.path[0]);
  if (!arguments.path.starts_with(kProc) && !beneath_descriptor) return false;
  const std::string path = absolute_path(caller, arguments);
  if (path == kDeviceTree || path.starts_with(std::string(kDeviceTree) + "/")) {
    open_rewritten(caller, arguments);
    return true;
  }
  const std::string here = path.starts_with(kProc) ? without_self(caller, path) : std::string();
  if (here.empty() || !caller.shares_root() || !caller.is_same_user()) return false;
  const shim::Rewritten to(here.c_str());
  const int fd = shim::open_live_text(to, AT_FDCWD, here.c_str(), arguments.flags);
  if (fd < 0) return false;
  answer_with_file(caller, fd, arguments.flags);
  return true;
}

void handle_open(const Caller& caller, bool mounted) {
  OpenArguments arguments;
  if (!read_open(caller, &arguments) || arguments.path.empty() || arguments.flags & O_PATH)
    caller.pass_on();
  else if (open_in_proc(caller, arguments))
    return;
  else if (mounted)
    open_mounted(caller, arguments);
  else
    open_rewritten(caller, arguments);
}

/// The DRM file that the caller has under that number. 0, -ENOTTY if it is none, or another negative errno.
int find_file(Caller& caller, int number, int* fd, shim::File* file) {
  struct stat st;
  if (number < 0 || stat(caller.proc_fd(number).c_str(), &st) != 0 || !S_ISSOCK(st.st_mode)) return -ENOTTY;
  *fd = caller.borrow(number);
  return *fd < 0 ? -ENOTTY : shim::identify_file(*fd, file);
}

/// The node of which the caller has a descriptor under that number.
bool find_node(Caller& caller, int number, int* fd, uint32_t* wire_minor) {
  shim::File file;
  if (find_file(caller, number, fd, &file) == 0) {
    *wire_minor = file.minor;
    return true;
  }
  struct stat st;
  if (number < 0 || stat(caller.proc_fd(number).c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink)
    return false;
  *fd = caller.borrow(number);
  if (*fd >= 0 && shim::is_framebuffer(*fd, st)) {
    *wire_minor = wire::kFramebufferMinor;
    return true;
  }
  const int place = *fd < 0 ? -1 : shim::find_board_device(*fd, st);
  *wire_minor = shim::kFirstBoardDevice + static_cast<uint32_t>(place);
  return place >= 0;
}

bool is_empty_path(const Caller& caller, uint64_t address) {
  char first = 0;
  return address == 0 || (caller.read(&first, address, 1) && first == 0);
}

/// fstat and its relatives: a DRM file, or a framebuffer, looks like the node that it was opened as.
void handle_stat(Caller& caller) {
  const seccomp_data& call = caller.data();
  const bool by_path = call.nr != SYS_fstat;
  uint32_t wire_minor;
  int fd = -1;
  if ((by_path && !is_empty_path(caller, call.args[1])) ||
      !find_node(caller, static_cast<int>(call.args[0]), &fd, &wire_minor)) {
    caller.pass_on();
    return;
  }
  const shim::Tree* tree = shim::tree();
  const shim::Node* node = tree ? tree->node_by_wire_minor(wire_minor) : nullptr;
  struct stat st = {};
  struct statx extended = {};
  if (!node || fstat(fd, &st) != 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) != 0) {
    caller.pass_on();
    return;
  }
  bool written;
  if (call.nr == SYS_statx) {
    shim::describe_node(*node, &extended);
    written = caller.write(call.args[4], &extended, sizeof extended);
  } else {
    shim::describe_node(*node, &st);
    written = caller.write(call.args[by_path ? 2 : 1], &st, sizeof st);
  }
  caller.answer(written ? 0 : -EFAULT);
}

/// What an ioctl returns; nothing where the descriptor is none of ours, and the kernel answers.
using Answer = std::optional<int>;

Answer unless_foreign(int result) { return result == -ENOTTY ? Answer() : result; }

Answer board_ioctl(Caller& caller, int number, uint32_t request, uint64_t argument) {
  int result;
  const int fd = caller.borrow(number);
  return fd >= 0 && shim::board_ioctl(fd, request, argument, &result) ? Answer(result) : Answer();
}

Answer drm_ioctl(Caller& caller, int number, uint32_t request, uint64_t argument) {
  shim::File file;
  int fd = -1;
  const int found = find_file(caller, number, &fd, &file);
  if (found == 0) return shim::forward_ioctl(file, request, argument);  // ENOTTY is an answer, too
  return found == -ENOTTY ? board_ioctl(caller, number, request, argument) : found;  // vcio's type
}

Answer fence_ioctl(Caller& caller, int number, uint32_t request, uint64_t argument) {
  const int fd = caller.borrow(number);
  return fd < 0 ? Answer() : unless_foreign(shim::fence_ioctl(fd, request, argument));
}

Answer framebuffer_ioctl(Caller& caller, int number, uint32_t request, uint64_t argument) {
  const int fd = caller.borrow(number);
  return fd < 0 ? Answer() : unless_foreign(shim::framebuffer_ioctl(fd, request, argument));
}

template <shim::Driver... kDrivers>
bool waits([[maybe_unused]] uint32_t request) {
  return (shim::is_wait(kDrivers, request) || ...);
}

/// What a program on QPUs is waited for by, too.
bool may_wait_for_gpu(uint32_t request) {
  return waits<shim::Driver::kV3d, shim::Driver::kVc4>(request) || shim::is_firmware_request(request);
}

/// Whose ioctls those of a type are.
struct IoctlType {
  char type;
  Answer (*answer)(Caller& caller, int number, uint32_t request, uint64_t argument);
  bool (*may_wait)(uint32_t request);
};
constexpr IoctlType kIoctlTypes[] = {
    {'d', drm_ioctl, may_wait_for_gpu},
    {'>', fence_ioctl, waits<shim::Driver::kFence>},
    {'b', fence_ioctl, waits<shim::Driver::kFence>},
    {'F', framebuffer_ioctl, waits<shim::Driver::kFramebuffer>},
    {'H', board_ioctl, waits<>},
    {'u', board_ioctl, waits<>},
    {'J', board_ioctl, waits<>},
};

const IoctlType* find_ioctl_type(uint32_t request) {
  for (const IoctlType& known : kIoctlTypes)
    if (static_cast<uint32_t>(known.type) == ioctl::drm::request_type(request)) return &known;
  return nullptr;
}

void handle_ioctl(Caller& caller) {
  if (is_register_store(caller.data())) {
    answer_register_store(caller);
    return;
  }
  const __u64* args = caller.data().args;
  const auto request = static_cast<uint32_t>(args[1]);
  const IoctlType* type = find_ioctl_type(request);
  const Answer answer = type ? type->answer(caller, static_cast<int>(args[0]), request, args[2]) : Answer();
  if (answer)
    caller.answer(*answer);
  else
    caller.pass_on();
}

/// @param memory  of ours, or a negative errno
void answer_with_memory(const Caller& caller, int memory, off_t place) {
  if (memory < 0) {
    caller.answer(memory);
    return;
  }
  answer_with_mapping(caller, memory, place);
  close(memory);
}

/// mmap of /dev/mem. False: the descriptor is none.
bool map_physical_memory(Caller& caller) {
  const __u64* args = caller.data().args;
  uint32_t minor;
  int fd = -1;
  if (!find_node(caller, static_cast<int>(args[4]), &fd, &minor) || !shim::is_physical_memory(fd))
    return false;
  shim::PhysicalMemory memory;
  const int error = shim::find_physical_memory(args[1], static_cast<off_t>(args[5]), &memory);
  if (!error && memory.fd < 0)
    answer_with_peripherals(caller, memory);
  else
    answer_with_memory(caller, error ? error : memory.fd, memory.place);
  return true;
}

void handle_mmap(Caller& caller) {
  const __u64* args = caller.data().args;
  const auto flags = static_cast<int>(args[3]);
  shim::File file;
  int fd = -1;
  if (flags & MAP_ANONYMOUS || find_file(caller, static_cast<int>(args[4]), &fd, &file) != 0) {
    if (flags & MAP_ANONYMOUS || !map_physical_memory(caller)) caller.pass_on();
    return;
  }
  off_t place = 0;
  const int memory = shim::find_mapping(file, args[1], static_cast<int>(args[2]), flags,
                                        static_cast<off_t>(args[5]), &place);
  answer_with_memory(caller, memory, place);
}

}  // namespace

void handle_call(Caller& caller, bool mounted) {
  switch (caller.data().nr) {
#if defined(SYS_open)
    case SYS_open:
#endif
    case SYS_openat:
    case SYS_openat2:
      return handle_open(caller, mounted);
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
      return handle_stat(caller);
    case SYS_ioctl:
      return handle_ioctl(caller);
    case SYS_mmap:
      return handle_mmap(caller);
    case SYS_rt_sigaction:
      return answer_action(caller) ? void() : caller.pass_on();
    default:
      return caller.pass_on();
  }
}

bool may_wait(const seccomp_data& call) {
  const auto request = static_cast<uint32_t>(call.args[1]);
  const IoctlType* type = call.nr == SYS_ioctl ? find_ioctl_type(request) : nullptr;
  return type && type->may_wait(request);
}

}  // namespace v3d::box
