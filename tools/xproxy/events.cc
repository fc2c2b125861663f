#include "tools/xproxy/events.h"

#include <xcb/present.h>

namespace v3d::xproxy {
namespace {

/// @param bytes  32 or more
Message make_event(Order order, uint16_t type, const EventContext& context, size_t bytes) {
  Message message(order, bytes);
  message.u8(0, XCB_GE_GENERIC).u32(4, static_cast<uint32_t>((bytes - kPacketSize) / 4)).u16(8, type);
  message.u32(12, context.id).u32(16, context.window);
  return message;
}

}  // namespace

Message make_complete_notify(Order order, const EventContext& context, const Completion& completion) {
  Message message = make_event(order, XCB_PRESENT_EVENT_COMPLETE_NOTIFY, context, 40);
  message.u8(10, completion.kind).u8(11, completion.mode).u32(20, completion.serial);
  message.u64(24, completion.ust).u64(32, completion.msc);
  return message;
}

Message make_idle_notify(Order order, const EventContext& context, uint32_t serial, uint32_t pixmap,
                         uint32_t fence) {
  Message message = make_event(order, XCB_PRESENT_EVENT_IDLE_NOTIFY, context, kPacketSize);
  message.u32(20, serial).u32(24, pixmap).u32(28, fence);
  return message;
}

Message make_configure_notify(Order order, const EventContext& context, const Placement& placement) {
  Message message = make_event(order, XCB_PRESENT_EVENT_CONFIGURE_NOTIFY, context, 40);
  message.s16(20, placement.x).s16(22, placement.y).u16(24, placement.width).u16(26, placement.height);
  message.u16(32, placement.width).u16(34, placement.height);
  return message;
}

}  // namespace v3d::xproxy
