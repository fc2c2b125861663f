/// DRI3 1.2: the node, and pictures and fences that client and server share.

#include <xcb/dri3.h>
#include <xcb/sync.h>
#include <xcb/xcb.h>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/limits.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/server.h"

namespace v3d::xproxy {
namespace {

constexpr uint32_t kMajor = 1, kMinor = 2;
/// drm_fourcc.h: DRM_FORMAT_MOD_LINEAR, and "the driver knows", which for a shared buffer is linear, too.
constexpr uint64_t kLinear = 0, kImplied = 0x00ffffffffffffff;

void query_version(Client& client, const Request&) {
  Message reply = make_reply(client.order(), 0);
  reply.u32(8, kMajor).u32(12, kMinor);
  client.answer(std::move(reply));
}

void open_node(Client& client, const Request& request) {
  with_geometry(client, request, request.fields.u32(4),
                [&client, major = request.major, minor = request.minor](const Reader&, uint16_t sequence) {
                  ioctl::UniqueFd node = open_render_node();
                  if (!node)
                    return client.send(make_error(client.order(), sequence, {XCB_ALLOC, 0, minor, major}));
                  Message reply = make_reply(client.order(), sequence);
                  client.send(reply.u8(1, 1), std::move(node));
                });
}

/// The pixmap is made by the server under the client's id; what it shows is in the buffer.
void make_pixmap(Client& client, const Request& request, uint32_t drawable, uint64_t modifier,
                 const Layout& layout, ioctl::ReceivedFd dma_buf) {
  Table<Buffer>& buffers = client.context().resources.buffers;
  const uint32_t id = request.fields.u32(4);
  if (!dma_buf || (modifier != kLinear && modifier != kImplied)) return client.fail(request, XCB_VALUE);
  if (layout.bits_per_pixel < 8 ||
      layout.bits_per_pixel != client.context().server.bits_per_pixel(layout.depth))
    return client.fail(request, XCB_MATCH);
  if (buffers.count(&client) >= kMostBuffers) return client.fail(request, XCB_ALLOC);
  // What is none of the daemon's memory is not even asked about.
  auto buffer = ioctl::is_memory(dma_buf.get()) ? Buffer::import(dma_buf.take(), layout) : nullptr;
  if (!buffer) return client.fail(request, XCB_ALLOC);
  const bool is_new = buffers.add(id, &client, std::move(buffer));
  Message create = make_request(client.order(), XCB_CREATE_PIXMAP, layout.depth, 4);
  create.u32(4, id).u32(8, drawable).u16(12, layout.width).u16(14, layout.height);
  replace_creation(client, request, create, [&client, id, is_new] {
    if (is_new) client.context().resources.buffers.remove(id);
  });
}

void pixmap_from_buffer(Client& client, const Request& request) {
  ioctl::ReceivedFd dma_buf = client.take_descriptor();
  const Reader& in = request.fields;
  if (in.size() != 24) return client.fail(request, XCB_LENGTH);
  const Layout layout{0, in.u16(20), in.u16(16), in.u16(18), in.u8(22), in.u8(23)};
  make_pixmap(client, request, in.u32(8), kImplied, layout, std::move(dma_buf));
}

void pixmap_from_buffers(Client& client, const Request& request) {
  const Reader& in = request.fields;
  ioctl::ReceivedFd dma_buf = client.take_descriptor();
  for (int i = 1; i < in.u8(12); ++i) client.take_descriptor();
  if (in.size() != 64) return client.fail(request, XCB_LENGTH);
  if (in.u8(12) != 1) return client.fail(request, XCB_VALUE, in.u8(12));
  const Layout layout{in.u32(24), in.u32(20), in.u16(16), in.u16(18), in.u8(52), in.u8(53)};
  make_pixmap(client, request, in.u32(8), in.u64(56), layout, std::move(dma_buf));
}

void fence_from_fd(Client& client, const Request& request) {
  const ioctl::ReceivedFd descriptor = client.take_descriptor();
  const Reader& in = request.fields;
  Table<Fence>& fences = client.context().resources.fences;
  if (in.size() != 16) return client.fail(request, XCB_LENGTH);
  if (fences.count(&client) >= kMostFences) return client.fail(request, XCB_ALLOC);
  auto fence = ioctl::is_memory(descriptor.get()) ? Fence::map(descriptor.get()) : nullptr;
  if (!fence) return client.fail(request, XCB_MATCH);
  if (in.u8(12)) fence->trigger();
  const uint32_t id = in.u32(8);
  const bool is_new = fences.add(id, &client, std::move(fence));
  Message create =
      make_request(client.order(), client.context().server.extensions().sync, XCB_SYNC_CREATE_FENCE, 4);
  create.u32(4, in.u32(4)).u32(8, id).u8(12, in.u8(12));
  replace_creation(client, request, create, [&client, id, is_new] {
    if (is_new) client.context().resources.fences.remove(id);
  });
}

void supported_modifiers(Client& client, const Request& request) {
  with_geometry(client, request, request.fields.u32(4), [&client](const Reader&, uint16_t sequence) {
    // One of the window, one of the screen: both linear.
    Message reply = make_reply(client.order(), sequence, 4);
    client.send(reply.u32(8, 1).u32(12, 1).u64(32, kLinear).u64(40, kLinear));
  });
}

}  // namespace

void handle_dri3(Client& client, const Request& request) {
  switch (request.minor) {
    case XCB_DRI3_QUERY_VERSION:
      return query_version(client, request);
    case XCB_DRI3_OPEN:
      return open_node(client, request);
    case XCB_DRI3_PIXMAP_FROM_BUFFER:
      return pixmap_from_buffer(client, request);
    case XCB_DRI3_FENCE_FROM_FD:
      return fence_from_fd(client, request);
    case XCB_DRI3_GET_SUPPORTED_MODIFIERS:
      return supported_modifiers(client, request);
    case XCB_DRI3_PIXMAP_FROM_BUFFERS:
      return pixmap_from_buffers(client, request);
    case XCB_DRI3_BUFFER_FROM_PIXMAP:
      return handle_buffer_from_pixmap(client, request);
    case XCB_DRI3_BUFFERS_FROM_PIXMAP:
      return handle_buffers_from_pixmap(client, request);
    case XCB_DRI3_FD_FROM_FENCE:
      return client.fail(request, XCB_IMPLEMENTATION);
    default:
      return client.fail(request, XCB_REQUEST);
  }
}

}  // namespace v3d::xproxy
