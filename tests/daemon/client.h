/// This is a client of the daemon in a few functions: the wire protocol without a shim.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <vector>

#include "ioctl/abi/request.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"

namespace v3d::daemon::test {

using ioctl::UniqueFd;

struct Answer {
  int error = -1;  ///< -1: the connection ended
  std::vector<uint8_t> payload;
  std::vector<UniqueFd> fds;
};

/// One control connection.
class Client {
 public:
  explicit Client(const std::string& path, bool greet = true)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (!greet) return;
    const wire::HelloRequest hello = {wire::kProtocol, getpid(), "tester"};
    const Answer answer = ask(wire::kHello, &hello, sizeof hello);
    EXPECT_EQ(answer.error, 0);
    EXPECT_EQ(answer.payload.size(), sizeof(wire::HelloReply));
  }

  /// One that is connected already, without greeting.
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  void disconnect() { socket_.reset(); }
  /// Hangs up, and returns when the daemon has closed its end.
  void leave() {
    char byte;
    shutdown(socket_.get(), SHUT_WR);
    EXPECT_EQ(recv(socket_.get(), &byte, 1, 0), 0);
    disconnect();
  }

  bool tell(uint32_t op, const void* payload, size_t bytes, const std::vector<int>& fds = {}) {
    const wire::MessageHeader header = {wire::kMagic, op, static_cast<uint32_t>(bytes), 0};
    iovec parts[] = {{const_cast<wire::MessageHeader*>(&header), sizeof header},
                     {const_cast<void*>(payload), bytes}};
    alignas(cmsghdr) char control[CMSG_SPACE(32 * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
    }
    return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof header + bytes);
  }

  Answer hear(uint32_t op) {
    Answer answer;
    wire::MessageHeader header;
    if (!read_all(&header, sizeof header, &answer)) return answer;
    EXPECT_EQ(header.magic, wire::kMagic);
    EXPECT_EQ(header.op, op);
    answer.payload.resize(header.size);
    if (!read_all(answer.payload.data(), header.size, &answer)) return answer;
    answer.error = header.error;
    return answer;
  }

  Answer ask(uint32_t op, const void* payload, size_t bytes, const std::vector<int>& fds = {}) {
    if (!tell(op, payload, bytes, fds)) return {};
    return hear(op);
  }

  /// @param status  receives the descriptor of its wire::Status
  /// @return the DRM descriptor
  UniqueFd open(uint32_t minor, uint64_t* token, int flags = O_RDWR | O_CLOEXEC, UniqueFd* status = nullptr) {
    const wire::OpenRequest request = {minor, flags};
    Answer answer = ask(wire::kOpen, &request, sizeof request);
    wire::FileReply file = {};
    if (answer.payload.size() == sizeof file) std::memcpy(&file, answer.payload.data(), sizeof file);
    *token = file.token;
    if (status && answer.fds.size() == 2) *status = std::move(answer.fds[1]);
    return answer.fds.empty() ? UniqueFd() : std::move(answer.fds[0]);
  }

  struct InSegment {
    uint64_t address;
    std::vector<uint8_t> bytes;
  };

  static std::vector<uint8_t> ioctl_payload(uint64_t token, uint32_t request, const void* arg,
                                            const std::vector<InSegment>& segments = {},
                                            const std::vector<int>& fds = {}) {
    wire::IoctlRequest header = {};
    header.token = token;
    header.request = request;
    header.arg_size = ioctl::drm::request_size(request);
    header.num_segments = static_cast<uint32_t>(segments.size());
    header.num_fds = static_cast<uint32_t>(fds.size());
    std::copy(fds.begin(), fds.end(), header.fd_numbers);
    std::vector<uint8_t> payload(sizeof header + header.arg_size);
    std::memcpy(payload.data(), &header, sizeof header);
    if (header.arg_size) std::memcpy(payload.data() + sizeof header, arg, header.arg_size);
    for (const InSegment& segment : segments) {
      const wire::Segment s = {segment.address, static_cast<uint32_t>(segment.bytes.size()), wire::kIn};
      const auto* bytes = reinterpret_cast<const uint8_t*>(&s);
      payload.insert(payload.end(), bytes, bytes + sizeof s);
      payload.insert(payload.end(), segment.bytes.begin(), segment.bytes.end());
    }
    return payload;
  }

  /// A DRM ioctl whose argument is copied back. @param given  receives a descriptor that came with the reply
  template <typename T>
  int ioctl(uint64_t token, uint32_t request, T& arg, const std::vector<InSegment>& segments = {},
            const std::vector<int>& fds = {}, UniqueFd* given = nullptr) {
    const std::vector<uint8_t> payload = ioctl_payload(token, request, &arg, segments, fds);
    Answer answer = ask(wire::kIoctl, payload.data(), payload.size(), fds);
    wire::IoctlReply reply = {};
    if (answer.payload.size() < sizeof reply) return answer.error;
    std::memcpy(&reply, answer.payload.data(), sizeof reply);
    EXPECT_GE(answer.payload.size(), sizeof reply + reply.arg_size);
    std::memcpy(&arg, answer.payload.data() + sizeof reply, std::min<size_t>(sizeof arg, reply.arg_size));
    if (given && !answer.fds.empty()) *given = std::move(answer.fds[0]);
    return answer.error;
  }

  Answer mmap(uint64_t token, uint64_t offset, uint64_t length, int flags) {
    const wire::MmapRequest request = {token, offset, length, 3, flags, {}};
    return ask(wire::kMmap, &request, sizeof request);
  }

  std::string command(const std::string& text, int* error = nullptr) {
    const Answer answer = ask(wire::kCommand, text.data(), text.size());
    if (error) *error = answer.error;
    return std::string(answer.payload.begin(), answer.payload.end());
  }

 private:
  bool read_all(void* to, size_t bytes, Answer* answer) {
    auto* at = static_cast<uint8_t*>(to);
    while (bytes > 0) {
      alignas(cmsghdr) char control[CMSG_SPACE(32 * sizeof(int))];
      iovec part = {at, bytes};
      msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t got = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) return false;
      for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
          int fd;
          std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
          answer->fds.emplace_back(fd);
        }
      }
      at += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

  UniqueFd socket_;
};

}  // namespace v3d::daemon::test
