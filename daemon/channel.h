/// A Channel is the daemon's side of a wire::Channel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/message.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

/// The client may write there what it likes at any time: words are compared, messages are copied once.
class Channel {
 public:
  /// @param memfd  for the client. Null when the host has no memory, mappings or descriptors left
  static std::unique_ptr<Channel> create(ioctl::UniqueFd* memfd);
  static uint64_t bytes();
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// From now on somebody looks at is_posted() often.
  void listen() const;
  /// Not any more. False, and nothing has changed, when something is posted.
  bool turn_away() const;
  bool is_posted() const;
  /// Says where the thread runs that looks.
  void say_cpu(uint32_t cpu) const;
  /// Whether the client has made a request over the socket since the last call.
  bool went_to_socket() const;
  /// Where the client ran when it made the last request.
  uint32_t client_cpu() const;

  /// Copies what is posted, and listens again: the client posts nothing before it has its reply.
  /// @param bytes  what request->payload shows. Of nonsense the request is empty; false when nothing is
  /// posted
  bool take(std::vector<uint8_t>* bytes, Request* request) const;
  /// Whether the client will wake sleepers itself, at most wire::Channel::kMostWakes.
  bool wakes_itself() const;
  /// False when the reply has to go over the socket.
  /// @param wakes  offsets in the status of the request's file
  bool reply(uint32_t op, const Reply& reply, std::span<const uint32_t> wakes = {}) const;
  /// The same: false when the socket has to say so.
  bool decline() const;

 private:
  explicit Channel(wire::Channel* memory) : memory_(*memory) {}
  wire::Channel& memory_;
};

}  // namespace v3d::daemon
