/// This is the proxy's own connection to the X server: what the server can, pictures that go there, and what
/// happens to windows.
#pragma once

#include <xcb/xcb.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/xproxy/buffer.h"
#include "tools/xproxy/events.h"

namespace v3d::xproxy {

struct Rectangle {
  int16_t x, y;
  uint16_t width, height;  ///< pixels
};

/// The part of an area that lies in a picture of that size; of width or height 0: none.
Rectangle inside(const Rectangle& area, uint16_t width, uint16_t height);

/// Major opcodes, equal for all clients; 0: the server does not have the extension.
struct Extensions {
  uint8_t dri3, present;  ///< the proxy's own, which the server uses for nothing else
  uint8_t sync, xfixes, shm, big_requests, composite;
};

/// Where a picture goes. Pixels keep their place: source and target differ by an offset alone.
struct Copy {
  xcb_drawable_t target;
  uint8_t depth;
  std::shared_ptr<Buffer> buffer;  ///< null: from `pixmap`
  xcb_pixmap_t pixmap;
  std::vector<Rectangle> rectangles;  ///< in the source, and inside it
  int16_t x, y;                       ///< of the source's corner in the target
  std::function<void()> done;         ///< the server has carried it out, or could not
};

class Server {
 public:
  struct Events {
    std::function<void(const xcb_configure_notify_event_t&)> configured;
    std::function<void(xcb_window_t)> destroyed;
  };

  /// @return null with the reason in *error
  static std::unique_ptr<Server> connect(const std::string& display, std::string* error);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Extensions& extensions() const { return extensions_; }
  /// Bits of a pixel in images of a depth; 0: there are none.
  uint8_t bits_per_pixel(uint8_t depth) const;
  /// Bytes of a row of an image; 0: there are none of that depth.
  size_t image_row_bytes(uint8_t depth, uint16_t width) const;
  /// Whether share() has a meaning.
  bool shares_memory() const { return shares_memory_; }
  /// Gives the server memory that clients name in requests of their own. Null: it cannot be.
  /// @param known  once it has it; not called if it cannot take it
  std::unique_ptr<Buffer::Segment> share(ioctl::UniqueFd memory, std::function<void()> known);

  int fd() const { return xcb_get_file_descriptor(connection_); }
  bool is_alive() const { return !xcb_connection_has_error(connection_); }
  /// Takes answers and events that have arrived, and sends what they allow.
  void process(const Events& events);

  /// Tells of a window's size and end from now on.
  /// @param known  gets what it is when that begins
  void watch(xcb_window_t window, std::function<void(const Placement&)> known);
  void unwatch(xcb_window_t window);
  void copy(Copy copy);
  /// The other way: what the server has in a part of a pixmap comes into its buffer.
  void read(xcb_pixmap_t pixmap, std::shared_ptr<Buffer> buffer, const Rectangle& part,
            std::function<void()> done);

 private:
  struct Unconfirmed {
    unsigned sequence;
    size_t bytes;
    std::function<void(const void* reply)> done;  ///< null: there is none but an error
  };

  explicit Server(xcb_connection_t* connection) : connection_(connection) {}

  /// Of images of a depth. Null: there are none.
  const xcb_format_t* format(uint8_t depth) const;
  std::string learn();
  uint8_t major_of(const char* name);
  void learn_extensions();
  bool can_share_memory();
  uint32_t segment_of(Buffer& buffer);
  xcb_gcontext_t context(uint8_t depth);
  /// One request. @return bytes of pixels in it
  size_t send(const Copy& copy, const Rectangle& area);
  std::vector<Rectangle> cut(const Copy& copy) const;
  void confirm(size_t bytes, std::function<void()> done);
  void pump();
  void take_answers(std::optional<uint32_t> last);

  xcb_connection_t* connection_;
  Extensions extensions_{};
  bool shares_memory_ = false;
  std::map<uint8_t, xcb_gcontext_t> contexts_;  ///< by depth
  std::deque<Copy> copies_;                     ///< the first one may be sent in part
  std::deque<Unconfirmed> unconfirmed_;
  size_t in_flight_ = 0;  ///< bytes of pixels
};

}  // namespace v3d::xproxy
