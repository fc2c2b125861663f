#include "tests/fuzz/x_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xcb/xcb.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tools/xproxy/framing.h"
#include "tools/xproxy/wire.h"

namespace v3d::fuzz {
namespace {

using xproxy::Message;
using xproxy::Order;
using xproxy::Reader;

struct Extension {
  std::string_view name;
  uint8_t major;
};
constexpr Extension kExtensions[] = {
    {"BIG-REQUESTS", 133}, {"SYNC", 134}, {"XFIXES", 138}, {"Composite", 142}};
constexpr uint32_t kRoot = 0x100;

/// One connection's requests, in their order.
class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}
  void run() {
    if (!greet()) return;
    std::vector<uint8_t> head(4);
    while (receive(head.data(), head.size()) && answer(head)) continue;
  }

 private:
  bool receive(uint8_t* to, size_t size) {
    for (size_t done = 0; done < size;) {
      const ssize_t got = recv(fd_, to + done, size - done, 0);
      if (got < 0 && errno == EINTR) continue;  // by a fuzzer's alarm
      if (got <= 0) return false;
      done += static_cast<size_t>(got);
    }
    return true;
  }
  bool send_all(const Message& message) {
    const auto bytes = message.bytes();
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool greet() {
    std::vector<uint8_t> head(12);
    if (!receive(head.data(), head.size())) return false;
    order_ = head[0] == 'B' ? Order::kBig : Order::kLittle;
    const Reader fields(head, order_);
    std::vector<uint8_t> rest(xproxy::padded(fields.u16(6)) + xproxy::padded(fields.u16(8)));
    return receive(rest.data(), rest.size()) && send_all(setup());
  }
  /// A screen, and images of 8 and 32 bits.
  Message setup() const {
    constexpr size_t kFixed = 40, kFormats = 16, kScreen = 40;
    Message setup(order_, kFixed + kFormats + kScreen);
    setup.u8(0, 1).u16(2, 11).u16(6, (kFixed - 8 + kFormats + kScreen) / 4);
    setup.u32(12, 0x200000).u32(16, 0x1fffff).u16(26, 0xffff);  // ids, longest request
    setup.u8(28, 1).u8(29, 2).u8(32, 32).u8(33, 32).u8(34, 8).u8(35, 255);
    setup.u8(kFixed, 24).u8(kFixed + 1, 32).u8(kFixed + 2, 32);
    setup.u8(kFixed + 8, 8).u8(kFixed + 9, 8).u8(kFixed + 10, 32);
    setup.u32(kFixed + kFormats, kRoot).u16(kFixed + kFormats + 20, 640).u16(kFixed + kFormats + 22, 480);
    return setup;
  }
  /// False: the connection is over.
  bool answer(const std::vector<uint8_t>& head) {
    const Reader fields(head, order_);
    uint64_t words = fields.u16(2);
    uint64_t taken = 1;
    if (words == 0) {
      std::vector<uint8_t> length(4);
      if (!receive(length.data(), length.size())) return false;
      words = Reader(length, order_).u32(0);
      taken = 2;
    }
    if (words < taken) return false;
    std::vector<uint8_t> body;
    for (uint64_t left = (words - taken) * 4; left > 0;) {
      std::vector<uint8_t> part(std::min<uint64_t>(left, 1 << 16));
      if (!receive(part.data(), part.size())) return false;
      if (body.size() < 256) body.insert(body.end(), part.begin(), part.end());
      left -= part.size();
    }
    ++sequence_;
    return respond(head[0], head[1], Reader(body, order_), body);
  }
  bool respond(uint8_t major, uint8_t minor, const Reader& body, const std::vector<uint8_t>& bytes) {
    Message reply = xproxy::make_reply(order_, sequence_);
    if (major == XCB_GET_INPUT_FOCUS) return send_all(reply.u32(8, kRoot));
    if (major == XCB_QUERY_EXTENSION) return send_all(query(body, bytes, &reply));
    if (major == XCB_LIST_EXTENSIONS) return send_all(list());
    if (major == 133) return send_all(reply.u32(8, 1 << 22));
    if (major == XCB_GET_GEOMETRY && body.u32(0) % 4 != 0)
      return send_all(reply.u8(1, 24).u32(8, kRoot).u16(16, 64).u16(18, 64));
    if (major == XCB_GET_GEOMETRY || major == XCB_GET_IMAGE)
      return send_all(xproxy::make_error(order_, sequence_, {XCB_DRAWABLE, body.u32(0), minor, major}));
    return true;
  }
  Message query(const Reader& body, const std::vector<uint8_t>& bytes, Message* reply) const {
    const size_t size = std::min<size_t>(body.u16(0), bytes.size() < 4 ? 0 : bytes.size() - 4);
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + 4, size);
    for (const Extension& extension : kExtensions)
      if (size > 0 && extension.name == name) reply->u8(8, 1).u8(9, extension.major);
    return *reply;
  }
  Message list() const {
    std::string names;
    for (const Extension& extension : kExtensions) {
      names += static_cast<char>(extension.name.size());
      names += extension.name;
    }
    names.resize(xproxy::padded(names.size()));
    Message reply = xproxy::make_reply(order_, sequence_, static_cast<uint32_t>(names.size() / 4));
    reply.u8(1, std::size(kExtensions));
    for (size_t i = 0; i < names.size(); ++i)
      reply.u8(xproxy::kPacketSize + i, static_cast<uint8_t>(names[i]));
    return reply;
  }

  const int fd_;
  Order order_ = Order::kLittle;
  uint16_t sequence_ = 0;
};

}  // namespace

XServer::XServer() {
  const int number = 100'000 + getpid();
  display_ = ":" + std::to_string(number);
  const std::string path = std::string(1, '\0') + "/tmp/.X11-unix/X" + std::to_string(number);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), 16) != 0)
    std::abort();
  acceptor_ = std::thread([this] { accept_all(); });
}

XServer::~XServer() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  std::unique_lock lock(mutex_);
  for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  closed_.wait(lock, [this] { return open_.empty(); });
}

void XServer::accept_all() {
  while (true) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno == EINTR) continue;
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    std::thread connection([this, fd] {  // of thousands none waits to be joined
      Connection(fd).run();
      const std::lock_guard held(mutex_);
      std::erase(open_, fd);
      close(fd);
      closed_.notify_all();
    });
    connection.detach();
  }
}

}  // namespace v3d::fuzz
