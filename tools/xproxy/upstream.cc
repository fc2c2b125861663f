#include "tools/xproxy/upstream.h"

#include <X11/X.h>
#include <X11/Xauth.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xcb/xcb.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace v3d::xproxy {
namespace {

constexpr int kFirstPort = 6000;
constexpr char kCookie[] = "MIT-MAGIC-COOKIE-1";

/// @param path  abstract if it begins with a zero
ioctl::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return {};
  std::copy(path.begin(), path.end(), address.sun_path);
  ioctl::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return socket;
}

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : std::string();
}

/// As authority files name the host at the other end: a family and an address, which for this host is its
/// name.
std::pair<uint16_t, std::string> authority_of(const ioctl::UniqueFd& connection) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &size);
  const auto bytes = [](const auto& address) {
    return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
  };
  if (peer.ss_family == AF_INET) {
    const in_addr address = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    if (address.s_addr != htonl(INADDR_LOOPBACK)) return {FamilyInternet, bytes(address)};
  }
  if (peer.ss_family == AF_INET6) {
    const in6_addr address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    if (!IN6_IS_ADDR_LOOPBACK(&address)) return {FamilyInternet6, bytes(address)};
  }
  return {FamilyLocal, this_host()};
}

}  // namespace

bool Upstream::parse(const std::string& display) {
  char* host = nullptr;
  int screen = 0;
  if (!xcb_parse_display(display.c_str(), &host, &number_, &screen)) return false;
  host_ = host;
  free(host);
  if (host_ == "unix") host_.clear();
  return true;
}

ioctl::UniqueFd Upstream::connect_locally() const {
  const std::string path = "/tmp/.X11-unix/X" + std::to_string(number_);
  ioctl::UniqueFd socket = connect_to(std::string(1, '\0') + path);
  return socket ? std::move(socket) : connect_to(path);
}

ioctl::UniqueFd Upstream::connect_by_tcp() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host_.c_str(), std::to_string(kFirstPort + number_).c_str(), &hints, &found) != 0)
    return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    ioctl::UniqueFd socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return socket;
  }
  return {};
}

ioctl::UniqueFd Upstream::connect() const {
  ioctl::UniqueFd socket = host_.empty() ? connect_locally() : connect_by_tcp();
  if (socket) fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

Message Upstream::greeting(const Greeting& client, const ioctl::UniqueFd& connection) const {
  const auto [family, name] = authority_of(connection);
  const std::string number = std::to_string(number_);
  const std::unique_ptr<Xauth, decltype(&XauDisposeAuth)> entry(
      XauGetAuthByAddr(family, static_cast<uint16_t>(name.size()), name.data(),
                       static_cast<uint16_t>(number.size()), number.c_str(), strlen(kCookie), kCookie),
      XauDisposeAuth);
  const std::string kind = entry ? std::string(entry->name, entry->name_length) : std::string();
  const std::string data = entry ? std::string(entry->data, entry->data_length) : std::string();
  Message message(client.order, 12 + padded(kind.size()) + padded(data.size()));
  message.u8(0, client.order == Order::kLittle ? 'l' : 'B').u16(2, client.major).u16(4, client.minor);
  message.u16(6, static_cast<uint16_t>(kind.size())).u16(8, static_cast<uint16_t>(data.size()));
  size_t at = 12;
  for (const std::string& part : {kind, data}) {
    for (size_t i = 0; i < part.size(); ++i) message.u8(at + i, static_cast<uint8_t>(part[i]));
    at += padded(part.size());
  }
  return message;
}

}  // namespace v3d::xproxy
