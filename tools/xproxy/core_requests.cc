/// Requests of the core protocol, and of extensions that the proxy does not offer itself.

#include <xcb/bigreq.h>
#include <xcb/shm.h>
#include <xcb/xcb.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/limits.h"
#include "tools/xproxy/presenter.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/server.h"

namespace v3d::xproxy {
namespace {

constexpr uint8_t kNameWindowPixmap = 6;  ///< compositeproto 0.2
constexpr std::string_view kDri3 = "DRI3", kPresent = "Present";

void query_extension(Client& client, const Request& request) {
  const size_t length = request.fields.u16(4);
  if (request.fields.size() < 8 + length) return client.fail(request, XCB_LENGTH);
  const std::string_view name(reinterpret_cast<const char*>(request.fields.bytes().data()) + 8, length);
  const Extensions& extensions = client.context().server.extensions();
  if (name != kDri3 && name != kPresent) return client.pass(request);
  Message reply = make_reply(client.order(), 0);
  reply.u8(8, 1).u8(9, name == kDri3 ? extensions.dri3 : extensions.present);
  client.answer(std::move(reply));
}

/// Adds what the proxy offers to the names that the server has.
void add_names(Client& client, const Reader& response, uint16_t sequence) {
  std::vector<std::string_view> names;
  const auto* text = reinterpret_cast<const char*>(response.bytes().data());
  size_t at = kPacketSize;
  for (int i = 0; i < response.u8(1) && at < response.size(); ++i) {
    const size_t length = std::min<size_t>(response.u8(at), response.size() - at - 1);
    names.emplace_back(text + at + 1, length);
    at += 1 + length;
  }
  for (const std::string_view own : {kDri3, kPresent})
    if (std::find(names.begin(), names.end(), own) == names.end() && names.size() < UINT8_MAX)
      names.push_back(own);
  size_t bytes = 0;
  for (const std::string_view name : names) bytes += 1 + name.size();
  Message reply = make_reply(client.order(), sequence, static_cast<uint32_t>(padded(bytes) / 4));
  reply.u8(1, static_cast<uint8_t>(names.size()));
  at = kPacketSize;
  for (const std::string_view name : names) {
    reply.u8(at++, static_cast<uint8_t>(name.size()));
    for (const char letter : name) reply.u8(at++, static_cast<uint8_t>(letter));
  }
  client.send(reply);
}

void list_extensions(Client& client, const Request& request) {
  client.replace(make_request(client.order(), XCB_LIST_EXTENSIONS, 0, 1),
                 [&client, major = request.major](const Reader& response, uint16_t sequence) {
                   if (response.u8(0) == 0) return client.send_error(response, sequence, major, 0);
                   add_names(client, response, sequence);
                 });
}

void grab_server(Client& client, const Request& request) {
  client.set_grab(request.major == XCB_GRAB_SERVER);
  client.pass(request);
}

void free_pixmap(Client& client, const Request& request) {
  client.context().resources.buffers.remove(request.fields.u32(4));
  client.context().resources.window_pixmaps.remove(request.fields.u32(4));
  client.pass(request);
}

/// Composite's NameWindowPixmap.
void name_window_pixmap(Client& client, const Request& request) {
  Table<WindowPixmap>& named = client.context().resources.window_pixmaps;
  if (named.count(&client) >= kMostWindowPixmaps) return client.fail(request, XCB_ALLOC);
  named.add(request.fields.u32(8), &client, std::make_shared<WindowPixmap>());
  client.pass(request);
}

/// A request that reads or writes a pixmap of the GPU. The client's next ones wait until it is done: the
/// server's pixmap and its buffer are two.
struct Access {
  uint8_t major, minor;
  std::vector<uint8_t> request;
  uint32_t source = 0, target = 0;
  std::shared_ptr<Buffer> read, written;  ///< null: of the server alone
  Rectangle part{};                       ///< of the target, inside it
};

void finish_access(Client& client, const std::shared_ptr<Access>& access) {
  client.pass({access->major, access->minor, Reader(access->request, client.order())});
  if (!access->written || access->part.width == 0 || access->part.height == 0) return client.resume();
  client.after_all([&client, access] {
    client.context().server.read(access->target, access->written, access->part, [handle = client.handle()] {
      if (const auto still = handle.lock()) (*still)->resume();
    });
  });
}

void begin_access(Client& client, const std::shared_ptr<Access>& access) {
  // With the server grabbed, what the client would wait for could not come.
  if (client.grabs())
    return client.pass({access->major, access->minor, Reader(access->request, client.order())});
  client.hold();
  if (!access->read) return finish_access(client, access);
  // The server must have the pixmap before it is drawn into.
  client.after_all([&client, access] {
    client.context().presenter.upload(access->source, access->read, [handle = client.handle(), access] {
      if (const auto still = handle.lock()) finish_access(**still, access);
    });
  });
}

std::shared_ptr<Access> make_access(Client& client, const Request& request, size_t source) {
  auto access = std::make_shared<Access>();
  const Bytes bytes = request.fields.bytes();
  access->major = request.major;
  access->minor = request.minor;
  access->request.assign(bytes.begin(), bytes.end());
  access->source = request.fields.u32(source);
  access->read = client.context().resources.buffers.find(access->source);
  return access;
}

/// GetImage, of the core or of MIT-SHM.
void get_image(Client& client, const Request& request) {
  const auto access = make_access(client, request, 4);
  if (!access->read) return client.pass(request);
  begin_access(client, access);
}

/// CopyArea or CopyPlane.
void copy_area(Client& client, const Request& request) {
  const Reader& in = request.fields;
  const auto access = make_access(client, request, 4);
  access->target = in.u32(8);
  access->written = client.context().resources.buffers.find(access->target);
  if (!access->read && !access->written) return client.pass(request);
  if (access->written) {
    const Layout& layout = access->written->layout();
    access->part = inside({in.s16(20), in.s16(22), in.u16(24), in.u16(26)}, layout.width, layout.height);
  }
  begin_access(client, access);
}

void enable_big_requests(Client& client, const Request& request) {
  client.enable_big_requests();
  client.pass(request);
}

void attach_memory(Client& client, const Request& request) { client.pass(request, client.take_descriptor()); }

}  // namespace

void with_geometry(Client& client, const Request& request, uint32_t drawable, Client::Response done,
                   std::function<void()> failed) {
  Message ask = make_request(client.order(), XCB_GET_GEOMETRY, 0, 2);
  client.replace(ask.u32(4, drawable),
                 [&client, major = request.major, minor = request.minor, done = std::move(done),
                  failed = std::move(failed)](const Reader& response, uint16_t sequence) {
                   if (response.u8(0) != 0) return done(response, sequence);
                   client.send_error(response, sequence, major, minor);
                   if (failed) failed();
                 });
}

void replace_creation(Client& client, const Request& request, const Message& create,
                      std::function<void()> undo) {
  client.replace(
      create,
      [&client, major = request.major, minor = request.minor, undo = std::move(undo)](const Reader& error,
                                                                                      uint16_t sequence) {
        undo();
        client.send_error(error, sequence, major, minor);
      },
      false);
}

Handler find_core_handler(uint8_t major) {
  switch (major) {
    case XCB_QUERY_EXTENSION:
      return query_extension;
    case XCB_LIST_EXTENSIONS:
      return list_extensions;
    case XCB_FREE_PIXMAP:
      return free_pixmap;
    case XCB_GRAB_SERVER:
    case XCB_UNGRAB_SERVER:
      return grab_server;
    case XCB_COPY_AREA:
    case XCB_COPY_PLANE:
      return copy_area;
    case XCB_GET_IMAGE:
      return get_image;
    default:
      return nullptr;
  }
}

Handler find_handler(Client& client, uint8_t major, uint8_t minor) {
  const Extensions& extensions = client.context().server.extensions();
  if (major == extensions.dri3) return handle_dri3;
  if (major == extensions.present) return handle_present;
  if (major == extensions.composite && major != 0 && minor == kNameWindowPixmap) return name_window_pixmap;
  if (major == extensions.sync && major != 0) return find_sync_handler(minor);
  if (major == extensions.shm && major != 0 && minor == XCB_SHM_ATTACH_FD) return attach_memory;
  if (major == extensions.shm && major != 0 && minor == XCB_SHM_GET_IMAGE) return get_image;
  if (major == extensions.big_requests && major != 0 && minor == XCB_BIG_REQUESTS_ENABLE)
    return enable_big_requests;
  return find_core_handler(major);
}

void look_at_event(Client& client, const Reader& event) {
  // One that a client sent has other coordinates.
  if (event.u8(0) != XCB_CONFIGURE_NOTIFY) return;
  client.context().presenter.configured(&client, event.u32(8),
                                        {event.s16(16), event.s16(18), event.u16(20), event.u16(22)});
}

}  // namespace v3d::xproxy
