/// What path functions show of the device tree: every symbol that the shim exports, called by that symbol.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>
#ifdef V3DEMU_TEST_UDEV
#include <libudev.h>
#endif

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>

#include "tests/shim/client.h"

using namespace client;

namespace {

constexpr char kByPath[] = "/dev/dri/by-path/platform-1002000000.v3d-render";
constexpr char kDevice[] = "/sys/devices/platform/axi/1002000000.v3d";

/// The function that a program that asks for `symbol` would get.
template <typename F>
F* symbol(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (!found) fail(__FILE__, __LINE__, std::string("no symbol ") + name);
  Dl_info info{};
  if (!dladdr(found, &info) || !strstr(info.dli_fname, "libv3demu.so")) {
    fail(__FILE__, __LINE__, std::string(name) + " is not the shim's");
  }
  return reinterpret_cast<F*>(found);
}

bool is_node(const struct stat& st, unsigned minor) {
  return S_ISCHR(st.st_mode) && st.st_rdev == makedev(226, minor) && st.st_ino != 0 && st.st_size == 0;
}

std::set<std::string> list(DIR* folder) {
  std::set<std::string> names;
  while (dirent* entry = folder ? readdir(folder) : nullptr) names.insert(entry->d_name);
  return names;
}

void check_opened(const char* name, int fd) {
  if (fd < 0 || driver_name(fd) != "v3d") fail(__FILE__, __LINE__, std::string(name) + " opens no v3d node");
  close(fd);
}

}  // namespace

SCENARIO(open_aliases) {
  using Open = int(const char*, int, ...);
  using OpenChecked = int(const char*, int);
  using OpenAt = int(int, const char*, int, ...);
  using OpenAtChecked = int(int, const char*, int);
  for (const char* path :
       {kRenderNode, kCardNode, kByPath, "//dev/./dri//renderD128", "/dev/dri/../dri/card0"}) {
    for (const char* name : {"open", "open64", "__open", "__open64"}) {
      check_opened(name, symbol<Open>(name)(path, O_RDWR | O_CLOEXEC));
    }
    for (const char* name : {"__open_2", "__open64_2"})
      check_opened(name, symbol<OpenChecked>(name)(path, O_RDWR));
    for (const char* name : {"openat", "openat64"}) {
      check_opened(name, symbol<OpenAt>(name)(AT_FDCWD, path, O_RDWR));
      int root = open("/dev", O_RDONLY | O_DIRECTORY);
      check_opened(name, symbol<OpenAt>(name)(root, "dri/renderD128", O_RDWR));
      close(root);
    }
    for (const char* name : {"__openat_2", "__openat64_2"}) {
      check_opened(name, symbol<OpenAtChecked>(name)(AT_FDCWD, path, O_RDWR));
    }
    for (const char* name : {"creat", "creat64"}) {
      check_opened(name, symbol<int(const char*, mode_t)>(name)(path, 0600));
    }
    for (const char* name : {"fopen", "fopen64", "_IO_fopen"}) {
      FILE* stream = symbol<FILE*(const char*, const char*)>(name)(path, "r+");
      CHECK(stream && driver_name(fileno(stream)) == "v3d");
      if (stream) fclose(stream);
    }
    for (const char* name : {"freopen", "freopen64"}) {
      FILE* stream = fopen("/dev/null", "r");
      stream = symbol<FILE*(const char*, const char*, FILE*)>(name)(path, "r+", stream);
      CHECK(stream && driver_name(fileno(stream)) == "v3d");
      if (stream) fclose(stream);
    }
  }
}

SCENARIO(open_rules) {
  CHECK_ERRNO(open(kRenderNode, O_RDWR | O_DIRECTORY), ENOTDIR);
  CHECK_ERRNO(open(kRenderNode, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
  CHECK_ERRNO(open(kByPath, O_RDWR | O_NOFOLLOW), ELOOP);
  CHECK_ERRNO(open("/dev/dri/card7", O_RDWR), ENOENT);
  CHECK_ERRNO(open("/dev/dri/card7", O_RDWR | O_CREAT, 0600), EACCES);
  CHECK_ERRNO(open("/dev/dri/card0/", O_RDWR), ENOTDIR);
  CHECK_ERRNO(open("/sys/class/drm/card0/uevent", O_RDWR), EACCES);
  CHECK_ERRNO(open("/sys/class/drm", O_RDWR), EISDIR);
  CHECK_ERRNO(open("/nowhere/../dev/dri/card0", O_RDWR), ENOENT);
  CHECK(!fopen("/sys/class/drm/card0/dev", "w"));
  // close-on-exec and the lowest number, as the caller wants them.
  int first = dup(0);
  close(first);
  int fd = open(kRenderNode, O_RDWR);
  CHECK_EQ(fd, first);
  CHECK_EQ(fcntl(fd, F_GETFD), 0);
  close(fd);
  fd = open(kRenderNode, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  CHECK_EQ(fd, first);
  CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
  char event[64];
  CHECK_ERRNO(read(fd, event, sizeof(event)), EAGAIN);
  // Opened anew through /proc, it is a file of its own; as a path it shows the node.
  std::string self = "/proc/self/fd/" + std::to_string(fd);
  char text[64] = {};
  CHECK_EQ(readlink(self.c_str(), text, sizeof(text)), ssize_t{sizeof(kRenderNode) - 1});
  CHECK_EQ(std::string(text), kRenderNode);
  check_opened("/proc/self/fd of a DRM file", open(self.c_str(), O_RDWR));
  close(fd);
  fd = open(kRenderNode, O_PATH);
  struct stat st;
  CHECK(fstat(fd, &st) == 0 && is_node(st, 128));
  self = "/proc/self/fd/" + std::to_string(fd);
  check_opened("/proc/self/fd of an O_PATH descriptor", open(self.c_str(), O_RDWR));
  close(fd);
}

SCENARIO(stat_aliases) {
  using Stat = int(const char*, struct stat*);
  using Xstat = int(int, const char*, struct stat*);
  using Fstat = int(int, struct stat*);
  using Fxstat = int(int, int, struct stat*);
  using Fstatat = int(int, const char*, struct stat*, int);
  using Fxstatat = int(int, int, const char*, struct stat*, int);
  struct stat st;
  for (const char* name : {"stat", "stat64", "lstat", "lstat64"}) {
    CHECK(symbol<Stat>(name)(kRenderNode, &st) == 0 && is_node(st, 128));
    CHECK(symbol<Stat>(name)(kCardNode, &st) == 0 && is_node(st, 0));
  }
  CHECK(stat(kByPath, &st) == 0 && is_node(st, 128));
  CHECK(lstat(kByPath, &st) == 0 && S_ISLNK(st.st_mode));
  CHECK(stat("/sys/dev/char/226:128/device/drm", &st) == 0 && S_ISDIR(st.st_mode));
  for (const char* name : {"__xstat", "__xstat64", "__lxstat", "__lxstat64"}) {
    CHECK(symbol<Xstat>(name)(1, kRenderNode, &st) == 0 && is_node(st, 128));
  }
  int fd = open_render(), folder = open("/dev/dri", O_RDONLY), path = open(kCardNode, O_PATH);
  struct stat by_path;
  stat(kRenderNode, &by_path);
  for (const char* name : {"fstat", "fstat64"}) {
    CHECK(symbol<Fstat>(name)(fd, &st) == 0 && is_node(st, 128));
    CHECK(st.st_ino == by_path.st_ino && st.st_dev == by_path.st_dev && st.st_mode == by_path.st_mode);
    CHECK(symbol<Fstat>(name)(path, &st) == 0 && is_node(st, 0));
  }
  for (const char* name : {"__fxstat", "__fxstat64"}) {
    CHECK(symbol<Fxstat>(name)(1, fd, &st) == 0 && is_node(st, 128));
  }
  for (const char* name : {"fstatat", "fstatat64"}) {
    auto* call = symbol<Fstatat>(name);
    CHECK(call(AT_FDCWD, kRenderNode, &st, 0) == 0 && is_node(st, 128));
    CHECK(call(folder, "card0", &st, AT_SYMLINK_NOFOLLOW) == 0 && is_node(st, 0));
    CHECK(call(fd, "", &st, AT_EMPTY_PATH) == 0 && is_node(st, 128));
    CHECK(call(folder, "by-path/platform-1002000000.v3d-card", &st, 0) == 0 && is_node(st, 0));
  }
  for (const char* name : {"__fxstatat", "__fxstatat64"}) {
    CHECK(symbol<Fxstatat>(name)(1, folder, "renderD128", &st, 0) == 0 && is_node(st, 128));
  }
  auto* call = symbol<int(int, const char*, int, unsigned, struct statx*)>("statx");
  auto good = [](const struct statx& x) {
    return S_ISCHR(x.stx_mode) && x.stx_rdev_major == 226 && x.stx_rdev_minor == 128 && x.stx_size == 0;
  };
  struct statx x;
  CHECK(call(AT_FDCWD, kRenderNode, 0, STATX_BASIC_STATS, &x) == 0 && good(x));
  CHECK(call(folder, "renderD128", 0, STATX_BASIC_STATS, &x) == 0 && good(x));
  CHECK(call(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) == 0 && good(x));
  for (int one : {fd, folder, path}) close(one);
}

SCENARIO(file_system_types) {
  struct statfs st;
  for (const char* name : {"statfs", "statfs64"}) {
    auto* call = symbol<int(const char*, struct statfs*)>(name);
    CHECK(call("/sys/class/drm/card0/uevent", &st) == 0);
    CHECK_EQ(static_cast<long>(st.f_type), static_cast<long>(SYSFS_MAGIC));
    CHECK(call(kCardNode, &st) == 0);
    CHECK_EQ(static_cast<long>(st.f_type), static_cast<long>(TMPFS_MAGIC));
    CHECK(call("/proc/self", &st) == 0);
    CHECK_EQ(static_cast<long>(st.f_type), static_cast<long>(PROC_SUPER_MAGIC));
  }
  int fd = open("/sys/class/drm/card0/", O_PATH);
  for (const char* name : {"fstatfs", "fstatfs64"}) {
    CHECK(symbol<int(int, struct statfs*)>(name)(fd, &st) == 0);
    CHECK_EQ(static_cast<long>(st.f_type), static_cast<long>(SYSFS_MAGIC));
  }
  close(fd);
}

SCENARIO(path_functions) {
  for (const char* name : {"access", "eaccess", "euidaccess"}) {
    auto* call = symbol<int(const char*, int)>(name);
    CHECK_EQ(call(kRenderNode, R_OK | W_OK), 0);
    CHECK_EQ(call("/sys/class/drm/renderD128/device/uevent", R_OK), 0);
    CHECK_ERRNO(call("/sys/dev/char/226:0/device/vendor", F_OK), ENOENT);
    CHECK_ERRNO(call("/sys/dev/char/226:0/device/boot_vga", F_OK), ENOENT);
  }
  int folder = open("/sys/class/drm", O_RDONLY | O_DIRECTORY);
  CHECK_EQ(faccessat(folder, "card0/uevent", R_OK, 0), 0);
  CHECK_EQ(faccessat(AT_FDCWD, kCardNode, R_OK, 0), 0);

  char text[PATH_MAX];
  const std::string link = "../../devices/platform/axi/1002000000.v3d/drm/card0";
  auto check_link = [&](ssize_t size) {
    CHECK_EQ(std::string(text, static_cast<size_t>(std::max(size, ssize_t{0}))), link);
  };
  check_link(
      symbol<ssize_t(const char*, char*, size_t)>("readlink")("/sys/class/drm/card0", text, sizeof(text)));
  check_link(symbol<ssize_t(const char*, char*, size_t, size_t)>("__readlink_chk")(
      "/sys/class/drm/card0", text, sizeof(text), sizeof(text)));
  check_link(
      symbol<ssize_t(int, const char*, char*, size_t)>("readlinkat")(folder, "card0", text, sizeof(text)));
  check_link(symbol<ssize_t(int, const char*, char*, size_t, size_t)>("__readlinkat_chk")(
      folder, "card0", text, sizeof(text), sizeof(text)));
  CHECK_EQ(readlink("/sys/dev/char/226:128/device/subsystem", text, sizeof(text)), ssize_t{24});
  CHECK_EQ(std::string(text, 24), "../../../../bus/platform");

  auto* real = symbol<char*(const char*, char*)>("realpath");
  CHECK_EQ(std::string(real("/sys/dev/char/226:0/device", text) ?: ""), kDevice);
  CHECK_EQ(std::string(real(kByPath, text) ?: ""), kRenderNode);
  CHECK_EQ(
      std::string(symbol<char*(const char*, char*, size_t)>("__realpath_chk")(kByPath, text, sizeof(text))
                      ?: ""),
      kRenderNode);
  char* name = symbol<char*(const char*)>("canonicalize_file_name")("/sys/class/drm/card0/device/subsystem");
  CHECK_EQ(std::string(name ?: ""), "/sys/bus/platform");
  free(name);

  // The working folder may lie in the tree, and is left by "..".
  CHECK_EQ(chdir("/dev/dri"), 0);
  CHECK_EQ(std::string(getcwd(text, sizeof(text)) ?: ""), "/dev/dri");
  check_opened("relative", open("card0", O_RDWR));
  struct stat st;
  CHECK(stat("../null", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
  CHECK_EQ(chdir("../../sys/class"), 0);
  CHECK_EQ(access("drm/card0", F_OK), 0);
  CHECK_EQ(fchdir(folder), 0);
  CHECK_EQ(access("card0/uevent", F_OK), 0);
  CHECK_EQ(chdir("/"), 0);
  CHECK_EQ(access("dev/dri/card0", F_OK), 0);
  CHECK_EQ(chdir("/usr"), 0);
  CHECK_EQ(access("../dev/dri/card0", F_OK), 0);
  int watcher = inotify_init1(IN_CLOEXEC);
  CHECK(inotify_add_watch(watcher, "/dev/dri", IN_CREATE) >= 0);
  close(watcher);
  close(folder);
}

SCENARIO(folders) {
  DIR* folder = opendir("/dev/dri");
  CHECK(list(folder) == (std::set<std::string>{".", "..", "by-path", "card0", "card1", "renderD128"}));
  rewinddir(folder);
  while (dirent* entry = readdir(folder)) {
    if (strncmp(entry->d_name, "card", 4) == 0) CHECK_EQ(int{entry->d_type}, int{DT_CHR});
  }
  // dirfd works like the real one.
  struct stat st;
  CHECK(fstatat(dirfd(folder), "card1", &st, 0) == 0 && is_node(st, 1));
  closedir(folder);
  int fd = open("/sys/class/drm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  folder = fdopendir(fd);
  CHECK(list(folder).count("renderD128"));
  closedir(folder);

  for (const char* name : {"scandir", "scandir64"}) {
    dirent** entries = nullptr;
    auto* call =
        symbol<int(const char*, dirent***, int (*)(const dirent*), int (*)(const dirent**, const dirent**))>(
            name);
    int count = call(
        "/dev/dri", &entries, [](const dirent* entry) { return int{entry->d_type == DT_CHR}; }, alphasort);
    CHECK_EQ(count, 3);
    for (int i = 0; i < count; ++i) free(entries[i]);
    free(entries);
  }
  glob_t found{};
  for (const char* name : {"glob", "glob64"}) {
    auto* call = symbol<int(const char*, int, int (*)(const char*, int), glob_t*)>(name);
    CHECK_EQ(call("/dev/dri/card*", 0, nullptr, &found), 0);
    CHECK_EQ(found.gl_pathc, size_t{2});
    globfree(&found);
  }
  static std::set<std::string> walked;
  CHECK_EQ(nftw(
               "/dev/dri",
               [](const char* path, const struct stat* one, int, FTW* place) {
                 if (S_ISCHR(one->st_mode)) walked.insert(path + place->base);
                 return 0;
               },
               8, FTW_PHYS),
           0);
  CHECK(walked == (std::set<std::string>{"card0", "card1", "renderD128"}));
}

SCENARIO(merged_folders) {
  // Ours and the host's, side by side.
  std::set<std::string> names;
  DIR* folder = opendir("/dev");
  names = list(folder);
  CHECK(names.count("dri") && names.count("null"));
  struct stat st;
  CHECK(fstatat(dirfd(folder), "null", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode));
  CHECK(fstatat(dirfd(folder), "dri/card0", &st, 0) == 0 && is_node(st, 0));
  closedir(folder);
  folder = opendir("/sys/class");
  names = list(folder);
  CHECK(names.count("drm") && names.size() > 3);
  closedir(folder);
  folder = opendir("/sys/dev/char");
  names = list(folder);
  CHECK(names.count("226:0") && names.count("226:1") && names.count("226:128") && names.count("1:3"));
  closedir(folder);
  folder = opendir("/sys/bus/platform/devices");
  names = list(folder);
  CHECK(names.count("1002000000.v3d") && names.count("axi:gpu"));
  // Through the tree's own links to a device of the host.
  for (const std::string& name : names) {
    if (name[0] == '.' || name == "1002000000.v3d" || name == "axi:gpu") continue;
    std::string through = "/sys/class/drm/card0/device/subsystem/devices/" + name;
    CHECK_EQ(access(through.c_str(), F_OK), 0);
    break;
  }
  closedir(folder);
}

SCENARIO(walk_like_libudev) {
  // systemd's chase_symlinks: one component at a time, from the root, looking at each.
  auto step = [](int* at, const char* name) {
    int next = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    CHECK(next >= 0 && fstat(next, &st) == 0);
    close(*at);
    *at = next;
    return st.st_mode & S_IFMT;
  };
  int at = openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC);
  CHECK(step(&at, "sys") == S_IFDIR && step(&at, "class") == S_IFDIR && step(&at, "drm") == S_IFDIR);
  char text[PATH_MAX];
  ssize_t size = readlinkat(at, "card0", text, sizeof(text) - 1);
  CHECK(size > 0);
  text[std::max(size, ssize_t{0})] = 0;
  for (char* part = strtok(text, "/"); part; part = strtok(nullptr, "/")) step(&at, part);
  CHECK_EQ(faccessat(at, "uevent", F_OK, 0), 0);
  struct statfs fs;
  CHECK(fstatfs(at, &fs) == 0 && fs.f_type == SYSFS_MAGIC);
  for (int up = 0; up < 7; ++up) step(&at, "..");  // card0 drm 1002000000.v3d axi platform devices sys
  struct stat here, root;
  CHECK(fstat(at, &here) == 0 && stat("/", &root) == 0 && here.st_ino == root.st_ino &&
        here.st_dev == root.st_dev);
  close(at);
}

SCENARIO(udev_devices) {
#ifdef V3DEMU_TEST_UDEV
  auto check_device = [](udev_device* device, unsigned minor, const char* node) {
    CHECK(device);
    if (!device) return;
    CHECK_EQ(udev_device_get_devnum(device), makedev(226, minor));
    CHECK_EQ(std::string(udev_device_get_devnode(device) ?: ""), node);
    CHECK_EQ(std::string(udev_device_get_subsystem(device) ?: ""), "drm");
    udev_device* parent = udev_device_get_parent_with_subsystem_devtype(device, "platform", nullptr);
    CHECK_EQ(std::string(parent ? udev_device_get_sysname(parent) : ""),
             minor == 1 ? "axi:gpu" : "1002000000.v3d");
    udev_device_unref(device);
  };
  udev* context = udev_new();
  check_device(udev_device_new_from_subsystem_sysname(context, "drm", "renderD128"), 128, kRenderNode);
  check_device(udev_device_new_from_subsystem_sysname(context, "drm", "card1"), 1, "/dev/dri/card1");
  check_device(udev_device_new_from_devnum(context, 'c', makedev(226, 0)), 0, kCardNode);
  check_device(udev_device_new_from_syspath(context, "/sys/class/drm/card0"), 0, kCardNode);
  udev_enumerate* all = udev_enumerate_new(context);
  udev_enumerate_add_match_subsystem(all, "drm");
  udev_enumerate_add_match_sysname(all, "card[0-9]");
  udev_enumerate_scan_devices(all);
  int count = 0;
  for (udev_list_entry* one = udev_enumerate_get_list_entry(all); one; one = udev_list_entry_get_next(one))
    ++count;
  CHECK_EQ(count, 2);
  udev_enumerate_unref(all);
  udev_unref(context);
#endif
}

SCENARIO(libdrm) {
  drmDevicePtr devices[8];
  CHECK_EQ(drmGetDevices2(0, nullptr, 0), 2);
  int count = drmGetDevices2(0, devices, 8);
  CHECK_EQ(count, 2);
  for (int i = 0; i < count; ++i) {
    const drmDevice& device = *devices[i];
    CHECK_EQ(device.bustype, int{DRM_BUS_PLATFORM});
    bool render = device.available_nodes & 1 << DRM_NODE_RENDER;
    CHECK_EQ(std::string(device.nodes[DRM_NODE_PRIMARY]), render ? kCardNode : "/dev/dri/card1");
    CHECK_EQ(std::string(device.businfo.platform->fullname), render ? "/axi/v3d@2000000" : "/axi/gpu");
    CHECK_EQ(std::string(device.deviceinfo.platform->compatible[0]),
             render ? "brcm,2712-v3d" : "brcm,bcm2712-vc6");
    if (render) CHECK_EQ(std::string(device.nodes[DRM_NODE_RENDER]), kRenderNode);
  }
  drmFreeDevices(devices, count);

  int fd = open_render(), card = open("/dev/dri/card1", O_RDWR | O_CLOEXEC);
  CHECK_EQ(drmGetNodeTypeFromFd(fd), int{DRM_NODE_RENDER});
  CHECK_EQ(drmGetNodeTypeFromFd(card), int{DRM_NODE_PRIMARY});
  auto check_name = [](char* name, const char* expected) {
    CHECK_EQ(std::string(name ?: ""), expected);
    free(name);
  };
  check_name(drmGetRenderDeviceNameFromFd(fd), kRenderNode);
  check_name(drmGetPrimaryDeviceNameFromFd(fd), kCardNode);
  check_name(drmGetDeviceNameFromFd2(fd), kRenderNode);
  check_name(drmGetDeviceNameFromFd(card), "/dev/dri/card1");
  drmDevicePtr device = nullptr;
  CHECK_EQ(drmGetDevice2(fd, 0, &device), 0);
  drmFreeDevice(&device);
  CHECK_EQ(drmGetDeviceFromDevId(makedev(226, 128), 0, &device), 0);
  drmFreeDevice(&device);
  for (int one : {fd, card}) {
    drmVersionPtr version = drmGetVersion(one);
    CHECK(version);
    if (!version) continue;
    CHECK_EQ(std::string(version->name), one == fd ? "v3d" : "vc4");
    CHECK_EQ(std::string(version->desc), one == fd ? "Broadcom V3D graphics" : "Broadcom VC4 graphics");
    drmFreeVersion(version);
  }
  uint64_t value = 99;
  CHECK(drmGetCap(fd, DRM_CAP_SYNCOBJ, &value) == 0 && value == 1);
  CHECK(drmGetCap(fd, DRM_CAP_SYNCOBJ, &value) == 0 && value == 1);
  CHECK(drmGetCap(fd, DRM_CAP_SYNCOBJ_TIMELINE, &value) == 0 && value == 0);
  CHECK_ERRNO(drmGetCap(fd, DRM_CAP_DUMB_BUFFER, &value), EOPNOTSUPP);
  close(fd);
  close(card);
}

/// Pi 4, chosen by V3DEMU_DEVICE.
SCENARIO(pi4_tree) {
  CHECK_EQ(access("/dev/dri/by-path/platform-fec00000.v3d-render", R_OK), 0);
  CHECK_ERRNO(access(kByPath, R_OK), ENOENT);
  char text[PATH_MAX];
  CHECK_EQ(std::string(realpath("/sys/class/drm/card0/device", text) ?: ""),
           "/sys/devices/platform/v3dbus/fec00000.v3d");
  CHECK_EQ(std::string(realpath("/sys/class/drm/card1/device", text) ?: ""), "/sys/devices/platform/gpu");
}

/// Pi 3, whose display and GPU are one device of the driver vc4.
SCENARIO(pi3_tree) {
  CHECK_EQ(access("/dev/dri/by-path/platform-soc:gpu-card", R_OK), 0);
  CHECK_EQ(access("/dev/dri/by-path/platform-soc:gpu-render", R_OK), 0);
  CHECK_ERRNO(access("/dev/dri/card1", F_OK), ENOENT);
  CHECK_ERRNO(access("/sys/devices/platform/soc/3fc00000.v3d/drm", F_OK), ENOENT);
  CHECK_EQ(access("/sys/bus/platform/drivers/vc4_v3d/3fc00000.v3d/uevent", R_OK), 0);
  for (const char* node : {"card0", "renderD128"}) {
    char text[PATH_MAX];
    const std::string device = std::string("/sys/class/drm/") + node + "/device";
    CHECK_EQ(std::string(realpath(device.c_str(), text) ?: ""), "/sys/devices/platform/soc/soc:gpu");
  }
  for (const char* connector : {"HDMI-A-1", "Writeback-1"})
    CHECK_EQ(access((std::string("/sys/class/drm/card0-") + connector + "/status").c_str(), R_OK), 0);
  for (const char* connector : {"HDMI-A-2", "Writeback-2"})
    CHECK_ERRNO(access((std::string("/sys/class/drm/card0-") + connector).c_str(), F_OK), ENOENT);
  drmDevicePtr device = nullptr;
  CHECK_EQ(drmGetDevices2(0, &device, 1), 1);
  if (!device) return;
  CHECK_EQ(device->available_nodes, 1 << DRM_NODE_PRIMARY | 1 << DRM_NODE_RENDER);
  CHECK_EQ(std::string(device->businfo.platform->fullname), "/soc/gpu");
  CHECK_EQ(std::string(device->deviceinfo.platform->compatible[0]), "brcm,bcm2835-vc4");
  drmFreeDevice(&device);
}

SCENARIO(no_display_device) {
  CHECK_ERRNO(access("/dev/dri/card1", F_OK), ENOENT);
  CHECK_EQ(drmGetDevices2(0, nullptr, 0), 1);
}

/// Nodes of the host are beside ours, which take other numbers if theirs are taken.
SCENARIO(host_nodes_visible) {
  int count = drmGetDevices2(0, nullptr, 0);
  CHECK(count >= 2);
  glob_t found{};
  CHECK_EQ(glob("/dev/dri/by-path/platform-1002000000.v3d-render", 0, nullptr, &found), 0);
  globfree(&found);
  check_opened("render node", open(kByPath, O_RDWR));
}

/// Beside the host's own framebuffers, which the test names: ours takes a free number.
SCENARIO(host_framebuffers_visible) {
  const std::string own = "fb" + std::string(getenv("EXPECTED_FRAMEBUFFER") ?: "0");
  struct stat st;
  CHECK_EQ(stat(("/dev/" + own).c_str(), &st), 0);
  CHECK(S_ISCHR(st.st_mode) && st.st_rdev == makedev(29, static_cast<unsigned>(own.back() - '0')));
  std::set<std::string> listed;
  if (DIR* folder = opendir("/sys/class/graphics")) {
    while (const dirent* entry = readdir(folder)) listed.insert(entry->d_name);
    closedir(folder);
  }
  CHECK(listed.contains(own));
  for (const char* hosts = getenv("EXPECTED_GRAPHICS"); hosts && *hosts;) {
    const size_t length = strcspn(hosts, " ");
    CHECK(listed.contains(std::string(hosts, length)));
    hosts += length + (hosts[length] == ' ');
  }
}

SCENARIO(early_calls) {
  CHECK_EQ(std::string(getenv("EARLY_CALLS") ?: ""), "good");
  close(open_render());
}

/// Ordinary work, nothing of which concerns DRM.
SCENARIO(ordinary_work) {
  struct stat st;
  CHECK_EQ(stat("/usr/lib", &st), 0);
  CHECK_EQ(stat("/dev/null", &st), 0);
  CHECK(st.st_rdev == makedev(1, 3));
  int fd = open("/dev/zero", O_RDONLY);
  CHECK(fd >= 0);
  CHECK_ERRNO(ioctl(fd, _IO('d', 0x1e)), ENOTTY);
  close(fd);
  FILE* stream = fopen("/proc/self/status", "r");
  CHECK(stream);
  fclose(stream);
  CHECK_EQ(access("/sys/class/net", F_OK), 0);
  DIR* folder = opendir("/usr");
  CHECK(folder && readdir(folder));
  closedir(folder);
  int pair[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  CHECK(fstat(pair[0], &st) == 0 && S_ISSOCK(st.st_mode));
  close(pair[0]);
  close(pair[1]);
}

/// Paths that cannot be read are the kernel's to refuse: EFAULT, and the process lives.
SCENARIO(bad_paths) {
  CHECK_EQ(open(kRenderNode, O_RDWR) >= 0, true);
  auto* page =
      static_cast<char*>(mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(page + 4096, 4096);
  memset(page, 'a', 4096);
  std::copy_n("/dev/", 5, page + 4096 - 5);
  struct stat st;
  struct statx stx;
  struct statfs fs;
  char text[16];
  // Nothing there, and a text whose end is not.
  // NOLINTBEGIN(performance-no-int-to-ptr): addresses that are none
  for (const char* bad :
       {static_cast<const char*>(page + 4096), static_cast<const char*>(page + 4096 - 5),
        reinterpret_cast<const char*>(uintptr_t{8}), reinterpret_cast<const char*>(uintptr_t{1})}) {
    // NOLINTEND(performance-no-int-to-ptr)
    CHECK_ERRNO(access(bad, R_OK), EFAULT);
    CHECK_ERRNO(faccessat(AT_FDCWD, bad, R_OK, 0), EFAULT);
    CHECK_ERRNO(open(bad, O_RDONLY), EFAULT);
    CHECK_ERRNO(openat(AT_FDCWD, bad, O_RDONLY), EFAULT);
    CHECK_ERRNO(creat(bad, 0600), EFAULT);
    CHECK_ERRNO(stat(bad, &st), EFAULT);
    CHECK_ERRNO(lstat(bad, &st), EFAULT);
    CHECK_ERRNO(fstatat(AT_FDCWD, bad, &st, 0), EFAULT);
    CHECK_ERRNO(fstatat(AT_FDCWD, bad, &st, AT_EMPTY_PATH), EFAULT);
    CHECK_ERRNO(statx(AT_FDCWD, bad, 0, STATX_BASIC_STATS, &stx), EFAULT);
    CHECK_ERRNO(statfs(bad, &fs), EFAULT);
    CHECK_ERRNO(readlink(bad, text, sizeof(text)), EFAULT);
    CHECK_ERRNO(readlinkat(AT_FDCWD, bad, text, sizeof(text)), EFAULT);
    CHECK_ERRNO(chdir(bad), EFAULT);
  }
  // A good path that ends with the last byte of the last page.
  constexpr char kNode[] = "/dev/dri/renderD128";
  char* last = page + 4096 - sizeof(kNode);
  memcpy(last, kNode, sizeof(kNode));
  CHECK_EQ(stat(last, &st), 0);
  CHECK(S_ISCHR(st.st_mode));
}

// What sandboxes kill a process for, paths must not cause: Chromium's renderers and Firefox's content
// processes look into no process's memory, their own included.
SCENARIO(sandbox_kills_memory_access) {
  auto* page =
      static_cast<char*>(mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(page + 4096, 4096, PROT_NONE);
  memset(page, 'a', 4096);
  struct stat st;
  CHECK_EQ(stat(kRenderNode, &st), 0);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  const pid_t child = fork();
  if (child == 0) syscall(SYS_process_vm_readv, getpid(), nullptr, 0L, nullptr, 0L, 0L);
  if (child == 0) _exit(0);
  CHECK_EQ(wait_for(child), 128 + SIGSYS);  // the sandbox is one

  close(open("/dev/null", O_RDWR));
  for (const char* path : {"/dev/null", kRenderNode, "/sys/class/drm/card0/uevent"}) {
    CHECK_EQ(access(path, R_OK), 0);
    CHECK_EQ(stat(path, &st), 0);
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    close(fd);
  }
  // Texts that end with each of the page's last bytes; and after it.
  constexpr char kPath[] = "/dev/dri/card0";
  for (size_t room = 0; room < 16; ++room) {
    char* text = page + 4096 - room - sizeof(kPath);
    memcpy(text, kPath, sizeof(kPath));
    CHECK(stat(text, &st) == 0 && is_node(st, 0));
    memset(text, 'a', sizeof(kPath));
    CHECK_ERRNO(access(page + 4096 - room, F_OK), EFAULT);
  }
  // Nothing was blocked on the way.
  sigset_t blocked;
  CHECK_EQ(sigprocmask(SIG_BLOCK, nullptr, &blocked), 0);
  CHECK(sigisemptyset(&blocked));
}
