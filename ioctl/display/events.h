/// Events are what a client reads from its descriptor of the display node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "ioctl/abi/mode.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::ioctl::kms {

/// The events of one open file: datagrams in the socket that is its descriptor, one for each. Thread safe.
class EventQueue : public std::enable_shared_from_this<EventQueue> {
 public:
  /// As many as the kernel has room for (drm_file.c, event_space): 4096 bytes.
  static constexpr unsigned kMost = 4096 / sizeof(drm::VblankEvent);

  /// Room for one event, given back when it is not sent. Movable.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : queue_(std::move(other.queue_)) {}
    Slot& operator=(Slot&& other) noexcept {
      if (this != &other) {
        release();
        queue_ = std::move(other.queue_);
      }
      return *this;
    }
    ~Slot() { release(); }
    explicit operator bool() const { return queue_ != nullptr; }
    bool is_of(const EventQueue& queue) const { return queue_.get() == &queue; }
    void send(const drm::VblankEvent& event) { send(&event); }
    void send(const drm::SequenceEvent& event) { send(&event); }

   private:
    friend class EventQueue;
    explicit Slot(std::shared_ptr<EventQueue> queue) : queue_(std::move(queue)) {}
    void release();
    void send(const void* event);
    std::shared_ptr<EventQueue> queue_;
  };

  /// @param socket  the daemon's end of the file's descriptor
  void connect(std::shared_ptr<UniqueFd> socket);
  /// 0, or ENOMEM when so many are under way or unread that there is no room for another.
  int reserve(Slot* slot);
  /// Of a file that is closed: nothing is sent any more.
  void close();

 private:
  unsigned unread() const;  // with mutex_ held

  std::mutex mutex_;  // protects all below
  std::shared_ptr<UniqueFd> socket_;
  unsigned reserved_ = 0;
  int charge_ = 0;  // what the host counts for an event that nobody has read, bytes; 0: not known yet
};

}  // namespace v3d::ioctl::kms
