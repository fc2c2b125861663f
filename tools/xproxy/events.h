/// These functions make Present's events, and say who gets them. All are GenericEvents.
#pragma once

#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

/// A client, as far as events go there.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual Order order() const = 0;
  /// @param event  in that order; the listener puts in Present's opcode and the sequence number
  virtual void send_event(Message event) = 0;
};

/// What an event context (SelectInput) is about.
struct EventContext {
  uint32_t id, window;
};

struct Completion {
  uint8_t kind, mode;  ///< XCB_PRESENT_COMPLETE_KIND_*, XCB_PRESENT_COMPLETE_MODE_*
  uint32_t serial;
  uint64_t ust, msc;  ///< us of the monotonic clock; frames
};

struct Placement {
  int16_t x, y;            ///< in the parent
  uint16_t width, height;  ///< pixels
  bool operator==(const Placement&) const = default;
};

Message make_complete_notify(Order order, const EventContext& context, const Completion& completion);
Message make_idle_notify(Order order, const EventContext& context, uint32_t serial, uint32_t pixmap,
                         uint32_t fence);
Message make_configure_notify(Order order, const EventContext& context, const Placement& placement);

}  // namespace v3d::xproxy
