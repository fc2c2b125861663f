/// The presenter is Present's queue: pictures that wait for their fences and frames, go to windows, and are
/// reported.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tools/xproxy/buffer.h"
#include "tools/xproxy/clock.h"
#include "tools/xproxy/events.h"
#include "tools/xproxy/fence.h"
#include "tools/xproxy/placements.h"
#include "tools/xproxy/server.h"

namespace v3d::xproxy {

/// A window or pixmap, as GetGeometry tells.
struct Geometry {
  uint8_t depth;
  Placement placement;
};

/// When something is to happen, as requests say it.
struct Target {
  uint64_t msc, divisor, remainder;
};

/// PresentPixmap.
struct Present {
  const Listener* client;
  uint32_t window, pixmap, serial;
  std::shared_ptr<Buffer> buffer;     ///< null: the server has the picture
  std::vector<Rectangle> rectangles;  ///< what changed, in the picture and inside it
  int16_t x, y;                       ///< of the picture's corner in the window
  std::shared_ptr<Fence> wait, idle;  ///< may be null
  uint32_t idle_id;
  bool async;
  Target target;
  struct Notify {
    uint32_t window, serial;
  };
  std::vector<Notify> notifies;  ///< windows that are told of its completion, too

  uint64_t msc = 0;             ///< set by the presenter: the frame
  ioctl::UniqueFd writes = {};  ///< likewise: readable once the picture is drawn
};

class Presenter {
 public:
  /// @param wake_on  has step() called when a descriptor gets readable
  Presenter(Server& server, Clock clock, std::function<void(int)> wake_on)
      : server_(server), clock_(clock), wake_on_(std::move(wake_on)) {}

  /// What the server has told a client of a window, which then is watched.
  void learn(const Listener* client, uint32_t window, const Geometry& geometry);
  /// Nothing: the window has not been learnt.
  std::optional<uint8_t> depth_of(uint32_t window) const;

  /// PresentSelectInput with events on a window that was learnt; without events the context ends.
  enum class Selected { kDone, kOtherWindow, kTooMany };
  Selected select(Listener* client, const EventContext& context, uint32_t events);
  /// False: too many wait.
  bool present(Present present);
  bool notify_msc(const Listener* client, uint32_t window, uint32_t serial, const Target& target);

  /// Has the server's pixmap show its buffer, when what draws there has ended.
  void upload(uint32_t pixmap, std::shared_ptr<Buffer> buffer, std::function<void()> done);

  /// @param client  whose connection tells; null: the proxy's own
  void configured(const Listener* client, uint32_t window, const Placement& placement);
  void destroyed(uint32_t window) { windows_.erase(window); }
  void forget(const Listener* client);

  /// Does what is due.
  void step();
  /// When something will be, unless a descriptor tells.
  std::optional<int64_t> next_ns() const;

 private:
  struct Selection {
    Listener* client;
    uint32_t id, events;
  };
  struct Waiting {
    const Listener* client;
    uint32_t serial;
    uint64_t msc;
  };
  struct Upload {
    Copy copy;
    ioctl::UniqueFd writes;
  };
  struct Window {
    uint8_t depth = 0;
    std::optional<Placements> placements;
    std::vector<Selection> selections;
    std::deque<Present> queue;
    std::vector<Waiting> notifies;
    bool copies = false;  ///< one at a time, so that the next one's rank is known late
    uint64_t number = 0;  ///< another one for another window of the same id
  };

  bool has_come(uint64_t msc, int64_t now) const { return clock_.is_free() || msc <= clock_.msc(now); }
  static bool has_ended(const ioctl::UniqueFd& writes);
  static bool is_drawn(const Present& present);
  bool is_due(const Present& present, int64_t now) const {
    return has_come(present.msc, now) && is_drawn(present);
  }
  void skip_superseded(uint32_t id, Window& window, int64_t now);
  void start(uint32_t id, Window& window, int64_t now);
  void finish(uint32_t id, uint64_t number, Present present, const Completion& completion);
  void answer_notifies(uint32_t id, Window& window, int64_t now);
  void complete(uint32_t window, const Completion& completion);
  void release(const Present& present);
  Completion completion(uint8_t kind, uint8_t mode, uint32_t serial, uint64_t msc, int64_t now) const;

  Server& server_;
  Clock clock_;
  std::function<void(int)> wake_on_;
  std::map<uint32_t, Window> windows_;
  std::vector<Upload> uploads_;
  uint64_t last_number_ = 0;
};

}  // namespace v3d::xproxy
