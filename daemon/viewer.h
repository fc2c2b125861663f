/// A Viewer is a connection that looks at the screen.
#pragma once

#include <memory>

#include "daemon/message.h"
#include "ioctl/display/display.h"

namespace v3d::daemon {

/// It gets a copy of what is shown, sealed: a descriptor of the memory itself, open for reading, could be
/// opened anew for writing (/proc/self/fd). Of the copy the viewer makes the picture, so that how slow it is
/// concerns nobody else. One thread at a time.
class Viewer {
 public:
  /// 0, or EBUSY: the client, or all together, have as many as they may have.
  static int admit(ioctl::kms::Display& display, ioctl::Account& account, std::unique_ptr<Viewer>* viewer);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  /// Answers a request (wire.h, kScreen). Errors: EINVAL (unknown flags, or too long a wait), ETIME, EINTR
  /// (the client is gone), EMFILE (no descriptors are left), ENOMEM (no memory for the copy).
  Reply look(const wire::ScreenRequest& request, const std::shared_ptr<ioctl::Waiter>& waiter);

 private:
  Viewer(ioctl::kms::Display& display, ioctl::Account& account, ioctl::Charge seat);
  int attach(const ioctl::kms::Scanout& shown, std::vector<wire::ScreenPlane>* planes, Reply* reply);

  ioctl::kms::Display& display_;
  ioctl::Account& account_;
  const ioctl::Charge seat_;
  ioctl::Charge bytes_, descriptor_;  // of the last reply: it may not have been read yet
};

}  // namespace v3d::daemon
