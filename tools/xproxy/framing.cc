#include "tools/xproxy/framing.h"

#include <xcb/xcb.h>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {

Found find_greeting(Bytes bytes, Greeting* greeting) {
  constexpr size_t kHead = 12;
  if (bytes.size() < kHead) return Found::kNothing;
  if (bytes[0] != 'l' && bytes[0] != 'B') return Found::kBroken;
  greeting->order = bytes[0] == 'l' ? Order::kLittle : Order::kBig;
  const Reader reader(bytes, greeting->order);
  greeting->major = reader.u16(2);
  greeting->minor = reader.u16(4);
  greeting->size = kHead + padded(reader.u16(6)) + padded(reader.u16(8));
  if (greeting->size > kMostSetup) return Found::kBroken;
  return bytes.size() < greeting->size ? Found::kNothing : Found::kPacket;
}

Found find_request(Bytes bytes, Order order, bool big, RequestHead* request) {
  const Reader reader(bytes, order);
  if (bytes.size() < 4) return Found::kNothing;
  *request = {reader.u8(0), reader.u8(1), 4, uint64_t{reader.u16(2)} * 4};
  if (request->size > 0) return Found::kPacket;
  if (!big) return Found::kBroken;
  if (bytes.size() < 8) return Found::kNothing;
  request->head = 8;
  request->size = uint64_t{reader.u32(4)} * 4;
  return request->size < request->head ? Found::kBroken : Found::kPacket;
}

Found find_setup(Bytes bytes, Order order, SetupHead* setup) {
  if (bytes.size() < 8) return Found::kNothing;
  const Reader reader(bytes, order);
  setup->accepted = reader.u8(0) == 1;
  setup->size = 8 + size_t{reader.u16(6)} * 4;
  return bytes.size() < setup->size ? Found::kNothing : Found::kPacket;
}

Found find_response(Bytes bytes, Order order, ResponseHead* response) {
  if (bytes.size() < kPacketSize) return Found::kNothing;
  const Reader reader(bytes, order);
  const uint8_t type = reader.u8(0) & 0x7f;  // the highest bit: an event that a client sent
  *response = {ResponseKind::kEvent, reader.u16(2), kPacketSize};
  if (reader.u8(0) == 0)
    response->kind = ResponseKind::kError;
  else if (reader.u8(0) == 1)
    response->kind = ResponseKind::kReply;
  else if (type == XCB_KEYMAP_NOTIFY)
    response->sequence.reset();
  if (response->kind == ResponseKind::kReply || type == XCB_GE_GENERIC)
    response->size += uint64_t{reader.u32(4)} * 4;
  return Found::kPacket;
}

}  // namespace v3d::xproxy
