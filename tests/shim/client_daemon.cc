/// The daemon: starting it, losing it, and what reaches it of every ioctl that carries pointers (fake_daemon
/// writes its journal; the test compares).

#include <drm.h>
#include <drm_mode.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/shim/client.h"

using namespace client;

namespace {

/// GEM_CLOSE of this handle ends fake_daemon without a reply.
constexpr uint32_t kDeadlyHandle = 0xdead;

struct Submit {
  uint8_t bytes[176];
  Submit() { memset(bytes, 0, sizeof(bytes)); }
  Submit& u32(size_t offset, uint32_t value) { return put(offset, &value, 4); }
  Submit& ptr(size_t offset, const void* value) { return put(offset, &value, 8); }
  Submit& put(size_t offset, const void* data, size_t size) {
    memcpy(bytes + offset, data, size);
    return *this;
  }
};

/// An extension of a submit: u64 next, u32 id.
struct Extension {
  alignas(8) uint8_t bytes[128];
  Extension(const void* next, uint32_t id) {
    memset(bytes, 0, sizeof(bytes));
    ptr(0, next).u32(8, id);
  }
  Extension& u32(size_t offset, uint32_t value) {
    memcpy(bytes + offset, &value, 4);
    return *this;
  }
  Extension& ptr(size_t offset, const void* value) {
    memcpy(bytes + offset, &value, 8);
    return *this;
  }
};

/// A process that answers a Wayland client's first questions with one global.
pid_t serve_wayland(const std::string& path, const std::string& interface) {
  int ready[2];
  CHECK_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child > 0) {
    char byte;
    close(ready[1]);
    CHECK_EQ(read(ready[0], &byte, 1), ssize_t{1});
    close(ready[0]);
    return child;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size());
  unlink(path.c_str());
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 4) != 0)
    _exit(1);
  if (write(ready[1], "r", 1) != 1) _exit(1);
  for (;;) {
    int connection = accept(listener, nullptr, nullptr);
    uint32_t requests[6];
    if (read(connection, requests, sizeof(requests)) != sizeof(requests)) _exit(1);
    std::string text = interface;
    uint32_t length = static_cast<uint32_t>(text.size()) + 1;
    text.resize((length + 3) / 4 * 4);
    const uint32_t size = static_cast<uint32_t>(8 + 8 + text.size() + 4);
    uint32_t global[] = {requests[2], size << 16, 7, length};
    uint32_t version = 4, done[] = {requests[5], 12 << 16, 1};
    std::string bytes(reinterpret_cast<char*>(global), sizeof(global));
    bytes += text;
    bytes.append(reinterpret_cast<char*>(&version), 4).append(reinterpret_cast<char*>(done), sizeof(done));
    // In two pieces, with a pause between: it has a frame to draw.
    if (write(connection, bytes.data(), 10) != 10) _exit(1);
    usleep(800'000);
    if (write(connection, bytes.data() + 10, bytes.size() - 10) < 0) _exit(1);
    close(connection);
  }
}

void mark(const char* name) {
  // An ioctl that the journal shows and nothing else does.
  int fd = open_render();
  char text[40] = {};
  stpncpy(text, name, sizeof(text) - 1);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x9e, sizeof(text)), text);
  close(fd);
}

}  // namespace

SCENARIO(starts_and_works) { CHECK_EQ(driver_name(open_render()), "v3d"); }

SCENARIO(writes_only_where_asked) {
  int fd = open_render();
  uint64_t kept = 0x0123456789abcdef;
  uint64_t argument = reinterpret_cast<uint64_t>(&kept);
  CHECK_ERRNO(ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x9b, sizeof(argument)), &argument), ENODEV);
  CHECK_ERRNO(ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x9c, sizeof(argument)), &argument), EFAULT);
  CHECK_EQ(kept, uint64_t{0x0123456789abcdef});
  const size_t open_before = open_descriptors().size();
  CHECK_ERRNO(ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x9c, sizeof(argument)), &argument), EFAULT);
  CHECK_EQ(open_descriptors().size(), open_before);
}

SCENARIO(cannot_start) {
  for (int i = 0; i < 3; ++i) CHECK_ERRNO(open(kRenderNode, O_RDWR), ENODEV);
  CHECK_EQ(access(kRenderNode, R_OK), 0);
}

SCENARIO(many_start_at_once) {
  pid_t children[8];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      CHECK_EQ(driver_name(open_render()), "v3d");
      _exit(failures() ? 1 : 0);
    }
  }
  for (pid_t child : children) CHECK_EQ(wait_for(child), 0);
}

SCENARIO(daemon_dies) {
  int fd = open_render();
  uint32_t object = create_syncobj(fd);
  std::thread blocked([&] { CHECK_EQ(wait_syncobj(fd, object, INT64_MAX), ENODEV); });
  usleep(50'000);
  CHECK_EQ(close_bo(fd, kDeadlyHandle), ENODEV);
  blocked.join();
  CHECK_EQ(create_bo(fd, 4096), 0u);
  CHECK_EQ(errno, ENODEV);
  CHECK_ERRNO(reinterpret_cast<long>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, off_t{1} << 32)), ENODEV);
  // A new file needs a new daemon, of which the old file is none.
  int again = open_render();
  CHECK(create_bo(again, 4096) != 0);
  CHECK_EQ(create_bo(fd, 4096), 0u);
  CHECK_EQ(errno, ENODEV);
  CHECK(create_bo(again, 4096) != 0);
}

/// No child and no signal of the application's comes from starting the daemon.
SCENARIO(start_is_unseen) {
  static volatile int children = 0;
  signal(SIGCHLD, [](int) { children = children + 1; });
  close(open_render());
  CHECK_EQ(children, 0);
  CHECK_ERRNO(waitpid(-1, nullptr, WNOHANG), ECHILD);
}

SCENARIO(marshalled) {
  int fd = open_render(), card = open("/dev/dri/card1", O_RDWR | O_CLOEXEC);
  uint32_t handles[3] = {0x11, 0x22, 0x33};
  uint64_t points[3] = {0x44, 0x55, 0x66};
  uint8_t sems[2][32] = {{1}, {2}};

  mark("submit_cl");
  Extension sync(nullptr, 1);
  sync.ptr(16, sems).ptr(24, sems + 1).u32(32, 2).u32(36, 1);
  Submit cl;
  cl.ptr(40, handles).u32(48, 3).u32(52, 2).ptr(64, &sync);
  ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 72), cl.bytes);
  mark("submit_cl without extension");
  cl.u32(52, 0);
  ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 72), cl.bytes);
  mark("submit_cl of old size");
  cl.u32(52, 2);
  ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 56), cl.bytes);

  mark("submit_tfu");
  Submit tfu;
  tfu.u32(68, 2).ptr(72, &sync);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x46, 88), tfu.bytes);
  mark("submit_csd");
  Submit csd;
  csd.ptr(48, handles).u32(56, 2);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x47, 88), csd.bytes);

  mark("submit_cpu indirect");
  Extension indirect(&sync, 2);
  indirect.ptr(16 + 48, handles).u32(16 + 56, 3);
  Submit cpu;
  cpu.ptr(0, handles).u32(8, 1).u32(12, 2).ptr(16, &indirect);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.bytes);
  mark("submit_cpu timestamp");
  Extension timestamp(nullptr, 3);
  timestamp.ptr(16, handles).ptr(24, points).u32(32, 2);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &timestamp).bytes);
  mark("submit_cpu reset timestamp");
  Extension reset(nullptr, 4);
  reset.ptr(16, handles).u32(28, 3);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &reset).bytes);
  mark("submit_cpu copy timestamp");
  Extension copy(nullptr, 5);
  copy.u32(28, 1).ptr(32, handles).ptr(40, points);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &copy).bytes);
  mark("submit_cpu reset performance");
  uint32_t monitors[2][2] = {{7, 8}, {9, 10}};
  const void* lists[2] = {monitors[0], monitors[1]};
  Extension performance(nullptr, 6);
  performance.ptr(16, handles).u32(24, 2).u32(28, 2).ptr(32, lists);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &performance).bytes);
  mark("submit_cpu copy performance");
  Extension copy_performance(nullptr, 7);
  copy_performance.u32(28, 2).u32(32, 4).u32(36, 2).ptr(40, handles).ptr(48, lists);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &copy_performance).bytes);
  mark("unknown extension, then nothing");
  Extension unknown(&sync, 99);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &unknown).bytes);
  mark("unreadable list");
  cl.u32(52, 0).ptr(40, reinterpret_cast<void*>(0x1000)).u32(48, 3);
  ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 72), cl.bytes);
  mark("extension loop");
  Extension loop(nullptr, 99);
  loop.ptr(0, &loop);
  ioctl(fd, _IOC(_IOC_WRITE, 'd', 0x4b, 24), cpu.ptr(16, &loop).bytes);

  mark("perfmon values");
  uint64_t values[32] = {};
  Submit perfmon;
  perfmon.u32(0, 1).ptr(8, values);
  CHECK_EQ(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x4a, 16), perfmon.bytes), 0);
  CHECK(values[0] == 0xa5a5a5a5a5a5a5a5 && values[31] == values[0]);

  mark("syncobj reset");
  drm_syncobj_array array{};
  array.handles = reinterpret_cast<uint64_t>(handles);
  array.count_handles = 3;
  ioctl(fd, DRM_IOCTL_SYNCOBJ_RESET, &array);
  mark("syncobj timeline wait");
  drm_syncobj_timeline_wait timeline{};
  timeline.handles = reinterpret_cast<uint64_t>(handles);
  timeline.points = reinterpret_cast<uint64_t>(points);
  timeline.count_handles = 2;
  ioctl(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &timeline);
  mark("syncobj query");
  drm_syncobj_timeline_array query{};
  query.handles = reinterpret_cast<uint64_t>(handles);
  query.points = reinterpret_cast<uint64_t>(points);
  query.count_handles = 2;
  ioctl(fd, DRM_IOCTL_SYNCOBJ_QUERY, &query);
  CHECK(points[0] == 0xa5a5a5a5a5a5a5a5 && points[1] == points[0] && points[2] == 0x66);

  mark("resources");
  uint32_t ids[4] = {};
  drm_mode_card_res resources{};
  resources.crtc_id_ptr = reinterpret_cast<uint64_t>(ids);
  resources.count_crtcs = 2;
  resources.connector_id_ptr = reinterpret_cast<uint64_t>(ids + 2);
  resources.count_connectors = 1;
  CHECK_EQ(ioctl(card, DRM_IOCTL_MODE_GETRESOURCES, &resources), 0);
  CHECK(ids[0] == 0xa5a5a5a5 && ids[1] == ids[0] && ids[2] == ids[0] && ids[3] == 0);
  mark("connector");
  drm_mode_modeinfo modes[2] = {};
  drm_mode_get_connector connector{};
  connector.modes_ptr = reinterpret_cast<uint64_t>(modes);
  connector.count_modes = 2;
  connector.props_ptr = reinterpret_cast<uint64_t>(ids);
  connector.prop_values_ptr = reinterpret_cast<uint64_t>(values);
  connector.count_props = 3;
  ioctl(card, DRM_IOCTL_MODE_GETCONNECTOR, &connector);
  mark("blob");
  drm_mode_create_blob blob{};
  blob.data = reinterpret_cast<uint64_t>("blob data");
  blob.length = 9;
  ioctl(card, DRM_IOCTL_MODE_CREATEPROPBLOB, &blob);
  mark("atomic");
  int pair = memfd_create("no socket", MFD_CLOEXEC);
  uint32_t objects[2] = {31, 32}, counts[2] = {1, 2}, properties[3] = {5, 6, 7};
  int32_t out_fence = -7;
  uint64_t property_values[3] = {static_cast<uint64_t>(card), reinterpret_cast<uint64_t>(&out_fence),
                                 static_cast<uint64_t>(pair)};
  drm_mode_atomic atomic{};
  atomic.count_objs = 2;
  atomic.objs_ptr = reinterpret_cast<uint64_t>(objects);
  atomic.count_props_ptr = reinterpret_cast<uint64_t>(counts);
  atomic.props_ptr = reinterpret_cast<uint64_t>(properties);
  atomic.prop_values_ptr = reinterpret_cast<uint64_t>(property_values);
  ioctl(card, DRM_IOCTL_MODE_ATOMIC, &atomic);
  CHECK_EQ(out_fence, static_cast<int32_t>(0xa5a5a5a5));
  mark("vc4 submit_cl");
  Submit frame;
  frame.ptr(0, "list").ptr(8, "record").ptr(16, points).ptr(24, handles);
  frame.u32(32, 4).u32(36, 6).u32(40, 1).u32(44, 8).u32(48, 2);
  ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 176), frame.bytes);
  mark("vc4 create_shader_bo");
  Submit shader;
  shader.u32(0, 4).ptr(8, "code");
  ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x45, 24), shader.bytes);
  mark("vc4 perfmon values");
  Submit counters;
  counters.ptr(8, values);
  ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x4e, 16), counters.bytes);
  mark("0x47 and 0x4b on vc4 have no lists");
  cl.ptr(40, handles);
  ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x47, 72), cl.bytes);
  ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x4b, 72), cl.bytes);
  mark("end");
}

/// What Mesa is told when it asks how to present: MESA_VK_WSI_DEBUG, which nobody set.
SCENARIO(presentation) {
  auto told = [] { return std::string(getenv("MESA_VK_WSI_DEBUG") ?: "unset"); };
  CHECK_EQ(told(), "unset");  // no display
  setenv("DISPLAY", "remote:0", 1);
  CHECK_EQ(told(), "sw");
  setenv("DISPLAY", ":4711", 1);
  CHECK_EQ(told(), "sw");
  unsetenv("DISPLAY");
  const std::string path = "/tmp/v3demu-test-wayland-" + std::to_string(getpid());
  setenv("WAYLAND_DISPLAY", path.c_str(), 1);
  CHECK_EQ(told(), "sw");  // nobody listens
  // A compositor under the shim, with and without linux-dmabuf; the second has it only as part of a name.
  for (const char* interface : {"zwp_linux_dmabuf_v1", "zwp_linux_dmabuf_v11", "wl_shm"}) {
    pid_t compositor = serve_wayland(path, interface);
    CHECK_EQ(told(), strcmp(interface, "zwp_linux_dmabuf_v1") == 0 ? "unset" : "sw");
    setenv("DISPLAY", ":4711", 1);  // one of two is not enough
    CHECK_EQ(told(), "sw");
    unsetenv("DISPLAY");
    kill(compositor, SIGKILL);
    wait_for(compositor);
  }
  unlink(path.c_str());
  setenv("MESA_VK_WSI_DEBUG", "linear", 1);
  CHECK_EQ(told(), "linear");
}

SCENARIO(native_presentation) {
  setenv("DISPLAY", ":4711", 1);
  CHECK(getenv("MESA_VK_WSI_DEBUG") == nullptr);
}

/// Many descriptors in one reply, and a reply that fails: fake_daemon's 0x9d gives `count` descriptors, then
/// the error.
SCENARIO(descriptors_in_replies) {
  int fd = open_render();
  struct Give {
    uint32_t count, error;
    int32_t fds[16];
  } give{5, 0, {}};
  CHECK_EQ(ioctl(fd, _IOWR('d', 0x9d, Give), &give), 0);
  for (int i = 0; i < 5; ++i) CHECK_EQ(fcntl(give.fds[i], F_GETFD), i % 2 ? FD_CLOEXEC : 0);
  for (int i = 0; i < 5; ++i) close(give.fds[i]);
  const size_t before = open_descriptors().size();
  CHECK_ERRNO(ioctl(fd, _IOWR('d', 0x9d, Give), nullptr), EFAULT);
  // The argument comes back on errors too.
  give = {0, EBUSY, {}};
  CHECK_ERRNO(ioctl(fd, _IOWR('d', 0x9d, Give), &give), EBUSY);
  CHECK_EQ(give.fds[15], 4711);
  CHECK_EQ(open_descriptors().size(), before);
}
