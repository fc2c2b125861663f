#include "tools/xproxy/server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xcb/shm.h>
#include <xcb/xcbext.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {
namespace {

struct Free {
  void operator()(void* memory) const { free(memory); }
};
template <typename Reply>
using Owned = std::unique_ptr<Reply, Free>;

class Attachment : public Buffer::Segment {
 public:
  explicit Attachment(xcb_connection_t* connection) : connection_(connection) {
    id = xcb_generate_id(connection);
  }
  ~Attachment() override { xcb_shm_detach(connection_, id); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 private:
  xcb_connection_t* connection_;
};

constexpr uint8_t kFirstExtension = 128, kLastExtension = 255;
/// Of a request that carries pixels or names a segment.
constexpr size_t kRequestHead = 40;

}  // namespace

Rectangle inside(const Rectangle& area, uint16_t width, uint16_t height) {
  const int left = std::clamp<int>(area.x, 0, width), top = std::clamp<int>(area.y, 0, height);
  const int right = std::clamp<int>(area.x + area.width, left, width);
  const int bottom = std::clamp<int>(area.y + area.height, top, height);
  return {static_cast<int16_t>(left), static_cast<int16_t>(top), static_cast<uint16_t>(right - left),
          static_cast<uint16_t>(bottom - top)};
}

/// A server that starts anew, since its last client has gone, refuses the next one meanwhile.
std::unique_ptr<Server> Server::connect(const std::string& display, std::string* error) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kPause(20);
  std::unique_ptr<Server> server;
  for (int n = 0; n < kTries; ++n) {
    if (n > 0) std::this_thread::sleep_for(kPause);
    server.reset(new Server(xcb_connect(display.c_str(), nullptr)));
    *error = server->learn();
    if (server->is_alive()) break;
  }
  if (!error->empty()) server.reset();
  return server;
}

Server::~Server() {
  // Buffers know the connection.
  copies_.clear();
  unconfirmed_.clear();
  xcb_disconnect(connection_);
}

/// @return what the proxy cannot do with this server; empty: nothing
std::string Server::learn() {
  if (!is_alive()) return "the X server does not answer";
  const xcb_setup_t* setup = xcb_get_setup(connection_);
  if (setup->image_byte_order != XCB_IMAGE_ORDER_LSB_FIRST) return "the X server's images are big-endian";
  learn_extensions();
  if (!is_alive()) return "the X server went away";
  if (extensions_.dri3 == 0 || extensions_.present == 0) return "the X server has no free opcodes";
  shares_memory_ = can_share_memory();
  return {};
}

uint8_t Server::major_of(const char* name) {
  const auto cookie = xcb_query_extension(connection_, static_cast<uint16_t>(strlen(name)), name);
  const Owned<xcb_query_extension_reply_t> reply(xcb_query_extension_reply(connection_, cookie, nullptr));
  return reply && reply->present ? reply->major_opcode : uint8_t{0};
}

void Server::learn_extensions() {
  extensions_.sync = major_of("SYNC");
  extensions_.xfixes = major_of("XFIXES");
  extensions_.shm = major_of("MIT-SHM");
  extensions_.big_requests = major_of("BIG-REQUESTS");
  extensions_.composite = major_of("Composite");
  const Owned<xcb_list_extensions_reply_t> list(
      xcb_list_extensions_reply(connection_, xcb_list_extensions(connection_), nullptr));
  if (!list) return;
  std::set<uint8_t> taken;
  std::vector<std::string> names;
  for (auto at = xcb_list_extensions_names_iterator(list.get()); at.rem; xcb_str_next(&at))
    names.emplace_back(xcb_str_name(at.data), static_cast<size_t>(xcb_str_name_length(at.data)));
  for (const std::string& name : names) taken.insert(major_of(name.c_str()));
  for (int opcode = kLastExtension; opcode >= kFirstExtension; --opcode) {
    if (taken.count(static_cast<uint8_t>(opcode))) continue;
    uint8_t& own = extensions_.dri3 == 0 ? extensions_.dri3 : extensions_.present;
    if (own != 0) break;
    own = static_cast<uint8_t>(opcode);
  }
}

/// Whether the server maps memory of ours, which takes a local one.
bool Server::can_share_memory() {
  int family = 0;
  socklen_t size = sizeof(family);
  if (getsockopt(fd(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family != AF_UNIX) return false;
  if (extensions_.shm == 0) return false;
  const Owned<xcb_shm_query_version_reply_t> version(
      xcb_shm_query_version_reply(connection_, xcb_shm_query_version(connection_), nullptr));
  if (!version ||
      std::pair(version->major_version, version->minor_version) < std::pair<uint16_t, uint16_t>(1, 2))
    return false;
  const int memory = memfd_create("v3demu-x11", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, 4096) != 0) return false;
  const uint32_t segment = xcb_generate_id(connection_);
  const Owned<xcb_generic_error_t> error(
      xcb_request_check(connection_, xcb_shm_attach_fd_checked(connection_, segment, memory, 1)));
  if (error || !is_alive()) return false;
  xcb_shm_detach(connection_, segment);
  return true;
}

const xcb_format_t* Server::format(uint8_t depth) const {
  for (auto at = xcb_setup_pixmap_formats_iterator(xcb_get_setup(connection_)); at.rem; xcb_format_next(&at))
    if (at.data->depth == depth) return at.data;
  return nullptr;
}

uint8_t Server::bits_per_pixel(uint8_t depth) const {
  const xcb_format_t* const found = format(depth);
  return found ? found->bits_per_pixel : uint8_t{0};
}

size_t Server::image_row_bytes(uint8_t depth, uint16_t width) const {
  const xcb_format_t* const found = format(depth);
  if (!found || found->scanline_pad == 0) return 0;
  const size_t pad = found->scanline_pad;
  return (size_t{width} * found->bits_per_pixel + pad - 1) / pad * pad / 8;
}

std::unique_ptr<Buffer::Segment> Server::share(ioctl::UniqueFd memory, std::function<void()> known) {
  if (!shares_memory_) return nullptr;
  auto attachment = std::make_unique<Attachment>(connection_);
  const auto cookie = xcb_shm_attach_fd_checked(connection_, attachment->id, memory.release(), 1);
  confirm(0, [this, sequence = cookie.sequence, known = std::move(known)] {
    void* reply = nullptr;
    xcb_generic_error_t* error = nullptr;
    xcb_poll_for_reply(connection_, sequence, &reply, &error);
    const Owned<xcb_generic_error_t> held(error);
    if (!error) known();
  });
  xcb_flush(connection_);
  return attachment;
}

void Server::watch(xcb_window_t window, std::function<void(const Placement&)> known) {
  const uint32_t mask = XCB_EVENT_MASK_STRUCTURE_NOTIFY;
  xcb_change_window_attributes(connection_, window, XCB_CW_EVENT_MASK, &mask);
  const auto cookie = xcb_get_geometry(connection_, window);
  unconfirmed_.push_back({cookie.sequence, 0, [known = std::move(known)](const void* reply) {
                            const auto* it = static_cast<const xcb_get_geometry_reply_t*>(reply);
                            if (it) known({it->x, it->y, it->width, it->height});
                          }});
  xcb_flush(connection_);
}

void Server::unwatch(xcb_window_t window) {
  const uint32_t mask = XCB_EVENT_MASK_NO_EVENT;
  xcb_change_window_attributes(connection_, window, XCB_CW_EVENT_MASK, &mask);
}

/// Zero: the server cannot map it.
uint32_t Server::segment_of(Buffer& buffer) {
  // The server counts pixels, not bytes.
  if (!shares_memory_ || buffer.layout().stride % (buffer.layout().bits_per_pixel / 8) != 0) return 0;
  if (!buffer.segment) {
    const int descriptor = dup(buffer.dma_buf());  // libxcb closes it
    if (descriptor < 0) return 0;
    buffer.segment = std::make_unique<Attachment>(connection_);
    xcb_shm_attach_fd(connection_, buffer.segment->id, descriptor, 1);
  }
  return buffer.segment->id;
}

/// One of our own for each depth, made with a pixmap: the window may be gone.
xcb_gcontext_t Server::context(uint8_t depth) {
  xcb_gcontext_t& context = contexts_[depth];
  if (context == 0) {
    const xcb_window_t root = xcb_setup_roots_iterator(xcb_get_setup(connection_)).data->root;
    const xcb_pixmap_t pixmap = xcb_generate_id(connection_);
    context = xcb_generate_id(connection_);
    const uint32_t no_exposures = 0;
    xcb_create_pixmap(connection_, depth, pixmap, root, 1, 1);
    xcb_create_gc(connection_, context, pixmap, XCB_GC_GRAPHICS_EXPOSURES, &no_exposures);
    xcb_free_pixmap(connection_, pixmap);
  }
  return context;
}

size_t Server::send(const Copy& copy, const Rectangle& area) {
  const auto x = static_cast<int16_t>(area.x + copy.x), y = static_cast<int16_t>(area.y + copy.y);
  const xcb_gcontext_t gc = context(copy.depth);
  if (!copy.buffer) {
    xcb_copy_area(connection_, copy.pixmap, copy.target, gc, area.x, area.y, x, y, area.width, area.height);
    return 0;
  }
  const Layout& layout = copy.buffer->layout();
  const size_t pixel = layout.bits_per_pixel / 8;
  if (const uint32_t segment = segment_of(*copy.buffer)) {
    xcb_shm_put_image(connection_, copy.target, gc, static_cast<uint16_t>(layout.stride / pixel),
                      layout.height, static_cast<uint16_t>(area.x), static_cast<uint16_t>(area.y), area.width,
                      area.height, x, y, copy.depth, XCB_IMAGE_FORMAT_Z_PIXMAP, 0, segment, layout.offset);
    return 0;
  }
  const auto pixels = copy.buffer->pixels();
  if (pixels.empty()) return 0;
  const size_t row = area.width * pixel;
  std::vector<uint8_t> rows(padded(row) * area.height);
  for (size_t i = 0; i < area.height; ++i)
    memcpy(rows.data() + i * padded(row),
           pixels.data() + (static_cast<size_t>(area.y) + i) * layout.stride +
               static_cast<size_t>(area.x) * pixel,
           row);
  xcb_put_image(connection_, XCB_IMAGE_FORMAT_Z_PIXMAP, copy.target, gc, area.width, area.height, x, y, 0,
                copy.depth, static_cast<uint32_t>(rows.size()), rows.data());
  return rows.size();
}

/// Its rectangles, the taller ones in bands that fit a request.
std::vector<Rectangle> Server::cut(const Copy& copy) const {
  if (!copy.buffer || shares_memory_) return copy.rectangles;
  const size_t most =
      std::min(size_t{xcb_get_maximum_request_length(connection_)} * 4 - kRequestHead, kMostInFlight / 2);
  std::vector<Rectangle> bands;
  for (const Rectangle& all : copy.rectangles) {
    const size_t row = padded(size_t{all.width} * copy.buffer->layout().bits_per_pixel / 8);
    const size_t rows = std::max<size_t>(most / row, 1);
    for (size_t at = 0; at < all.height; at += rows)
      bands.push_back({all.x, static_cast<int16_t>(all.y + static_cast<int>(at)), all.width,
                       static_cast<uint16_t>(std::min(rows, all.height - at))});
  }
  return bands;
}

void Server::copy(Copy copy) {
  copy.rectangles = cut(copy);
  std::reverse(copy.rectangles.begin(), copy.rectangles.end());  // the last one is sent first
  copies_.push_back(std::move(copy));
  pump();
}

void Server::read(xcb_pixmap_t pixmap, std::shared_ptr<Buffer> buffer, const Rectangle& part,
                  std::function<void()> done) {
  constexpr uint32_t kAllPlanes = 0xffffffff;
  const auto cookie = xcb_get_image(connection_, XCB_IMAGE_FORMAT_Z_PIXMAP, pixmap, part.x, part.y,
                                    part.width, part.height, kAllPlanes);
  const auto write = [buffer = std::move(buffer), part, done = std::move(done)](const void* reply) {
    if (reply) {
      const auto* image = static_cast<const xcb_get_image_reply_t*>(reply);
      // libxcb does not change what it gives; its function does not say so.
      const uint8_t* rows = xcb_get_image_data(const_cast<xcb_get_image_reply_t*>(image));
      buffer->write(part.x, part.y, part.width, part.height, {rows, size_t{image->length} * 4});
    }
    done();
  };
  unconfirmed_.push_back({cookie.sequence, 0, write});
  xcb_flush(connection_);
}

/// Asks for an answer after all that was sent.
void Server::confirm(size_t bytes, std::function<void()> done) {
  in_flight_ += bytes;
  unconfirmed_.push_back(
      {xcb_get_input_focus(connection_).sequence, bytes, [done = std::move(done)](const void*) {
         if (done) done();
       }});
}

/// Sends what the server is likely to take at once: while some client holds a grab, it reads nothing of
/// ours, and a proxy that waits for it to read would keep that client's requests back, too.
void Server::pump() {
  while (!copies_.empty() && in_flight_ < kMostInFlight) {
    Copy& first = copies_.front();
    size_t bytes = 0;
    if (!first.rectangles.empty()) {
      bytes = send(first, first.rectangles.back());
      first.rectangles.pop_back();
    }
    const bool last = first.rectangles.empty();
    if (last || bytes > 0) confirm(bytes, last ? std::move(first.done) : nullptr);
    if (last) copies_.pop_front();
  }
  xcb_flush(connection_);
}

/// @param last  the last request whose answer is to be taken; nothing: all that have come
void Server::take_answers(std::optional<uint32_t> last) {
  const auto is_later = [&last](unsigned sequence) {
    return last && static_cast<int32_t>(sequence - *last) > 0;
  };
  while (!unconfirmed_.empty() && !is_later(unconfirmed_.front().sequence)) {
    void* reply = nullptr;
    xcb_generic_error_t* error = nullptr;
    if (!xcb_poll_for_reply(connection_, unconfirmed_.front().sequence, &reply, &error)) return;
    const Owned<void> held_reply(reply);
    const Owned<xcb_generic_error_t> held_error(error);
    Unconfirmed first = std::move(unconfirmed_.front());
    unconfirmed_.pop_front();
    in_flight_ -= first.bytes;
    first.done(reply);
  }
}

void Server::process(const Events& events) {
  while (const Owned<xcb_generic_event_t> event{xcb_poll_for_event(connection_)}) {
    // libxcb keeps answers and events apart; what was answered before the event is older news.
    take_answers(event->full_sequence);
    // Errors are of windows that have gone meanwhile.
    const int type = event->response_type & 0x7f;
    if (type == XCB_CONFIGURE_NOTIFY)
      events.configured(*reinterpret_cast<const xcb_configure_notify_event_t*>(event.get()));
    else if (type == XCB_DESTROY_NOTIFY)
      events.destroyed(reinterpret_cast<const xcb_destroy_notify_event_t*>(event.get())->window);
  }
  take_answers({});
  pump();
}

}  // namespace v3d::xproxy
