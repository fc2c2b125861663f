/// DRI3's requests for the buffer of a pixmap: of one that came as a buffer, that; to one of the server, such
/// as GLX's and EGL's pbuffers and pixmaps, a buffer is made that shows what the pixmap shows.

#include <fcntl.h>
#include <xcb/xcb.h>

#include <utility>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/limits.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/server.h"

namespace v3d::xproxy {
namespace {

/// Rows begin at lines of the cache.
constexpr uint32_t kRowAlignment = 64;

/// What the reply says of a buffer.
using Describe = Message (*)(Order order, uint16_t sequence, const Layout& layout);

Message describe_plane(Order order, uint16_t sequence, const Layout& layout) {
  Message reply = make_reply(order, sequence);
  reply.u8(1, 1).u32(8, layout.stride * layout.height).u16(12, layout.width).u16(14, layout.height);
  return reply.u16(16, static_cast<uint16_t>(layout.stride))
      .u8(18, layout.depth)
      .u8(19, layout.bits_per_pixel);
}

Message describe_planes(Order order, uint16_t sequence, const Layout& layout) {
  Message reply = make_reply(order, sequence, 2);
  reply.u8(1, 1).u16(8, layout.width).u16(10, layout.height).u64(16, 0);  // DRM_FORMAT_MOD_LINEAR
  reply.u8(24, layout.depth).u8(25, layout.bits_per_pixel);
  return reply.u32(32, layout.stride).u32(36, layout.offset);
}

struct Export {
  uint8_t major, minor;
  uint32_t pixmap;
  Describe describe;
};

void refuse(Client& client, const Export& what, uint16_t sequence, uint8_t code) {
  client.send(make_error(client.order(), sequence, {code, what.pixmap, what.minor, what.major}));
}

void send_buffer(Client& client, const Export& what, uint16_t sequence, const Buffer& buffer) {
  const Layout& layout = buffer.layout();
  ioctl::UniqueFd descriptor(fcntl(buffer.dma_buf(), F_DUPFD_CLOEXEC, 0));
  if (!descriptor || (what.describe == describe_plane && layout.stride > UINT16_MAX))
    return refuse(client, what, sequence, XCB_ALLOC);
  client.send(what.describe(client.order(), sequence, layout), std::move(descriptor));
}

Layout layout_of(const Reader& geometry, const Server& server) {
  Layout layout;
  layout.depth = geometry.u8(1);
  layout.width = geometry.u16(16);
  layout.height = geometry.u16(18);
  layout.bits_per_pixel = server.bits_per_pixel(layout.depth);
  const uint32_t row = uint32_t{layout.width} * layout.bits_per_pixel / 8;
  layout.stride = (row + kRowAlignment - 1) & ~(kRowAlignment - 1);
  return layout;
}

/// Makes the buffer of a pixmap that the server knows, fills it and sends it; then the client's next requests
/// go on.
void make_buffer(Client& client, const Export& what, uint16_t sequence, const Reader& geometry) {
  Resources& resources = client.context().resources;
  Server& server = client.context().server;
  const Layout layout = layout_of(geometry, server);
  auto buffer = layout.bits_per_pixel < 8 || resources.buffers.count(&client) >= kMostBuffers
                    ? nullptr
                    : Buffer::allocate(resources.node(), layout);
  if (!buffer) {
    client.resume();
    return refuse(client, what, sequence, XCB_ALLOC);
  }
  resources.buffers.add(what.pixmap, &client, buffer);
  const Rectangle all{0, 0, layout.width, layout.height};
  server.read(what.pixmap, buffer, all, [handle = client.handle(), what, sequence, buffer] {
    const auto still = handle.lock();
    if (!still) return;
    send_buffer(**still, what, sequence, *buffer);
    (*still)->resume();
  });
}

void export_pixmap(Client& client, const Request& request, Describe describe) {
  if (request.fields.size() != 8) return client.fail(request, XCB_LENGTH);
  Resources& resources = client.context().resources;
  const Export what{request.major, request.minor, request.fields.u32(4), describe};
  const auto known = resources.buffers.find(what.pixmap);
  // Of a window's pixmap a buffer would not show what is drawn later; and with the server grabbed nothing can
  // be read.
  if (!known && (resources.window_pixmaps.find(what.pixmap) || client.grabs()))
    return client.fail(request, XCB_IMPLEMENTATION, what.pixmap);
  if (!known) client.hold();  // the reply comes before those to later requests
  with_geometry(
      client, request, what.pixmap,
      [&client, what, known](const Reader& geometry, uint16_t sequence) {
        if (known) return send_buffer(client, what, sequence, *known);
        make_buffer(client, what, sequence, geometry);
      },
      [&client, known] {
        if (!known) client.resume();
      });
}

}  // namespace

void handle_buffer_from_pixmap(Client& client, const Request& request) {
  export_pixmap(client, request, describe_plane);
}

void handle_buffers_from_pixmap(Client& client, const Request& request) {
  export_pixmap(client, request, describe_planes);
}

}  // namespace v3d::xproxy
