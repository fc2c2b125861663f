/// Input: {u8 order}, then repeated {u8 descriptor, u16 size, bytes}: what a client of v3demu-x11 sends
/// behind its greeting, in pieces, with a descriptor of a kind that requests take or of another one. DRI3 has
/// the opcode 255 here, Present 254.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "ioctl/base/unique_fd.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/x_server.h"
#include "tools/xproxy/client.h"
#include "tools/xproxy/presenter.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/server.h"
#include "tools/xproxy/upstream.h"

namespace v3d::fuzz {
namespace {

constexpr off_t kBufferBytes = 1 << 16;

/// What all clients of a proxy share; one for all inputs.
struct Proxy {
  Proxy() : presenter(*server, xproxy::Clock(0, xproxy::monotonic_ns()), [](int) {}) {}

  XServer display;
  std::string error;
  std::unique_ptr<xproxy::Server> server = xproxy::Server::connect(display.display(), &error);
  xproxy::Upstream upstream = [this] {
    xproxy::Upstream parsed;
    if (!server || !parsed.parse(display.display())) std::abort();
    return parsed;
  }();
  xproxy::Presenter presenter;
  xproxy::Resources resources;
  xproxy::Context context{upstream, *server, presenter, resources};
};

ioctl::UniqueFd make_descriptor(uint8_t kind) {
  if (kind % 4 == 0) return {};
  if (kind % 4 == 3) return ioctl::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ioctl::UniqueFd memory(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool is_buffer = kind % 4 == 1;
  if (ftruncate(memory.get(), is_buffer ? kBufferBytes : 4096) != 0) return {};
  if (is_buffer) fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return memory;
}

void send_piece(int socket, Bytes piece, const ioctl::UniqueFd& descriptor) {
  if (piece.empty()) return;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part = {const_cast<uint8_t*>(piece.data()), piece.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    const int fd = descriptor.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// As the proxy's loop, until nothing comes for a moment. False: the client is done with.
bool relay(Proxy& proxy, xproxy::Client& client, int peer) {
  constexpr int kMostTurns = 16, kPatienceMs = 1;
  for (int turn = 0; turn < kMostTurns && !client.is_finished(); ++turn) {
    pollfd ready[] = {{client.client_fd(), static_cast<short>(client.wants_client_input() ? POLLIN : 0), 0},
                      {client.server_fd(), static_cast<short>(client.wants_server_input() ? POLLIN : 0), 0},
                      {proxy.server->fd(), POLLIN, 0}};
    const int events = poll(ready, std::size(ready), kPatienceMs);
    if (ready[0].revents) client.read_client();
    if (client.server_fd() >= 0 && ready[1].revents) client.read_server();
    proxy.server->process({[&](const xcb_configure_notify_event_t&) {}, [](xcb_window_t) {}});
    client.relay();
    proxy.presenter.step();
    proxy.server->process({[&](const xcb_configure_notify_event_t&) {}, [](xcb_window_t) {}});
    client.relay();
    char heard[4096];
    while (recv(peer, heard, sizeof heard, MSG_DONTWAIT) > 0) continue;
    if (events == 0) break;
  }
  return !client.is_finished();
}

}  // namespace

void x_requests(Bytes bytes) {
  static Proxy proxy;
  Input input(bytes);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  const ioctl::UniqueFd peer(ends[0]);
  xproxy::Client client(proxy.context, ioctl::UniqueFd(ends[1]));
  const bool little = input.take<uint8_t>() % 2 == 0;
  const uint8_t greeting[12] = {static_cast<uint8_t>(little ? 'l' : 'B'), 0,
                                static_cast<uint8_t>(little ? 11 : 0), static_cast<uint8_t>(little ? 0 : 11)};
  send_piece(peer.get(), greeting, {});
  bool goes_on = relay(proxy, client, peer.get());
  for (int pieces = 0; goes_on && pieces < 16 && !input.empty(); ++pieces) {
    const ioctl::UniqueFd descriptor = make_descriptor(input.take<uint8_t>());
    const auto size = input.take<uint16_t>();
    send_piece(peer.get(), input.take_bytes(size % 4096), descriptor);
    goes_on = relay(proxy, client, peer.get());
  }
}

}  // namespace v3d::fuzz
