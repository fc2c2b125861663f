/// Messages of wire.h on a control socket.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ioctl/unique_fd.h"
#include "ioctl/wire.h"

namespace v3d::daemon {

struct Request {
  wire::MessageHeader header;
  std::span<const uint8_t> payload;  ///< valid until the next receive
  std::vector<ioctl::UniqueFd> fds;
};

struct Reply {
  int error = 0;
  std::vector<uint8_t> payload;
  std::vector<ioctl::UniqueFd> fds;

  template <typename T>
  void append(const T& value) {
    append(&value, sizeof(T));
  }
  void append(const void* from, size_t bytes) {
    payload.resize(payload.size() + bytes);
    if (bytes) std::memcpy(payload.data() + payload.size() - bytes, from, bytes);
  }
};

/// Not synchronised: one thread serves one connection.
class MessageSocket {
 public:
  /// Owns neither. @param process  pidfd of the client, or -1
  explicit MessageSocket(int socket, int process = -1) : socket_(socket), process_(process) {}

  /// Blocks for the next request. False when the connection is over, its bytes are no request, or the client
  /// died in the middle of one.
  bool receive(Request* request);
  bool send(uint32_t op, const Reply& reply);

 private:
  /// Blocks until more of a request has come. False when the client is dead.
  bool wait_for_more() const;

  const int socket_, process_;
  std::vector<uint8_t> buffer_;  // header and payload
};

/// Takes values off the front of a payload.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// False, and nothing is taken, when fewer bytes are left.
  template <typename T>
  bool read(T* value) {
    std::span<const uint8_t> bytes;
    if (!take(sizeof(T), &bytes)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return true;
  }
  bool take(uint64_t count, std::span<const uint8_t>* bytes) {
    if (count > bytes_.size()) return false;
    *bytes = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return true;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace v3d::daemon
