/// The display of the vc4 node has the state of its objects, what is shown, and the clock by which that
/// changes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "gpu/chip/board.h"
#include "ioctl/abi/versions.h"
#include "ioctl/display/events.h"
#include "ioctl/display/scanout.h"
#include "ioctl/display/state.h"
#include "ioctl/display/writer.h"
#include "ioctl/sync/fence.h"

namespace v3d::ioctl::kms {

struct DisplayOptions {
  /// Ticks of the vertical blanking per second, 0: flips complete as soon as their fences have signalled.
  uint32_t vblank_hz = 0;
  std::function<int64_t()> now_ns = monotonic_ns;
  const chip::DisplayUnit* unit = &chip::kHvs6;  ///< of the board
  const Abi* abi = &default_abi();
};

/// What a client asks the display to become.
struct Commit {
  std::function<void(DisplayState&)> change;  ///< may be called more than once, and only sets values
  ObjectSet changed = 0;                      ///< that it names
  bool test_only = false, nonblock = false, allow_modeset = true;
  bool async = false;    ///< does not wait for the vertical blanking
  bool at_once = false;  ///< nor for anything else: moves of the cursor
  /// Of each of kPipes: what is sent and signalled when it is shown, or written. Empty, null: nothing.
  struct Outcome {
    EventQueue::Slot event;
    FencePtr done, written;
  };
  std::array<Outcome, kNumPipes> outcomes;
  uint64_t user_data = 0;  ///< of events
};

/// Thread safe. Time passes for it when somebody calls tick(): a thread of the daemon, when wake() asked for
/// it.
class Display {
 public:
  /// @param wake  called on any thread when tick() is to be called; takes no lock of this layer
  Display(const DisplayOptions& options, std::function<void()> wake);
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// @name What the board and its Linux have
  const chip::DisplayUnit& unit() const { return *options_.unit; }
  bool has(uint32_t object) const;
  bool has_property(uint32_t property) const;
  /// What planes take, in the order in which they list it.
  std::span<const Format* const> formats() const { return formats_; }
  /// nullptr when planes do not take it.
  const Format* find_format(uint32_t fourcc) const;
  /// Contents of a blob that no client made, empty when there is no such id.
  std::span<const uint8_t> find_fixed_blob(uint32_t id) const;

  /// @name For viewers
  /// What is shown now: of two lit sockets on the first one.
  Scanout scanout() const;
  /// While there is one the display keeps last_picture(), and its memory.
  void add_viewer();
  void remove_viewer();
  /// While there is one, flips leave on the screen what is there, so that it can be copied whole: its owner
  /// draws on it as soon as it is off. They wait no longer than kLongestLook, and for none that began when
  /// they waited already: whoever looks all the time holds nobody up.
  class Look {
   public:
    explicit Look(Display& display) : display_(display), number_(display.begin_look()) {}
    ~Look() { display_.end_look(number_); }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    Display& display_;
    const uint64_t number_;
  };
  static constexpr int64_t kLongestLook = 100'000'000;  ///< ns
  /// What was shown by the last commit that left something on the screen, since there is a viewer. What goes
  /// because its program ends is no commit.
  Scanout last_picture() const;
  /// How many frames have been shown.
  uint64_t frame() const;
  /// Sleeps until frame() is not `seen`. 0, ETIME or EINTR (the waiter's client is gone).
  int wait_for_frame(uint64_t seen, const std::shared_ptr<Waiter>& waiter, int64_t deadline_ns);
  /// Told at every frame, until unwatch_frames(). The watcher must not call this object.
  void watch_frames(std::shared_ptr<Watcher> watcher);
  void unwatch_frames(const Watcher* watcher);

  /// @name For the clock
  /// Does what is due. @return CLOCK_MONOTONIC at which there will be more to do, INT64_MAX for nothing
  int64_t tick();

  /// @name The kernel's console
  /// Shown from now on when no program shows anything: at the start, and when the last file is closed
  /// (drm_lastclose). Once, before there are files.
  void set_console(std::shared_ptr<Framebuffer> console);
  FramebufferPtr console() const { return console_; }
  /// Somebody draws on it: viewers see it from now on. Before, it is black, and nothing to look at.
  void use_console();
  /// A frame of its own where viewers see the console, which changes without any commit. Whether they do.
  bool refresh_console();

  /// @name Monitors
  /// Bit for each connector into which one is plugged.
  uint32_t monitors() const;
  /// Plugs one in or out. What programs have set stays as they set it.
  /// @param has_master  of the node
  void plug(uint32_t connector, bool monitor, bool has_master);

  /// @name For files
  void open_file();
  /// Framebuffers of the file are no more, nor are its blobs but where they are in use, nor events that it
  /// waits for. With the last file of all the console comes back.
  /// @param events  of the file
  /// @param was_open  it is the first call for that file
  void close_file(const File& file, const EventQueue& events, bool was_open);

  /// @name Framebuffers
  /// Gives it an id and an owner.
  uint32_t add_fb(const File& owner, std::shared_ptr<Framebuffer> fb);
  FramebufferPtr find_fb(uint32_t id) const;
  /// Its owner gives it up. @param hide  planes that show it go off. 0 or ENOENT (also somebody else's)
  int remove_fb(const File& owner, uint32_t id, bool hide);
  std::vector<uint32_t> fbs_of(const File& owner) const;

  /// @name Blobs of clients
  uint32_t add_blob(const File* owner, std::shared_ptr<Blob> blob);
  BlobPtr find_blob(uint32_t id) const;
  /// 0, ENOENT, or EPERM (somebody else's).
  int remove_blob(const File& owner, uint32_t id);
  /// One of the display's own, for a mode that comes without.
  BlobPtr make_mode_blob(const drm::ModeInfo& mode);

  /// Ids of all framebuffers and of all blobs that clients or modes have made, in order.
  std::vector<uint32_t> dynamic_ids() const;

  /// What the display has been set to, which is not always shown yet.
  DisplayState state() const;
  /// drm_atomic_commit and its like: 0, EINVAL, ERANGE, ENOSPC, EBUSY (not blocking, and the last one is not
  /// shown yet), or EINTR (the client is gone).
  int commit(Commit commit, const std::shared_ptr<Waiter>& waiter);
  /// The next one of the CRTC, for Commit::Outcome::done.
  FencePtr make_fence(uint32_t pipe);
  /// The next one of its writeback connector, for Commit::Outcome::written.
  FencePtr make_write_fence(uint32_t pipe);

  /// @name Vertical blanking
  struct Vblank {
    uint64_t sequence;
    int64_t time_ns;
  };
  /// False while the CRTC is off, and there is none. That of memory counts what was written.
  bool vblank(uint32_t pipe, Vblank* now) const;
  /// Sends an event when the sequence has come; it is completed with the number and the time.
  /// @param is_sequence  as CRTC_SEQUENCE, else as VBLANK
  void queue_event(uint32_t pipe, uint64_t sequence, EventQueue::Slot slot, uint64_t user_data,
                   bool is_sequence);
  /// 0, EBUSY (it took three seconds) or EINTR.
  int wait_for_vblank(uint32_t pipe, uint64_t sequence, const std::shared_ptr<Waiter>& waiter);

  /// Legacy gamma of the CRTC: kept, and not applied to what is shown.
  static constexpr uint32_t kGammaSize = 256;
  using Gamma = std::array<uint16_t, 3 * kGammaSize>;
  Gamma gamma(uint32_t pipe) const;
  void set_gamma(uint32_t pipe, const Gamma& gamma);

 private:
  class FenceWatcher;
  /// What is to be shown next on some CRTCs, of which no other is to be shown then.
  struct Pending {
    uint64_t number;
    uint32_t pipes;     // bit for each
    ObjectSet objects;  // that may change
    DisplayState next;
    std::vector<FencePtr> fences;  // that have not signalled
    std::shared_ptr<Watcher> watcher;
    std::array<Commit::Outcome, kNumPipes> outcomes;
    uint64_t user_data = 0;
    bool async = false, writing = false;
    int64_t due_ns = 0;             // 0: fences are waited for
    int64_t looked_at_ns = 0;       // when a Look first held it up
    uint64_t first_later_look = 0;  // that and those after it do not
  };
  struct VblankWait {
    uint32_t pipe;
    uint64_t sequence, user_data;
    EventQueue::Slot event;
    bool is_sequence;
  };
  struct Sleep {
    uint32_t pipe;
    uint64_t sequence;
    auto operator<=>(const Sleep&) const = default;
  };
  /// What is told to others when the lock is released.
  struct News {
    std::vector<FencePtr> done;
    std::vector<std::shared_ptr<Watcher>> watchers;
    std::vector<Scanout> dropped;  // pictures that are kept no longer: memory may go with them
    std::vector<Write> writes;     // to be begun
    bool wake = false;
    void tell(Display& display);
  };

  /// Since the start of CLOCK_MONOTONIC.
  static uint64_t ticks_at(int64_t now_ns, uint64_t hz);
  /// Whether the CRTC goes by the clock.
  bool has_clock(uint32_t pipe) const {
    return options_.vblank_hz && kPipes[pipe].output == Output::kMonitor;
  }
  /// Or by nothing: what is waited for comes at once.
  bool is_free(uint32_t pipe) const { return !options_.vblank_hz && kPipes[pipe].output == Output::kMonitor; }
  Vblank vblank_at(uint32_t pipe, int64_t now_ns) const;
  int64_t time_of(uint64_t sequence) const;
  int64_t next_wait(int64_t now_ns) const;
  uint32_t new_id();
  DisplayState at_rest() const;
  bool sees_console() const;
  void come_to_rest(News* news);
  Pending* find_pending(uint64_t number);
  bool is_busy(uint32_t pipes) const;
  void complete(Pending& pending, int64_t time_ns, News* news);
  void begin_write(Pending& pending, News* news);
  void end_write(uint64_t number);
  void drop_pending(News* news);
  void release_waits(uint32_t pipe, const Vblank& now, bool all, News* news);
  uint64_t begin_look();
  void end_look(uint64_t number);
  bool is_held_up(Pending& pending, int64_t now_ns) const;
  int64_t advance(int64_t now_ns, News* news);
  void skip_to(uint32_t pipe, uint64_t sequence, int64_t now_ns, News* news);
  uint64_t queue(Commit commit, DisplayState next, uint32_t pipes, News* news);
  void show_at_once(const Commit& commit, News* news);
  void wake_sleepers(News* news) const;
  void frame_shown(int64_t time_ns, News* news);
  static Scanout describe_pipe(const DisplayState& state, uint32_t pipe, const FramebufferPtr& hidden);
  Scanout describe_shown() const;
  void keep_picture(News* news);
  void forget_fb(const Framebuffer& fb, News* news);
  int sleep(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Waiter>& waiter, int64_t deadline_ns,
            const std::function<bool()>& done);
  template <typename T>
  static void prune(std::unordered_map<uint32_t, std::weak_ptr<T>>* ids, size_t* prune_at);

  const DisplayOptions options_;
  const std::vector<const Format*> formats_;
  const std::vector<uint8_t> formats_blob_;
  const std::function<void()> wake_;
  const uint64_t first_sequence_;
  const std::array<uint64_t, 2 * kNumPipes> fence_contexts_;  // of CRTCs, of their writeback connectors
  FramebufferPtr console_;
  BlobPtr console_mode_;

  mutable std::mutex mutex_;  // protects all below
  int open_files_ = 0;
  bool console_used_ = false;
  uint32_t monitors_ = 0;
  DisplayState state_, shown_;
  std::vector<std::unique_ptr<Pending>> pending_;
  uint64_t frame_ = 0, commits_ = 0;
  int64_t frame_ns_ = 0;
  int viewers_ = 0;
  std::set<uint64_t> looks_;  // by number, which are given in order
  uint64_t next_look_ = 0;
  Scanout last_picture_;
  uint64_t last_fence_ = 0;
  std::array<uint64_t, kNumPipes> counts_{};  // sequences where there is no clock
  std::vector<VblankWait> vblank_waits_;
  std::vector<Sleep> sleeping_for_;
  std::vector<std::shared_ptr<Watcher>> sleepers_;
  std::vector<std::shared_ptr<Watcher>> frame_watchers_;
  uint32_t next_id_ = kFirstDynamicId;
  std::unordered_map<uint32_t, std::weak_ptr<Framebuffer>> fbs_;
  std::unordered_map<uint32_t, std::weak_ptr<Blob>> blobs_;
  size_t prune_fbs_at_ = 64, prune_blobs_at_ = 64;
  std::unordered_map<const File*, std::unordered_map<uint32_t, std::shared_ptr<Framebuffer>>> owned_fbs_;
  std::unordered_map<const File*, std::unordered_map<uint32_t, std::shared_ptr<Blob>>> owned_blobs_;
  std::array<Gamma, kNumPipes> gamma_;

  Writer writer_;  // last: its thread calls this
};

}  // namespace v3d::ioctl::kms
