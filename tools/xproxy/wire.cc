#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

Message make_request(Order order, uint8_t major, uint8_t minor, uint16_t words) {
  Message message(order, size_t{words} * 4);
  message.u8(0, major).u8(1, minor).u16(2, words);
  return message;
}

Message make_reply(Order order, uint16_t sequence, uint32_t words) {
  Message message(order, kPacketSize + size_t{words} * 4);
  message.u8(0, 1).u16(2, sequence).u32(4, words);
  return message;
}

Message make_error(Order order, uint16_t sequence, const Error& error) {
  Message message(order, kPacketSize);
  message.u8(1, error.code).u16(2, sequence).u32(4, error.value).u16(8, error.minor).u8(10, error.major);
  return message;
}

}  // namespace v3d::xproxy
