/// Present 1.2: pictures for windows, and what their clients want to know of them.

#include <xcb/present.h>
#include <xcb/xcb.h>
#include <xcb/xfixes.h>

#include <optional>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/limits.h"
#include "tools/xproxy/presenter.h"
#include "tools/xproxy/resources.h"

namespace v3d::xproxy {
namespace {

constexpr uint32_t kMajor = 1, kMinor = 2;
constexpr size_t kPixmapRequest = 72, kNotify = 8;  ///< bytes of PresentPixmap, and of each of its notifies

Geometry read_geometry(const Reader& reply) {
  return {reply.u8(1), {reply.s16(12), reply.s16(14), reply.u16(16), reply.u16(18)}};
}

/// The error that a request gets, as a response to it.
void refuse(Client& client, const Request& request, uint16_t sequence, uint8_t code, uint32_t value) {
  client.send(make_error(client.order(), sequence, {code, value, request.minor, request.major}));
}

void query_version(Client& client, const Request&) {
  Message reply = make_reply(client.order(), 0);
  reply.u32(8, kMajor).u32(12, kMinor);
  client.answer(std::move(reply));
}

void query_capabilities(Client& client, const Request&) {
  Message reply = make_reply(client.order(), 0);
  reply.u32(8, XCB_PRESENT_CAPABILITY_ASYNC | XCB_PRESENT_CAPABILITY_FENCE);
  client.answer(std::move(reply));
}

/// Goes on once the server has come to this request, with what it knows of the window.
/// @param done  gets the request without its fields
void with_window(Client& client, const Request& request, uint32_t window,
                 std::function<void(const Request&, uint16_t sequence)> done) {
  const Request head{request.major, request.minor, Reader({}, client.order())};
  with_geometry(client, request, window,
                [&client, window, head, done = std::move(done)](const Reader& geometry, uint16_t sequence) {
                  client.context().presenter.learn(&client, window, read_geometry(geometry));
                  done(head, sequence);
                });
}

void select_input(Client& client, const Request& request) {
  const Reader& in = request.fields;
  if (in.size() != 16) return client.fail(request, XCB_LENGTH);
  const EventContext context{in.u32(4), in.u32(8)};
  const uint32_t events = in.u32(12);
  with_window(client, request, context.window,
              [&client, context, events](const Request& head, uint16_t sequence) {
                switch (client.context().presenter.select(&client, context, events)) {
                  case Presenter::Selected::kDone:
                    return;
                  case Presenter::Selected::kOtherWindow:
                    return refuse(client, head, sequence, XCB_MATCH, context.window);
                  case Presenter::Selected::kTooMany:
                    return refuse(client, head, sequence, XCB_ALLOC, 0);
                }
              });
}

void notify_msc(Client& client, const Request& request) {
  const Reader& in = request.fields;
  if (in.size() != 40) return client.fail(request, XCB_LENGTH);
  const uint32_t window = in.u32(4), serial = in.u32(8);
  const Target target{in.u64(16), in.u64(24), in.u64(32)};
  if (target.divisor ? target.remainder >= target.divisor : target.remainder != 0)
    return client.fail(request, XCB_VALUE, static_cast<uint32_t>(target.remainder));
  with_window(client, request, window,
              [&client, window, serial, target](const Request& head, uint16_t sequence) {
                if (!client.context().presenter.notify_msc(&client, window, serial, target))
                  refuse(client, head, sequence, XCB_ALLOC, 0);
              });
}

/// Parts of a picture that lie inside it.
std::vector<Rectangle> all_inside(const std::vector<Rectangle>& areas, uint16_t width, uint16_t height) {
  std::vector<Rectangle> parts;
  for (const Rectangle& area : areas) {
    const Rectangle part = inside(area, width, height);
    if (part.width > 0 && part.height > 0) parts.push_back(part);
  }
  return parts;
}

Rectangle read_rectangle(const Reader& in, size_t at) {
  return {in.s16(at), in.s16(at + 2), in.u16(at + 4), in.u16(at + 6)};
}

/// The reply to XFixesFetchRegion: its bounds, and after them its rectangles.
std::vector<Rectangle> read_region(const Reader& reply) {
  const size_t count = (reply.size() - kPacketSize) / 8;
  if (count > kMostRectangles) return {read_rectangle(reply, 8)};
  std::vector<Rectangle> rectangles;
  for (size_t i = 0; i < count; ++i) rectangles.push_back(read_rectangle(reply, kPacketSize + i * 8));
  return rectangles;
}

/// @return what is wrong with the picture for the window; XCB_NONE: nothing
uint8_t fit(uint8_t depth, Present& present) {
  if (!present.buffer) return depth ? 0 : XCB_WINDOW;
  const Layout& layout = present.buffer->layout();
  if (layout.depth != depth) return XCB_MATCH;
  present.rectangles = all_inside(present.rectangles, layout.width, layout.height);
  return 0;
}

void queue(Client& client, const Request& head, uint16_t sequence, const std::shared_ptr<Present>& present) {
  const std::optional<uint8_t> depth = client.context().presenter.depth_of(present->window);
  if (!depth) return refuse(client, head, sequence, XCB_WINDOW, present->window);
  if (const uint8_t code = fit(*depth, *present))
    return refuse(client, head, sequence, code, present->window);
  if (!client.context().presenter.present(std::move(*present))) refuse(client, head, sequence, XCB_ALLOC, 0);
}

/// False: it names a fence that is none of DRI3's.
bool read_fences(Client& client, const Reader& in, Present* present) {
  const Table<Fence>& fences = client.context().resources.fences;
  present->wait = fences.find(in.u32(32));
  present->idle_id = in.u32(36);
  present->idle = fences.find(present->idle_id);
  return (in.u32(32) == 0 || present->wait) && (in.u32(36) == 0 || present->idle);
}

Present read_present(Client& client, const Reader& in) {
  Present present{};
  present.client = &client;
  present.window = in.u32(4);
  present.pixmap = in.u32(8);
  present.serial = in.u32(12);
  present.buffer = client.context().resources.buffers.find(present.pixmap);
  present.x = in.s16(24);
  present.y = in.s16(26);
  present.async = in.u32(40) & XCB_PRESENT_OPTION_ASYNC;
  present.target = {in.u64(48), in.u64(56), in.u64(64)};
  for (size_t at = kPixmapRequest; at + kNotify <= in.size(); at += kNotify)
    present.notifies.push_back({in.u32(at), in.u32(at + 4)});
  const uint16_t most = INT16_MAX;
  present.rectangles = {{0, 0, most, most}};
  return present;
}

void present_pixmap(Client& client, const Request& request) {
  const Reader& in = request.fields;
  if (in.size() < kPixmapRequest || (in.size() - kPixmapRequest) % kNotify != 0)
    return client.fail(request, XCB_LENGTH);
  if (in.size() > kPixmapRequest + kNotify * kMostNotifies) return client.fail(request, XCB_ALLOC);
  const auto present = std::make_shared<Present>(read_present(client, in));
  const Target& target = present->target;
  if (target.divisor ? target.remainder >= target.divisor : target.remainder != 0)
    return client.fail(request, XCB_VALUE, static_cast<uint32_t>(target.remainder));
  if (!read_fences(client, in, present.get())) return client.fail(request, XCB_IMPLEMENTATION);
  const uint32_t region = in.u32(20);
  const uint8_t xfixes = client.context().server.extensions().xfixes;
  const bool is_known = client.context().presenter.depth_of(present->window).has_value();
  if (region == 0 || xfixes == 0 || !is_known)  // of a window's first picture all is shown
    return with_window(client, request, present->window,
                       [&client, present](const Request& head, uint16_t sequence) {
                         queue(client, head, sequence, present);
                       });
  // The region as it is now: the client uses it again for the next frame.
  Message fetch = make_request(client.order(), xfixes, XCB_XFIXES_FETCH_REGION, 2);
  const Request head{request.major, request.minor, Reader({}, client.order())};
  client.replace(fetch.u32(4, region), [&client, present, head](const Reader& response, uint16_t sequence) {
    if (response.u8(0) == 0) return client.send_error(response, sequence, head.major, head.minor);
    present->rectangles = read_region(response);
    queue(client, head, sequence, present);
  });
}

}  // namespace

void handle_present(Client& client, const Request& request) {
  switch (request.minor) {
    case XCB_PRESENT_QUERY_VERSION:
      return query_version(client, request);
    case XCB_PRESENT_PIXMAP:
      return present_pixmap(client, request);
    case XCB_PRESENT_NOTIFY_MSC:
      return notify_msc(client, request);
    case XCB_PRESENT_SELECT_INPUT:
      return select_input(client, request);
    case XCB_PRESENT_QUERY_CAPABILITIES:
      return query_capabilities(client, request);
    default:
      return client.fail(request, XCB_REQUEST);
  }
}

}  // namespace v3d::xproxy
