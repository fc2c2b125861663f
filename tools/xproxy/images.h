/// The pixels of a client's large images a local server takes from memory that the proxy has, too (MIT-SHM),
/// and not from a socket once more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tools/xproxy/buffer.h"
#include "tools/xproxy/framing.h"
#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

class Server;

/// A PutImage whose pixels come from a segment of MIT-SHM just as well: of whole pixels, next to each other.
struct Image {
  uint32_t drawable = 0, gc = 0;
  uint16_t width = 0, height = 0;  ///< pixels
  int16_t x = 0, y = 0;            ///< in the drawable
  uint8_t depth = 0;
  size_t bytes = 0;  ///< of the pixels, which end the request
};
/// Whether it is worth a look with find_image(), once its fields have arrived.
bool is_large_image(const RequestHead& head);
/// Empty: the image does not go by shared memory.
std::optional<Image> find_image(const RequestHead& head, Bytes request, Order order, const Server& server);
/// Bytes in front of the pixels of PutImage, beside RequestHead::head.
inline constexpr size_t kImageFields = 20;

/// MIT-SHM's PutImage, with the pixels at the start of a segment.
Message put_shared_image(const Image& image, Order order, const Server& server, uint32_t segment);

/// Memory for one image at a time.
class ImageMemory {
 public:
  /// Null: the host gives none, or all clients together have as much as they get.
  static std::shared_ptr<ImageMemory> make(Server& server, size_t bytes);
  ~ImageMemory();
  ImageMemory(const ImageMemory&) = delete;
  ImageMemory& operator=(const ImageMemory&) = delete;

  std::span<uint8_t> bytes() const { return {static_cast<uint8_t*>(mapping_), size_}; }
  uint32_t segment() const { return segment_->id; }
  /// The server knows it, and nobody uses it.
  bool is_free() const { return known_ && !used_; }
  void set_used(bool used) { used_ = used; }

 private:
  ImageMemory(void* mapping, size_t size) : mapping_(mapping), size_(size) {}

  void* const mapping_;
  const size_t size_;
  std::unique_ptr<Buffer::Segment> segment_;
  bool known_ = false, used_ = false;
};

/// Those of one client: while the server reads one, the next image comes to another.
class Images {
 public:
  /// Memory for an image of so many bytes. Null: there is none yet, or none that is free.
  std::shared_ptr<ImageMemory> take(Server& server, size_t bytes);

 private:
  std::array<std::shared_ptr<ImageMemory>, 2> memories_;
};

}  // namespace v3d::xproxy
