#include "shim/process/presentation.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/un.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <initializer_list>

#include "shim/process/config.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// A connection to a local server; a leading '@' names an abstract socket. Negative: there is none.
int connect_to(const char* socket_path) {
  sockaddr_un address{};
  size_t length = strlen(socket_path);
  if (length >= sizeof(address.sun_path)) return -ENAMETOOLONG;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, socket_path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  int fd = raw::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
  if (fd < 0) return fd;
  int error = raw::connect(fd, reinterpret_cast<sockaddr*>(&address),
                           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  if (error == 0) return fd;
  raw::close(fd);
  return error;
}

/// The process at the other end runs under the shim. Its own memory map is the one place that says so:
/// windows of the emulated GPU can be handed over only to a server that maps buffers through the same daemon,
/// and neither X nor Wayland has a word for that. Where the map may not be read, the server counts as a
/// foreign one.
bool server_has_shim(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (raw::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0) return false;
  Text<32> maps;
  maps.add("/proc/").add(static_cast<uint64_t>(peer.pid)).add("/maps");
  int fd = raw::open(maps.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  // Chunks overlap by the length of the name, lest it lie across two.
  constexpr char kName[] = "/libv3demu.so";
  constexpr size_t kOverlap = sizeof(kName) - 1;
  char chunk[2048];
  size_t kept = 0;
  bool found = false;
  for (long got; !found && (got = raw::read(fd, chunk + kept, sizeof(chunk) - kept)) > 0;) {
    size_t have = kept + static_cast<size_t>(got);
    found = memmem(chunk, have, kName, kOverlap);
    kept = have < kOverlap ? have : kOverlap;
    memmove(chunk, chunk + have - kept, kept);
  }
  raw::close(fd);
  return found;
}

/// While it lives, a server that closes the connection under a request costs that request, not the process:
/// neither xcb nor we may say MSG_NOSIGNAL on somebody's behalf. A SIGPIPE of the program's own stays
/// pending.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t pending;
    sigemptyset(&pending);
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigprocmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const int error = errno;
    constexpr timespec kNow{};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &kNow) < 0 && errno == EINTR) {
      }
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

/// Receives exactly `size` bytes; false at end-of-file or when the server does not answer. One that draws on
/// the emulated GPU may be a second late, on a machine that has much to do several.
bool receive(int socket, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size) {
    pollfd ready{socket, POLLIN, 0};
    timespec patience{10, 0};
    if (raw::call(SYS_ppoll, raw::word(&ready), 1, raw::word(&patience), 0, 0) <= 0) return false;
    long got = raw::read(socket, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

/// Asks a Wayland compositor for its globals. Wire format: u32 object, u16 opcode, u16 size, arguments.
bool compositor_has_dmabuf(int socket) {
  constexpr uint32_t kDisplay = 1, kRegistry = 2, kCallback = 3;
  const uint32_t requests[] = {kDisplay, 12 << 16 | 1, kRegistry,   // wl_display.get_registry
                               kDisplay, 12 << 16 | 0, kCallback};  // wl_display.sync
  if (raw::write(socket, requests, sizeof(requests)) != sizeof(requests)) return false;
  constexpr char kInterface[] = "zwp_linux_dmabuf_v1";
  bool found = false;
  for (;;) {
    uint32_t header[2];
    char body[4096];
    if (!receive(socket, header, sizeof(header))) return false;
    size_t size = header[1] >> 16;
    if (size < sizeof(header) || size - sizeof(header) > sizeof(body)) return false;
    size -= sizeof(header);
    if (!receive(socket, body, size)) return false;
    if (header[0] == kCallback) return found;
    // wl_registry.global: u32 name, string (u32 length with its zero, text), u32 version
    if (header[0] == kRegistry && size >= 8 + sizeof(kInterface)) {
      found |= memcmp(body + 8, kInterface, sizeof(kInterface)) == 0;
    }
  }
}

/// A connection to a local display's server: ":1", ":1.0", "unix:1". Negative: there is none.
int connect_to_display(const char* display) {
  const char* colon = strrchr(display, ':');
  if (!colon || !(colon == display || strncmp(display, "unix:", 5) == 0)) return -ENOENT;
  int socket = -ENOENT;
  for (const char* prefix : {"@/tmp/.X11-unix/X", "/tmp/.X11-unix/X"}) {
    Text<108> path;
    path.add(prefix).add(colon + 1, strspn(colon + 1, "0123456789"));
    if (socket = connect_to(path.c_str()); socket >= 0) break;
  }
  return socket;
}

enum class Dri3 { kUnknown, kAbsent, kPresent };

/// Asks the X server of $DISPLAY once. Through the client library, which knows about authority files.
Dri3 ask_once_for_dri3(void* xcb) {
  struct ExtensionCookie {
    unsigned sequence;
  };
  struct ExtensionReply {  // xcb_query_extension_reply_t
    uint8_t response_type, pad0;
    uint16_t sequence;
    uint32_t length;
    uint8_t present, major_opcode, first_event, first_error;
  };
  auto connect = reinterpret_cast<void* (*)(const char*, int*)>(dlsym(xcb, "xcb_connect"));
  auto has_error = reinterpret_cast<int (*)(void*)>(dlsym(xcb, "xcb_connection_has_error"));
  auto disconnect = reinterpret_cast<void (*)(void*)>(dlsym(xcb, "xcb_disconnect"));
  auto ask =
      reinterpret_cast<ExtensionCookie (*)(void*, uint16_t, const char*)>(dlsym(xcb, "xcb_query_extension"));
  auto answer = reinterpret_cast<ExtensionReply* (*)(void*, ExtensionCookie, void**)>(
      dlsym(xcb, "xcb_query_extension_reply"));
  Dri3 found = Dri3::kUnknown;
  if (connect && has_error && disconnect && ask && answer) {
    void* connection = connect(nullptr, nullptr);
    if (!has_error(connection)) {
      ExtensionReply* reply = answer(connection, ask(connection, 4, "DRI3"), nullptr);
      if (reply) found = reply->present ? Dri3::kPresent : Dri3::kAbsent;
      free(reply);
    }
    disconnect(connection);
  }
  return found;
}

/// kUnknown: the server does not answer, or nobody may ask. One that starts anew after its last client
/// refuses the next one meanwhile: it is asked again, as long as it lets others connect.
Dri3 ask_for_dri3(const char* display, bool load) {
  constexpr int kTries = 50;
  constexpr long kPauseMs = 20;
  void* xcb = dlopen("libxcb.so.1", RTLD_LAZY | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD));
  if (!xcb) return Dri3::kUnknown;
  Dri3 found = ask_once_for_dri3(xcb);
  for (int n = 1; n < kTries && found == Dri3::kUnknown; ++n) {
    const int socket = connect_to_display(display);
    if (socket < 0) break;
    raw::close(socket);
    raw::sleep_ms(kPauseMs);
    found = ask_once_for_dri3(xcb);
  }
  dlclose(xcb);
  return found;
}

bool x_server_has_shim(const char* display) {
  const int socket = connect_to_display(display);
  if (socket < 0) return false;
  const bool shim = server_has_shim(socket);
  raw::close(socket);
  return shim;
}

bool x_server_takes_buffers(const char* display, bool load) {
  return x_server_has_shim(display) && ask_for_dri3(display, load) == Dri3::kPresent;
}

bool compositor_takes_buffers(const char* display) {
  Text<108> path;
  if (display[0] != '/') {
    const char* folder = environment_variable("XDG_RUNTIME_DIR");
    if (!folder) return false;
    path.add(folder).add('/');
  }
  path.add(display);
  int socket = path.overflowed() ? -ENAMETOOLONG : connect_to(path.c_str());
  if (socket < 0) return false;
  bool takes = server_has_shim(socket) && compositor_has_dmabuf(socket);
  raw::close(socket);
  return takes;
}

}  // namespace

bool needs_software_presentation(bool load) {
  const WithoutSigpipe guard;
  const char* wayland = environment_variable("WAYLAND_DISPLAY");
  const char* x = environment_variable("DISPLAY");
  if (wayland && *wayland && !compositor_takes_buffers(wayland)) return true;
  return x && *x && !x_server_takes_buffers(x, load);
}

bool x_display_lacks_dri3() {
  const WithoutSigpipe guard;
  const char* display = environment_variable("DISPLAY");
  if (!display || !*display) return false;
  const Dri3 found = ask_for_dri3(display, true);
  return found != Dri3::kUnknown && !(found == Dri3::kPresent && x_server_has_shim(display));
}

}  // namespace v3d::shim
