/// Input of wire: repeated {u8 op, u8 flags, u16 size, payload}; a client greets, opens a render node and
/// sends them; with bit 3 of flags through a channel, whose words the next byte sets. Input of framing:
/// repeated {u8 descriptors, u16 size, bytes}: pieces of requests as they come in. Descriptors keep pieces
/// apart on their way. The bytes "TTTTTTTT" become the token of the client's node.
#include "ioctl/link/wire.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "daemon/gpus.h"
#include "daemon/server.h"
#include "daemon/session.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

namespace protocol = ::v3d::wire;  // fuzz::wire is the target

/// One client of a server whose accept loop does not run.
class Client {
 public:
  Client() : server_(gpu(), options()) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    ours_ = ioctl::UniqueFd(ends[0]);
    theirs_ = ioctl::UniqueFd(ends[1]);
    session_ = std::thread([this] {
      daemon::Session(server_, theirs_.get(), self()).run();
      shutdown(theirs_.get(), SHUT_RDWR);
    });
  }
  ~Client() {
    shutdown(ours_.get(), SHUT_RDWR);  // ends waits too
    session_.join();
    if (channel_) munmap(channel_, sizeof *channel_);
  }

  /// False when the connection is over.
  bool tell(uint32_t op, Bytes payload, uint32_t claimed_size, uint32_t magic = protocol::kMagic) {
    const protocol::MessageHeader header = {magic, op, claimed_size, 0};
    return send_all(&header, sizeof header) && send_all(payload.data(), payload.size());
  }
  /// The reply's payload; descriptors are dropped. False when none comes soon.
  bool hear(std::vector<uint8_t>* payload, int patience_ms = 20) {
    if (!wait_for_input(patience_ms)) return false;
    protocol::MessageHeader header;
    if (!receive_all(&header, sizeof header)) return false;
    if (header.magic != protocol::kMagic) std::abort();
    payload->resize(header.size);
    return receive_all(payload->data(), header.size);
  }
  /// A piece with so many descriptors of the connection itself. False when the connection is over.
  bool tell_piece(Bytes piece, size_t descriptors) {
    if (piece.empty()) return true;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
    iovec part = {const_cast<uint8_t*>(piece.data()), piece.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptors > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      *header = {CMSG_LEN(sizeof(int) * descriptors), SOL_SOCKET, SCM_RIGHTS};
      const int fd = ours_.get();
      for (size_t i = 0; i < descriptors; ++i) std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
    return sendmsg(ours_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(piece.size());
  }
  /// Takes what there is to hear.
  void hear_all() {
    char some[4096];
    while (recv(ours_.get(), some, sizeof some, MSG_DONTWAIT) > 0) {
    }
  }
  static constexpr size_t kMostDescriptors = 20;

  /// The channel of the connection; null when there is none.
  protocol::Channel* channel() {
    if (channel_) return channel_;
    const protocol::MessageHeader header = {protocol::kMagic, protocol::kChannel, 0, 0};
    struct {
      protocol::MessageHeader header;
      protocol::ChannelReply channel;
    } reply = {};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {&reply, sizeof reply};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (!send_all(&header, sizeof header) || !wait_for_input(10000) ||
        recvmsg(ours_.get(), &message, MSG_CMSG_CLOEXEC) < 0 || !CMSG_FIRSTHDR(&message))
      return nullptr;
    ioctl::UniqueFd memfd;
    int fd;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    memfd.reset(fd);
    void* memory = mmap(nullptr, sizeof(protocol::Channel), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return nullptr;
    return channel_ = static_cast<protocol::Channel*>(memory);
  }
  /// Leaves a message there, sets both words, and makes a request over the socket, upon which the daemon
  /// looks.
  bool post(uint32_t op, Bytes payload, uint32_t claimed_size, uint8_t words) {
    protocol::Channel* place = channel();
    if (!place) return false;
    const protocol::MessageHeader header = {protocol::kMagic, op, claimed_size, 0};
    std::memcpy(place->request_message, &header, sizeof header);
    if (!payload.empty()) std::memcpy(place->request_message + sizeof header, payload.data(), payload.size());
    std::atomic_ref<uint32_t>(place->reply).store(words >> 4);
    std::atomic_ref<uint32_t>(place->request).store(words & 15 ? words & 15u : uint32_t{protocol::kPosted});
    std::vector<uint8_t> reply;
    if (!tell(protocol::kAdopt, {}, 0) || !hear(&reply)) return false;
    for (int i = 0; i < 100 && std::atomic_ref<uint32_t>(place->reply).load() == protocol::kNoReply; ++i)
      usleep(50);
    hear_all();
    return true;
  }

  template <typename Reply, typename Request>
  Reply ask(uint32_t op, const Request& request) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&request);
    std::vector<uint8_t> payload;
    Reply reply;
    if (!tell(op, {bytes, sizeof request}, sizeof request)) std::abort();
    if (!hear(&payload, 10000) || payload.size() != sizeof reply) std::abort();
    std::memcpy(&reply, payload.data(), sizeof reply);
    return reply;
  }

  /// Greets and opens the render node.
  uint64_t open_node() {
    ask<protocol::HelloReply>(protocol::kHello,
                              protocol::HelloRequest{protocol::kProtocol, getpid(), "fuzz"});
    return ask<protocol::FileReply>(protocol::kOpen, protocol::OpenRequest{128, 2}).token;
  }

 private:
  daemon::Peer self() {
    ioctl::Resource scarce;
    const auto account = server_.kernel().budget().admit({getpid(), 1}, "fuzzer", &scarce);
    if (!account) std::abort();
    return {getpid(), "fuzzer", false, {}, std::make_shared<ioctl::UniqueFd>(), account};
  }
  static daemon::Server::Options options() {
    daemon::Server::Options options;
    options.channel_server = {.close_ns = int64_t{1} << 60, .patience_ns = 200'000};
    return options;
  }
  static ioctl::Gpu& gpu() {
    static const auto gpu = daemon::make_idle_gpu({});
    return *gpu;
  }
  // libFuzzer's alarm interrupts both.
  bool wait_for_input(int patience_ms) {
    pollfd wait = {ours_.get(), POLLIN, 0};
    int ready;
    while ((ready = poll(&wait, 1, patience_ms)) < 0 && errno == EINTR) {
    }
    return ready > 0;
  }
  bool receive_all(void* to, size_t bytes) {
    for (size_t have = 0; have < bytes;) {
      const ssize_t got = recv(ours_.get(), static_cast<char*>(to) + have, bytes - have, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      have += static_cast<size_t>(got);
    }
    return true;
  }
  bool send_all(const void* from, size_t bytes) {
    return bytes == 0 || send(ours_.get(), from, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }

  daemon::Server server_;
  ioctl::UniqueFd ours_, theirs_;
  std::thread session_;
  protocol::Channel* channel_ = nullptr;
};

}  // namespace

void wire(Bytes bytes) {
  Client client;
  const auto token = client.open_node();
  Input input(bytes);
  for (int messages = 0; messages < 8 && !input.empty(); ++messages) {
    const auto op = input.take<uint8_t>(), flags = input.take<uint8_t>();
    const auto size = input.take<uint16_t>();
    const Bytes given = input.take_bytes(size % 4096);
    std::vector<uint8_t> payload(given.begin(), given.end());
    if ((flags & 1) && payload.size() >= sizeof token) std::memcpy(payload.data(), &token, sizeof token);
    const bool honest = !(flags & 2);
    if (flags & 8) {
      const auto words = input.take<uint8_t>();
      const auto claimed = honest ? static_cast<uint32_t>(payload.size()) : input.take<uint32_t>();
      if (!client.post(op % 10, payload, claimed, words)) return;
      continue;
    }
    const uint32_t claimed = honest ? static_cast<uint32_t>(payload.size()) : input.take<uint32_t>();
    if (!client.tell(op % 10, payload, claimed, flags & 4 ? op : protocol::kMagic)) return;
    std::vector<uint8_t> reply;
    if (!client.hear(&reply)) return;
  }
}

void framing(Bytes bytes) {
  Client client;
  const auto token = client.open_node();
  Input input(bytes);
  for (int pieces = 0; pieces < 16 && !input.empty(); ++pieces) {
    const size_t descriptors = input.take<uint8_t>() % (Client::kMostDescriptors + 1);
    const Bytes given = input.take_bytes(input.take<uint16_t>() % 4096);
    std::vector<uint8_t> piece(given.begin(), given.end());
    constexpr char kPlace[] = "TTTTTTTT";
    for (auto at = piece.begin(); (at = std::search(at, piece.end(), kPlace, kPlace + 8)) != piece.end();
         at += 8)
      std::memcpy(&*at, &token, sizeof token);
    if (!client.tell_piece(piece, descriptors)) return;
    client.hear_all();
  }
}

}  // namespace v3d::fuzz
