/// One control connection: requests of one client thread, answered in order.
#pragma once

#include <memory>

#include "daemon/message.h"
#include "daemon/process.h"
#include "gpu/base/log_limiter.h"
#include "ioctl/fence.h"
#include "ioctl/job.h"

namespace v3d::daemon {

class Server;

class Session {
 public:
  /// @param socket  owned by the caller, open as long as the session
  Session(Server& server, int socket, Peer peer);

  /// Serves until the client or the server closes the connection, or the client's process ends.
  void run();

 private:
  /// Serves one request. False when the connection is to end.
  bool serve(Request& request);
  Reply answer(Request& request);
  Reply hello(Request& request);
  Reply open(Request& request);
  Reply adopt(Request& request);
  Reply drm_ioctl(Request& request);
  Reply fd_ioctl(Request& request);
  Reply mmap(Request& request);
  Reply command(Request& request);

  Server& server_;
  Peer peer_;
  MessageSocket socket_;
  const std::shared_ptr<ioctl::Waiter> waiter_;
  bool greeted_ = false;
  LogClient log_client_;
  std::shared_ptr<const ioctl::User> user_;  // from hello on
};

}  // namespace v3d::daemon
