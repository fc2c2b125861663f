/// A Connection is a control connection to the daemon: there is one per thread, opened on first need and
/// closed when the thread ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ioctl/link/wire.h"

namespace v3d::shim {

enum CallFlags : unsigned {
  kStartDaemon = 1,    ///< when none answers
  kInterruptible = 2,  ///< a signal ends the call with EINTR and takes the request back
  kCloseOnExec = 4,    ///< of received descriptors
  kShort = 8,          ///< goes_through_channel() of ioctl/abi/channel_requests.h
  kWakes = 16,         ///< the caller sees to Call::wakes()
};

struct Connection {
  int fd;  ///< -1: none. A number above those that applications use, and never trusted: see is_intact()
  dev_t dev;
  ino_t ino;
  pid_t owner;             ///< process that opened it: a child must not read its parent's replies
  pid_t daemon;            ///< at the other end
  uint32_t chip;           ///< that it models: 71 or 42
  wire::Channel* channel;  ///< null: none
  uint32_t channel_bytes;
  uint32_t short_requests;  ///< so far; who makes some is worth a channel
  uint32_t not_short;       ///< so many next ones take the socket, as nobody took one
  uint64_t last_short_ns;   ///< when the last reply came through the channel; 0: long ago
  bool busy;                ///< a Call uses it: another one below it on the stack is in a signal handler
  uint8_t* buffer;
  size_t capacity;
};

/// One request and its reply, one after the other in the buffer of the calling thread's connection.
class Call {
 public:
  Call(wire::Op op, unsigned flags) : op_(op), flags_(flags) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// First of all. 0, or a positive errno: ENODEV without a daemon, or when `daemon` is not 0 and is not the
  /// process that answers (the one that knew the file is gone).
  /// @param node  descriptor of an open node of that daemon, a way to it where the control socket is none;
  /// -1: whichever this process has
  int open(pid_t daemon = 0, int node = -1);

  /// Room for `size` bytes of payload, valid until the next append. nullptr: beyond kMaxPayload, or no
  /// memory.
  void* append(size_t size);
  bool append(const void* data, size_t size);
  /// Payload bytes so far, and a pointer to one of them, valid until the next append.
  size_t size() const { return size_; }
  uint8_t* at(size_t position);
  /// Takes back what was appended after `size`.
  void truncate(size_t size) { size_ = size; }
  /// The reply to a short request will bring a descriptor, by the socket. Where no other thread has a channel
  /// the request goes there, too: the daemon's thread then sleeps on, instead of looking for requests while
  /// the client waits for the job.
  void bring_descriptor();
  /// A descriptor to pass along; false when there are too many.
  bool attach(int fd);

  /// Sends and waits. 0 when a reply came, else a positive errno: ENODEV (daemon gone) or EINTR.
  int send();

  int error() const { return error_; }  ///< of the reply
  const uint8_t* reply() const;
  size_t reply_size() const { return reply_size_; }
  /// Futexes in the Status of the request's file whose sleepers are to be woken: offsets, bytes.
  std::span<const uint32_t> wakes() const { return std::span(wakes_).first(num_wakes_); }
  int num_received() const { return num_received_; }
  /// The i-th received descriptor, now the caller's; -1 if there is none. The others are closed in the end.
  int take(int index);

  pid_t daemon() const { return connection_->daemon; }

 private:
  /// Room in the buffer for a message at `start` with that payload.
  bool reserve(size_t start, size_t payload);
  bool look_at_socket();
  void say_cpu();
  int transmit();
  int receive();
  /// Asks for a channel when there have been enough requests to make it worthwhile.
  void want_channel();
  /// Through the channel. False: not at all, the request has to take the socket.
  bool is_listened_to();
  uint32_t look_for_reply(bool* in_the_way);
  bool send_short(int* error);
  int take_short_reply();

  Connection* connection_ = nullptr;
  Connection temporary_;
  wire::Op op_;
  unsigned flags_;
  bool has_looked_ = false;  // at the socket
  int node_ = -1;
  size_t size_ = 0;
  int num_attached_ = 0;
  int attached_[wire::kMaxFds];
  int error_ = 0;
  size_t reply_size_ = 0;
  uint32_t num_wakes_ = 0;
  uint32_t wakes_[wire::Channel::kMostWakes];
  int num_received_ = 0;
  int received_[wire::kMaxFds];
};

/// Chip of the daemon that runs now (71 or 42), 0 if none does. Starts none and keeps no connection.
uint32_t probe_chip();

/// Nobody closed the descriptor or put something else in its place (close_range(3, ~0), closefrom, a child's
/// clean-up loop).
bool is_intact(int fd, dev_t dev, ino_t ino);

}  // namespace v3d::shim
