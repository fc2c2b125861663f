#include "ioctl/display/events.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace v3d::ioctl::kms {

void EventQueue::connect(std::shared_ptr<UniqueFd> socket) {
  const std::lock_guard lock(mutex_);
  socket_ = std::move(socket);
}

void EventQueue::close() {
  std::shared_ptr<UniqueFd> closed;  // after the lock
  const std::lock_guard lock(mutex_);
  closed.swap(socket_);
}

/// The host says how many bytes of the socket's buffer are taken; each event takes as many as the first did.
unsigned EventQueue::unread() const {
  int bytes = 0;
  if (!socket_ || !charge_ || ::ioctl(socket_->get(), SIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<unsigned>((bytes + charge_ - 1) / charge_);
}

int EventQueue::reserve(Slot* slot) {
  const std::lock_guard lock(mutex_);
  if (reserved_ + unread() >= kMost) return ENOMEM;
  ++reserved_;
  *slot = Slot(shared_from_this());
  return 0;
}

void EventQueue::Slot::release() {
  if (!queue_) return;
  {
    const std::lock_guard lock(queue_->mutex_);
    --queue_->reserved_;
  }
  queue_.reset();
}

void EventQueue::Slot::send(const void* event) {
  if (!queue_) return;
  {
    const std::lock_guard lock(queue_->mutex_);
    if (const auto& socket = queue_->socket_) {
      int before = 1, after = 0;
      if (!queue_->charge_) ::ioctl(socket->get(), SIOCOUTQ, &before);
      // Never more than kMost, for which every socket has room.
      [[maybe_unused]] const ssize_t sent =
          ::send(socket->get(), event, sizeof(drm::VblankEvent), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (before == 0 && ::ioctl(socket->get(), SIOCOUTQ, &after) == 0) queue_->charge_ = after;
    }
  }
  release();
}

}  // namespace v3d::ioctl::kms
