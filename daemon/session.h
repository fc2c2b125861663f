/// A Session is one control connection: it answers the requests of one client thread in order.
#pragma once

#include <atomic>
#include <memory>

#include "daemon/channel_server.h"
#include "daemon/message.h"
#include "daemon/process.h"
#include "daemon/viewer.h"
#include "gpu/base/log_limiter.h"
#include "ioctl/jobs/job.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl {
class File;
}

namespace v3d::daemon {

class Server;

class Session {
 public:
  /// @param socket  owned by the caller, open as long as the session
  Session(Server& server, int socket, Peer peer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Serves until the client or the server closes the connection, or the client's process ends.
  void run();

 private:
  /// Serves one request. False when the connection is to end.
  bool serve(Request& request);
  /// The same for one that came through the channel, on the thread of the session that looks.
  void serve_posted(Channel& channel);
  /// Whether it is one of those that never wait.
  bool is_short(const Request& request, std::shared_ptr<ioctl::File>* file);
  bool is_over(const wire::IoctlRequest& header, const Request& request) const;
  /// What a request is answered, whatever happens. @param bytes  what the reply is charged to, until it is
  /// sent
  Reply answer_or_fail(Request& request, ioctl::Charge* bytes);
  Reply answer(Request& request);
  Reply hello(Request& request);
  /// Null: nobody has opened it. The user of this session counts as one of its client.
  std::shared_ptr<ioctl::File> used_file(uint64_t token);
  Reply open(Request& request);
  Reply open_framebuffer(int flags);
  Reply adopt(Request& request);
  Reply drm_ioctl(Request& request);
  Reply fd_ioctl(Request& request);
  Reply mmap(Request& request);
  Reply command(Request& request);
  Reply make_channel();
  Reply screen(Request& request);
  Reply firmware(Request& request);

  Server& server_;
  const int fd_;
  Peer peer_;
  MessageSocket socket_;
  const std::shared_ptr<ioctl::Waiter> waiter_;
  bool greeted_ = false;
  LogClient log_client_;
  std::shared_ptr<const ioctl::User> user_;  // from hello on

  std::shared_ptr<ChannelServer> channel_server_;
  std::shared_ptr<ChannelServer::Entry> channel_entry_;  // once the client asked for a channel
  /// By the last request: the client will wait for the job that it has submitted, and ask for nothing
  /// meanwhile. Sessions of the client's other threads write it when they answer what came through this one's
  /// channel; as a hint it needs no lock.
  std::atomic<bool> awaits_job_ = false;
  ioctl::Charge channel_mapping_;
  std::unique_ptr<Viewer> viewer_;  // once the client asked what the display shows
  std::vector<uint8_t> posted_;     // the last request that came through it
};

}  // namespace v3d::daemon
