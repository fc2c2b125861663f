/// Framing tells where packets end in the two directions of an X11 connection.
#pragma once

#include <optional>

#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

enum class Found {
  kNothing,  ///< more bytes are needed
  kPacket,
  kBroken,  ///< no packet begins so: the connection cannot go on
};

/// What a client sends first.
struct Greeting {
  Order order = Order::kLittle;
  uint16_t major = 0, minor = 0;  ///< of the protocol
  size_t size = 0;                ///< with the names and data of authorization, which the proxy replaces
};
/// Longer ones than kMostSetup are broken.
Found find_greeting(Bytes bytes, Greeting* greeting);

struct RequestHead {
  uint8_t major = 0, minor = 0;
  size_t head = 4;    ///< bytes before the fields: 8 with the length of BIG-REQUESTS
  uint64_t size = 0;  ///< all of it; at most 16 GiB
};
/// @param big  the client has enabled BIG-REQUESTS
Found find_request(Bytes bytes, Order order, bool big, RequestHead* request);

/// The server's answer to the greeting.
struct SetupHead {
  bool accepted = false;
  size_t size = 0;  ///< at most 256 KiB
};
Found find_setup(Bytes bytes, Order order, SetupHead* setup);

enum class ResponseKind { kError, kReply, kEvent };
struct ResponseHead {
  ResponseKind kind = ResponseKind::kEvent;
  std::optional<uint16_t> sequence;  ///< KeymapNotify has none
  uint64_t size = 0;                 ///< at least 32
};
Found find_response(Bytes bytes, Order order, ResponseHead* response);

}  // namespace v3d::xproxy
