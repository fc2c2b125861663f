/// A Server is v3demud without its command line: sockets, clients, and the loop that sees them go.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "daemon/channel_server.h"
#include "daemon/chores.h"
#include "daemon/display_clock.h"
#include "daemon/memory_return.h"
#include "daemon/process.h"
#include "daemon/reply_first.h"
#include "daemon/scheduler.h"
#include "daemon/settings.h"
#include "daemon/timing_mode.h"
#include "ioctl/base/gpu.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/core/kernel.h"

namespace v3d::daemon {

class CaptureWindow;

class Server : private ioctl::Host {
 public:
  struct Options {
    ioctl::ResourceLimits limits = {};
    const ioctl::Abi* abi = &ioctl::default_abi();
    CaptureWindow* capture_window = nullptr;  ///< which of them; outlives the server; null: all
    std::string capture = {};                 ///< the file to which `gpu` writes its jobs; empty: none
    /// Seconds without clients after which run() returns; negative for never.
    double exit_when_idle = -1;
    /// Seconds that jobs of a file have after the process that used it last is gone.
    double run_after_exit = 5;
    ioctl::kms::DisplayOptions display = {.vblank_hz = 60};
    ChannelServer::Options channel_server = {};
    TimingMode timing = TimingMode::kOff;                   ///< what `gpu` was made with
    Settings settings = usual_settings();                   ///< for programs that ask for others
    std::function<int64_t()> now_ns = ioctl::monotonic_ns;  ///< called by the thread of run() alone
    std::function<void()> stopping = [] {};                 ///< called by stop()
  };

  Server(ioctl::Gpu& gpu, const Options& options);
  /// Closes all connections and waits for their threads, ends all jobs.
  ~Server();

  /// @param listener  a listening AF_UNIX socket
  void run(ioctl::UniqueFd listener);
  /// Makes run() return. Any thread, also signal handlers.
  void stop();

  /// @name For the sessions
  ioctl::Kernel& kernel() { return kernel_; }
  /// When a reply has been sent for which the thread had a ReplyFirst.
  /// @param sleeps  the thread has nothing more to do
  void wake_workers(bool sleeps = false) {
    ReplyFirst::end();
    scheduler_.wake_workers(sleeps);
  }
  struct OpenedFile {
    uint64_t token;
    ioctl::UniqueFd client_end;  ///< what becomes the client's DRM descriptor
  };
  /// open(2) of a node. 0, ENXIO (no such node) or EMFILE (also the client's limit).
  int open_file(uint32_t minor, int flags, const Peer& peer, OpenedFile* opened);
  /// Which file a descriptor of unknown origin is. False when none of this daemon's.
  bool adopt_file(int fd, uint64_t* token, uint32_t* minor);
  std::shared_ptr<ioctl::File> find_file(uint64_t token);
  /// Of the process with that account. Throws std::bad_alloc.
  std::shared_ptr<ChannelServer> channel_server_of(ioctl::Account& account);
  /// A command of the owner, as every session is: "status", "status json", "gpu_stats", "fdinfo INODE",
  /// "capture toggle", "shutdown", place::kCompareCommand, "sysfs FILE" (a connector's in /sys/class/drm),
  /// "connector", which lists them, "connector NAME on" or "off", which plugs a monitor in or out, or "debug
  /// LIST", whose answer says in which way V3DEMU_DEBUG=LIST is not what this daemon runs with. 0 or an
  /// errno.
  int command(const std::string& text, std::string* answer);

 private:
  struct OpenFile {
    std::shared_ptr<ioctl::File> file;
    std::shared_ptr<const ioctl::UniqueFd> own_end;  ///< hung up when no client has the file any more
    uint64_t cookie;
    ino_t inode;  ///< of the client's end, as /proc shows it
    NodeCharges charges;
  };
  /// A closed file whose jobs have not ended.
  struct Draining {
    std::shared_ptr<ioctl::ClientInfo> client;
    std::weak_ptr<ioctl::File> file;  ///< lives while a request that may submit another job is under way
    int64_t dead_ns = 0;              ///< when its last user was seen to have exited
    int64_t moved_ns = 0;             ///< since then: when one of its jobs was last seen to run or to be held
    int64_t ran_ns = 0;               ///< its jobs at that time
    bool killed = false;              ///< what has not ended yet does not look: nobody waits for it
  };

  /// A process that had a connection.
  struct Holder {
    std::shared_ptr<ioctl::UniqueFd> process;
    std::weak_ptr<ioctl::Account> account;
  };

  // ioctl::Host
  void push(const std::vector<ioctl::JobPtr>& jobs) override { scheduler_.push(jobs); }
  void run_small(const std::vector<ioctl::JobPtr>& jobs) override { scheduler_.run_small(jobs); }
  void before_wait() override { wake_workers(); }
  bool watch_hangup(int socket, std::function<void()> gone) override {
    return watch(epoll_.get(), socket, std::move(gone), {});
  }
  bool watch_hangup_later(int socket, std::function<void()> gone) override;
  void look_at_hangups() override;
  void finish_closes(const ioctl::File* master) override;
  int give_descriptor(std::shared_ptr<ioctl::File> file, int flags, ioctl::Account& account,
                      ioctl::UniqueFd* fd) override;
  void bury(std::shared_ptr<void> remains) noexcept override {
    chores_.add([remains = std::move(remains)]() mutable { remains.reset(); });
  }
  void wake_display() override { display_clock_.wake(); }

  /// Makes it known to clients. 0, EMFILE or ENOMEM.
  int enter_file(std::shared_ptr<ioctl::File> file, int flags, NodeCharges charges, OpenedFile* opened);
  /// Whether a descriptor is read again: when more has come, when ioctl::closer_has_room(), or not at all.
  enum class Again { kWhenReadable, kWhenThereIsRoom, kNever };
  /// What the loop does about a descriptor: `gone` when it hangs up, which ends it; before that `readable`,
  /// if there is one.
  struct Watch {
    std::function<void()> gone;
    std::function<Again()> readable;
    int socket;
  };
  /// @param epoll  epoll_, or epoll_later_ for what is not readable ever
  bool watch(int epoll, int socket, std::function<void()> gone, std::function<Again()> readable);
  void look_at_watch(uint64_t key, uint32_t events);
  void watch_again(uint64_t key, int socket, bool readable);
  /// Goes on with those that wait for room. @return  whether some still do
  bool go_on_where_there_was_no_room();
  /// Makes the loop look around.
  void wake();
  void accept_client(int listener);
  /// Takes a message from the client's end of a node. False when none is to be waited for any more.
  Again answer_door(uint64_t token);
  /// Serves what connected, or refuses it. @param node  through which; nothing: the control socket
  void serve_connection(ioctl::UniqueFd socket, std::optional<uint32_t> node);
  /// Who connected; without an account when the connection cannot be afforded. False when it is nobody to be
  /// served.
  bool admit(int socket, std::optional<uint32_t> node, Peer* peer, ConnectionCharges* charges);
  /// Starts the thread of a connection, which takes the socket. False when the host has none left.
  bool start_session(ioctl::UniqueFd* socket, Peer peer, ConnectionCharges charges);
  void serve(uint64_t connection, int socket, const Peer& peer);
  void close_file(uint64_t token);
  /// Ends the jobs of clients that died. @return whether somebody is left to look after
  bool drain();
  bool has_drained(Draining& file, int64_t now_ns);
  /// What is set aside for processes that have exited is free for others, though jobs of theirs are not over.
  void retire_the_dead(int64_t now_ns);
  /// Calls what waits for the end of a descriptor.
  void tell_gone(const std::function<void()>& gone);
  /// When clients have left.
  void give_memory_back();
  bool has_clients();
  std::string status_text();
  /// The same for programs; names as in the text.
  std::string status_json();
  struct Overview {
    std::vector<std::shared_ptr<ioctl::File>> files;  ///< in the order of their numbers
    size_t connections, draining;
  };
  Overview overview();
  /// As the kernel's file of that name: what each queue has done.
  std::string gpu_stats_text();
  bool gpu_is_active();  ///< has jobs
  /// @param name  of a file of a device in /sys/kernel/debug/dri: "v3d/bo_stats". False: there is none
  bool debugfs_text(std::string_view name, std::string* text);
  /// Of the file whose client's end has that inode: its minor on a line, then what the kernel's fdinfo says
  /// of it. Empty when there is none.
  std::string fdinfo_text(ino_t inode);

  const Options options_;
  const int64_t started_ns_;
  ioctl::UniqueFd epoll_;
  ioctl::UniqueFd epoll_later_;           // whose events wait until somebody looks
  std::atomic<uint32_t> later_added_{0};  // to it, since then
  ioctl::UniqueFd wake_event_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> client_left_{false};  ///< since memory_return_ looked last
  MemoryReturn memory_return_;

  std::mutex mutex_;                                        // protects all below
  std::unordered_map<uint64_t, OpenFile> files_;            // by token
  std::unordered_map<uint64_t, uint64_t> token_by_cookie_;  // of the client's end
  std::unordered_set<uint64_t> closing_;  // tokens of primary nodes' files that close_file() has taken
  std::condition_variable closed_;        // when one of them is released
  std::vector<Draining> draining_;
  std::map<ioctl::ProcessId, Holder> holders_;
  std::map<ioctl::ProcessId, std::weak_ptr<ChannelServer>> channel_servers_;
  int64_t last_retired_ns_ = 0;
  std::unordered_map<uint64_t, Watch> watches_;  // by epoll key
  uint64_t next_watch_;
  std::vector<uint64_t> without_room_;   // keys of watches; of the loop's thread
  std::map<uint64_t, int> connections_;  // sockets of the running sessions
  uint64_t next_connection_ = 0;
  std::condition_variable connection_ended_;

  ioctl::Kernel kernel_;
  DisplayClock display_clock_{kernel_.display()};
  GpuErrors errors_;
  Chores chores_;
  // Last: its jobs use all above.
  Scheduler scheduler_{{.pace = options_.timing == TimingMode::kPace, .errors = &errors_}};
};

}  // namespace v3d::daemon
