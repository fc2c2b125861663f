/// These functions send and receive the messages of wire.h on a control socket.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ioctl/base/account.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"

namespace v3d::daemon {

/// Longest payload of a request that is kept. Requests of drivers have some kilobytes; the longest that mean
/// something name 2^19 handles (ioctl/core/call.h). ioctls that bring no arrays, and all else, have 64 KiB.
inline constexpr uint32_t kMaxArrayPayload = 8 << 20, kMaxPlainPayload = 64 << 10;

struct Request {
  wire::MessageHeader header{};
  /// Why it was not kept but only taken off the socket, ENOMEM or EMFILE; payload and fds are empty then.
  int error = 0;
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

/// Pages of the host, given back to it at once when they are freed: the allocator would keep them in the
/// arena of each thread.
class PageBuffer {
 public:
  PageBuffer() = default;
  ~PageBuffer() { shrink(0); }
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;

  size_t size() const { return size_; }
  std::span<uint8_t> bytes() const { return {data_, size_}; }
  /// Larger, with what it holds. False when the host has none left.
  bool grow(size_t size);
  /// Gives back what lies beyond; takes nothing from the host. @param size  whole pages
  void shrink(size_t size);

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Not synchronised: one thread serves one connection.
class MessageSocket {
 public:
  /// Owns none of them. @param process  pidfd of the client, or -1
  /// @param account  is charged for bytes and descriptors of a request as they come, until the next one; the
  /// first kFreeBuffer bytes are the connection's own. Throws std::bad_alloc.
  MessageSocket(int socket, int process, ioctl::Account& account);

  static constexpr size_t kFreeBuffer = 16 << 10;

  /// Blocks for the next request. False when the connection is over, its bytes are no request, or the client
  /// died in the middle of one.
  bool receive(Request* request);
  bool send(uint32_t op, const Reply& reply);

 private:
  /// Blocks until more of a request has come. False when the client is dead.
  bool wait_for_more() const;
  /// Forgets the last request and what it cost.
  void forget();
  /// Makes the buffer larger, up to `want` bytes. 0 or ENOMEM.
  int grow(size_t want);
  /// Charges descriptors that came. 0 or EMFILE.
  int keep_descriptors(const std::vector<ioctl::UniqueFd>& fds);

  const int socket_, process_;
  ioctl::Charge bytes_, descriptors_;
  PageBuffer buffer_;  // header and payload
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
