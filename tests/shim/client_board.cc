/// What tells programs which board they run on and who uses its GPU.

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/shim/client.h"

using namespace client;

namespace {

/// Through stdio, as most programs read these files.
std::string read_all(const std::string& path) {
  std::string text;
  FILE* stream = fopen(path.c_str(), "r");
  if (!stream) return "errno " + std::to_string(errno);
  char part[256];
  for (size_t got; (got = fread(part, 1, sizeof(part), stream)) > 0;) text.append(part, got);
  fclose(stream);
  return text;
}

bool contains(const std::string& text, const char* piece) { return text.find(piece) != std::string::npos; }

template <size_t N>
std::string zeros_too(const char (&text)[N]) {
  return {text, N};
}

void check_fdinfo(const std::string& text) {
  CHECK(text.starts_with("pos:\t"));  // the kernel's own lines come first
  for (const char* line :
       {"drm-driver:\tv3d\n", "drm-client-id:\t", "drm-engine-bin: \t0 ns\n", "drm-engine-render: \t0 ns\n",
        "drm-engine-tfu: \t0 ns\n", "drm-engine-csd: \t0 ns\n", "drm-engine-cache_clean: \t0 ns\n",
        "drm-engine-cpu: \t0 ns\n", "v3d-jobs-bin: \t0 jobs\n", "drm-total-memory:\t12 KiB\n",
        "drm-shared-memory:\t0\n", "drm-active-memory:\t0\n"}) {
    if (!contains(text, line)) fail(__FILE__, __LINE__, std::string("no ") + line + " in " + text);
  }
}

std::string read_stream(FILE* stream) {
  char text[4096];
  return {text, fread(text, 1, sizeof(text), stream)};
}

}  // namespace

SCENARIO(pi5_board) {
  for (const std::string base : {"/sys/firmware/devicetree/base", "/proc/device-tree"}) {
    CHECK_EQ(read_all(base + "/model"), zeros_too("Raspberry Pi 5 Model B Rev 1.0"));
    CHECK_EQ(read_all(base + "/compatible"), zeros_too("raspberrypi,5-model-b\0brcm,bcm2712"));
    CHECK_EQ(read_all(base + "/serial-number").size(), size_t{17});
    CHECK_EQ(read_all(base + "/axi/v3d@2000000/status"), zeros_too("okay"));
    CHECK_EQ(read_all(base + "/system/linux,revision"), std::string("\0\xc0\x41\x70", 4));
    DIR* folder = opendir(base.c_str());
    bool listed = false;
    while (const dirent* entry = folder ? readdir(folder) : nullptr)
      listed |= !strcmp(entry->d_name, "model");
    CHECK(listed);
    if (folder) closedir(folder);
  }
  // The links by which libudev (nvtop) and libcamera know a device.
  const std::string device = "/sys/class/drm/card0/device/";
  for (const auto& [link, target] : {std::pair("driver", "/sys/bus/platform/drivers/v3d"),
                                     std::pair("of_node", "/sys/firmware/devicetree/base/axi/v3d@2000000")}) {
    char* path = realpath((device + link).c_str(), nullptr);
    CHECK_EQ(std::string(path ? path : "none"), target);
    free(path);
  }
  CHECK_EQ(access("/sys/bus/platform/drivers/v3d/1002000000.v3d/gpu_stats", R_OK), 0);
  CHECK_EQ(access("/sys/bus/platform/drivers/vc4-drm/axi:gpu/drm/card1", F_OK), 0);
  const std::string processors = read_all("/proc/cpuinfo");
  CHECK(
      processors.ends_with("Revision\t: c04170\nSerial\t\t: 1000000076336465\n"
                           "Model\t\t: Raspberry Pi 5 Model B Rev 1.0\n"));
  CHECK(contains(processors, "processor\t: 0\n"));  // the host's own, before it
}

SCENARIO(pi4_board) {
  CHECK_EQ(read_all("/proc/device-tree/model"), zeros_too("Raspberry Pi 4 Model B Rev 1.4"));
  CHECK_EQ(read_all("/proc/device-tree/v3dbus/v3d@7ec04000/status"), zeros_too("okay"));
  CHECK(contains(read_all("/proc/cpuinfo"), "Revision\t: c03114\n"));
}

SCENARIO(no_board) {
  CHECK(!contains(read_all("/proc/device-tree/model"), "Raspberry"));
  CHECK(!contains(read_all("/proc/cpuinfo"), "Raspberry"));
  for (const char* node : {"/dev/vcio", "/dev/vcio_gencmd"}) CHECK_ERRNO(access(node, F_OK), ENOENT);
  CHECK_EQ(access(kRenderNode, F_OK), 0);  // the GPU is there all the same
}

/// Each node that the library shows is a character device to whoever looks at it.
SCENARIO(nodes_are_devices) {
  const struct {
    const char* path;
    unsigned major, minor, mode;
  } nodes[] = {{"/dev/dri/card0", 226, 0, 0660},
               {"/dev/dri/card1", 226, 1, 0660},
               {"/dev/dri/renderD128", 226, 128, 0666},
               {"/dev/fb0", 29, 0, 0660},
               {"/dev/dma_heap/system", 384, 0, 0660},
               {"/dev/dma_heap/linux,cma", 384, 1, 0660},
               {"/dev/dma_heap/vidbuf_cached", 384, 2, 0660},
               {"/dev/udmabuf", 10, 4000, 0660},
               {"/dev/vcio", 10, 4001, 0660},
               {"/dev/vcio_gencmd", 10, 4002, 0660}};
  for (const auto& node : nodes) {
    const auto check = [&](const struct stat& st) {
      if (st.st_mode != (S_IFCHR | node.mode) || st.st_rdev != makedev(node.major, node.minor))
        fail(__FILE__, __LINE__, node.path);
    };
    struct stat st = {};
    CHECK_EQ(stat(node.path, &st), 0);
    check(st);
    struct statx extended = {};
    CHECK_EQ(statx(AT_FDCWD, node.path, 0, STATX_BASIC_STATS, &extended), 0);
    CHECK(S_ISCHR(extended.stx_mode) && extended.stx_rdev_major == node.major &&
          extended.stx_rdev_minor == node.minor);
    const int fd = open(node.path, O_RDWR | O_CLOEXEC), copy = dup(fd);
    CHECK(fd >= 0);
    CHECK_EQ(fstat(copy, &st), 0);
    check(st);
    char shown[64];
    const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(copy)).c_str(), shown, sizeof(shown));
    CHECK_EQ(std::string(shown, size < 0 ? 0 : static_cast<size_t>(size)), node.path);
    close(fd);
    close(copy);
    CHECK_EQ(access(node.path, R_OK | W_OK), 0);
    CHECK_ERRNO(open(node.path, O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(open(node.path, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    const std::string path = node.path, folder = path.substr(0, path.rfind('/'));
    bool listed = false;
    DIR* entries = opendir(folder.c_str());
    while (const dirent* entry = entries ? readdir(entries) : nullptr)
      listed |= path == folder + "/" + entry->d_name && entry->d_type == DT_CHR;
    if (!listed) fail(__FILE__, __LINE__, path + " is not listed as a device");
    if (entries) closedir(entries);
  }
}

/// With the daemon: of the own process, and of another one that holds the file.
SCENARIO(who_uses_the_gpu) {
  const int fd = open(kRenderNode, O_RDWR);
  CHECK(fd >= 0);
  struct {
    uint32_t size, flags, handle, offset;
  } bo{12288, 0, 0, 0};
  CHECK_EQ(ioctl(fd, 0xc0106442, &bo), 0);
  check_fdinfo(read_all("/proc/self/fdinfo/" + std::to_string(fd)));
  CHECK(!contains(read_all("/proc/self/fdinfo/0"), "drm-"));

  const pid_t holder = fork();
  if (holder == 0) {
    pause();
    _exit(0);
  }
  close(fd);
  const std::string process = "/proc/" + std::to_string(holder), number = std::to_string(fd);
  check_fdinfo(read_all(process + "/fdinfo/" + number));
  const int infos = open((process + "/fdinfo").c_str(), O_RDONLY | O_DIRECTORY);
  const int info = openat(infos, number.c_str(), O_RDONLY);
  char text[4096] = {};
  CHECK(read(info, text, sizeof(text) - 1) > 0);
  check_fdinfo(text);
  CHECK_EQ(write(info, "x", 1), -1L);

  // As nvtop finds DRM files.
  const int fds = open((process + "/fd").c_str(), O_RDONLY | O_DIRECTORY);
  struct stat st;
  CHECK_EQ(fstatat(fds, number.c_str(), &st, 0), 0);
  CHECK(S_ISCHR(st.st_mode) && st.st_rdev == makedev(226, 128));
  CHECK_EQ(stat((process + "/fd/" + number).c_str(), &st), 0);
  CHECK(S_ISCHR(st.st_mode) && st.st_rdev == makedev(226, 128));
  CHECK_EQ(stat((process + "/fd/0").c_str(), &st), 0);
  CHECK(st.st_rdev == makedev(1, 3));  // /dev/null, which the tests have there
  CHECK_EQ(kill(holder, SIGKILL), 0);
  wait_for(holder);

  // The clock of a counting file moves.
  const std::string first = read_all("/sys/class/drm/card0/device/gpu_stats");
  CHECK(first.starts_with("queue\ttimestamp\tjobs\truntime\nbin\t") && !contains(first, "bin\t0\t"));
  CHECK(first != read_all("/sys/class/drm/card0/device/gpu_stats"));
}

/// With the daemon: each way to open a file shows what the daemon says, not what lies in the tree.
SCENARIO(texts_of_now) {
  for (const char* path : {"/sys/class/drm/card1-HDMI-A-1/modes", "/sys/class/drm/card0/device/gpu_stats"}) {
    const int fd = open(path, O_RDONLY);
    char name[64] = {};
    CHECK(readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof(name) - 1) > 0);
    CHECK(contains(name, "v3demu-text"));
    close(fd);
    FILE* stream = fopen(path, "re");
    CHECK(stream);
    const std::string by_fopen = read_stream(stream);
    CHECK(by_fopen.size() > 16);
    stream = freopen("/dev/null", "r", stream);
    stream = freopen(path, "re", stream);
    CHECK(stream);
    CHECK_EQ(fcntl(fileno(stream), F_GETFD), FD_CLOEXEC);
    CHECK_EQ(read_stream(stream).substr(0, 10), by_fopen.substr(0, 10));
    fclose(stream);
    stream = fopen("/dev/null", "r");
    errno = 0;
    CHECK(!freopen(path, "w", stream));
    CHECK_EQ(errno, EACCES);
  }
}

/// Root's files of debugfs, of what this process has open.
/// Of the driver vc4. A name goes over with the byte that ends it, and nothing behind that need be there
/// (strndup_user).
SCENARIO(labels) {
  struct {
    uint32_t handle, length;
    uint64_t name;
  } label = {};
  constexpr unsigned long kLabelBo = _IOWR('d', 0x4a, label);
  const int fd = open("/dev/dri/card0", O_RDWR);
  uint32_t bo[] = {8192, 0, 0, 0};  // size, flags, handle, pad
  CHECK_EQ(ioctl(fd, _IOWR('d', 0x43, bo), bo), 0);
  label.handle = bo[2];
  const auto set = [&](const char* name, uint32_t length) {
    label.name = reinterpret_cast<uintptr_t>(name);
    label.length = length;
    return ioctl(fd, kLabelBo, &label);
  };
  CHECK_EQ(set("texture", 7), 0);
  CHECK_EQ(set("texture", 100), 0);
  CHECK_ERRNO(set("texture", 6), EINVAL);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(pages != MAP_FAILED);
  CHECK_EQ(munmap(pages + page, page), 0);
  char* const last = pages + page - 5;
  memcpy(last, "last", 5);
  CHECK_EQ(set(last, 1000), 0);
  memcpy(last, "whole", 5);
  CHECK_ERRNO(set(last, 1000), EFAULT);
  if (geteuid() == 0)
    CHECK(contains(read_all("/sys/kernel/debug/dri/0/bo_stats"),
                   "                          last:      8kb BOs (1)\n"));
}

SCENARIO(debug_files) {
  const std::string root = "/sys/kernel/debug/dri/";
  const int fd = open(kRenderNode, O_RDWR);
  const uint32_t first = create_bo(fd, 12288), second = create_bo(fd, 4096);
  CHECK(first && second);
  CHECK_EQ(read_all(root + "0/bo_stats"), "allocated bos:          2\nallocated bo size (kb): 16\n");
  CHECK_EQ(close_bo(fd, second), 0);
  CHECK_EQ(read_all(root + "128/bo_stats"), "allocated bos:          1\nallocated bo size (kb): 12\n");
  CHECK_EQ(read_all(root + "0/name"), "v3d dev=1002000000.v3d unique=1002000000.v3d\n");
  CHECK_EQ(read_all(root + "1/name"), "vc4 dev=axi:gpu unique=axi:gpu\n");
  CHECK_EQ(read_all(root + "1002000000.v3d/v3d_ident"),
           "Revision:   7.1.7.0\nMMU:        yes\nTFU:        no\nMSO:        yes\nL3C:        no (0kb)\n"
           "Core 0:\n  Revision:     7.1\n  Slices:       3\n  TMUs:         3\n  QPUs:         12\n"
           "  Semaphores:   0\n");
  CHECK_EQ(read_all(root + "0/measure_clock"), "cycles: 960000000 (960.0 Mhz)\n");

  const int card = open(kCardNode, O_RDWR);
  struct {
    uint32_t handle, name;
  } flink = {create_bo(card, 8192), 0};
  CHECK_EQ(ioctl(card, _IOWR('d', 0x0a, flink), &flink), 0);
  CHECK_EQ(read_all(root + "0/gem_names"),
           "  name     size handles refcount\n     1     8192       1        1\n");
  const std::string clients = read_all(root + "0/clients"), program = "         shim_client";
  CHECK(clients.starts_with("             command  tgid dev master a   uid      magic "));
  char pid[16];
  snprintf(pid, sizeof(pid), " %5d ", getpid());
  CHECK(contains(clients, (program + pid).c_str()));
  CHECK(contains(clients, " 128   n    y ") && contains(clients, "   0   y    y ") &&
        contains(clients, "<unset>"));
  CHECK_EQ(read_all(root + "1/clients").find('\n') + 1, read_all(root + "1/clients").size());
  CHECK_EQ(access((root + "1/bo_stats").c_str(), F_OK), -1);
  CHECK_ERRNO(open((root + "0/name").c_str(), O_WRONLY), EACCES);
}
