/// SYNC's requests about fences that came by DRI3. The server has a fence of that id, too, by which it checks
/// ids; what it is worth is in the memory that the client shares with the proxy.

#include <xcb/sync.h>
#include <xcb/xcb.h>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/resources.h"

namespace v3d::xproxy {
namespace {

std::shared_ptr<Fence> find(Client& client, const Request& request) {
  return client.context().resources.fences.find(request.fields.u32(4));
}

/// Does it when what the client asked for before has been done.
/// @param act  gets the sequence number of the request
void in_turn(Client& client, std::function<void(uint16_t)> act) {
  client.replace(make_request(client.order(), XCB_GET_INPUT_FOCUS, 0, 1),
                 [act = std::move(act)](const Reader&, uint16_t sequence) { act(sequence); });
}

void trigger(Client& client, const Request& request) {
  const auto fence = find(client, request);
  if (!fence) return client.pass(request);
  in_turn(client, [fence](uint16_t) { fence->trigger(); });
}

void reset(Client& client, const Request& request) {
  const auto fence = find(client, request);
  if (!fence) return client.pass(request);
  const Error error{XCB_MATCH, request.fields.u32(4), request.minor, request.major};
  in_turn(client, [&client, fence, error](uint16_t sequence) {
    if (!fence->triggered()) return client.send(make_error(client.order(), sequence, error));
    fence->reset();
  });
}

void query(Client& client, const Request& request) {
  const auto fence = find(client, request);
  if (!fence) return client.pass(request);
  in_turn(client, [&client, fence](uint16_t sequence) {
    Message reply = make_reply(client.order(), sequence);
    client.send(reply.u8(8, fence->triggered() ? 1 : 0));
  });
}

void destroy(Client& client, const Request& request) {
  client.context().resources.fences.remove(request.fields.u32(4));
  client.pass(request);
}

/// The server would wait for its own fence, which nobody triggers.
void await(Client& client, const Request& request) {
  for (size_t at = 4; at + 4 <= request.fields.size(); at += 4)
    if (client.context().resources.fences.find(request.fields.u32(at)))
      return client.fail(request, XCB_IMPLEMENTATION);
  client.pass(request);
}

}  // namespace

Handler find_sync_handler(uint8_t minor) {
  switch (minor) {
    case XCB_SYNC_TRIGGER_FENCE:
      return trigger;
    case XCB_SYNC_RESET_FENCE:
      return reset;
    case XCB_SYNC_DESTROY_FENCE:
      return destroy;
    case XCB_SYNC_QUERY_FENCE:
      return query;
    case XCB_SYNC_AWAIT_FENCE:
      return await;
    default:
      return nullptr;
  }
}

}  // namespace v3d::xproxy
