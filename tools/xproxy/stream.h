/// A Stream is one side of a relayed connection: a socket that never blocks, with what has arrived and what
/// is to go, and the descriptors that travel along.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "ioctl/base/received_fd.h"
#include "ioctl/base/unique_fd.h"
#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

class Stream {
 public:
  Stream() = default;
  /// @param socket  non-blocking
  explicit Stream(ioctl::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  /// Takes what has arrived. False: the other end has gone, or has sent more descriptors than anybody takes,
  /// or one that may take long to close where too many such ones wait already.
  bool fill();
  Bytes input() const { return Bytes(input_).subspan(begin_, end_ - begin_); }
  void consume(size_t bytes);
  /// What arrives next goes to that place, and not to input(), until it is full.
  void receive_into(std::span<uint8_t> place) { place_ = place; }
  /// How much of it is missing.
  size_t missing() const { return place_.size(); }
  /// The next descriptor that came along; none: an empty one.
  ioctl::ReceivedFd take_descriptor();
  bool has_descriptors() const { return !arrived_.empty(); }

  /// Queues bytes; a descriptor goes with the first of them.
  void write(Bytes bytes, ioctl::ReceivedFd descriptor = {});
  /// The same for many bytes, which are sent at once where the socket takes them. False: the other end has
  /// gone.
  bool write_through(Bytes bytes);
  /// Queues a descriptor for the next bytes.
  void attach(ioctl::ReceivedFd descriptor);
  /// Sends what the socket takes. False: the other end has gone.
  bool flush();
  /// Bytes that wait.
  size_t queued() const { return output_.size() - sent_; }

 private:
  struct Parcel {
    uint64_t position;  ///< of the byte that it goes with, in all bytes ever queued
    ioctl::ReceivedFd descriptor;
  };

  void make_room();
  /// As sendmsg().
  ssize_t send_some();

  ioctl::SharedSocket socket_;
  std::vector<uint8_t> input_, output_;
  std::span<uint8_t> place_;
  size_t begin_ = 0, end_ = 0;  ///< of what has arrived and is not consumed, in input_
  size_t sent_ = 0;             ///< of output_
  uint64_t discarded_ = 0;      ///< bytes sent that output_ no longer holds
  std::deque<ioctl::ReceivedFd> arrived_;
  std::deque<Parcel> parcels_;
};

}  // namespace v3d::xproxy
