#include "tools/xproxy/images.h"

#include <sys/mman.h>
#include <unistd.h>
#include <xcb/shm.h>
#include <xcb/xcb.h>

#include "tools/xproxy/limits.h"
#include "tools/xproxy/server.h"

namespace v3d::xproxy {
namespace {

size_t g_image_bytes = 0;  // of all clients

}  // namespace

bool is_large_image(const RequestHead& head) {
  return head.major == XCB_PUT_IMAGE && head.size >= kLeastShared && head.size <= kMostShared;
}

std::optional<Image> find_image(const RequestHead& head, Bytes request, Order order, const Server& server) {
  const Reader fields(request.subspan(head.head), order);
  const Image image{.drawable = fields.u32(0),
                    .gc = fields.u32(4),
                    .width = fields.u16(8),
                    .height = fields.u16(10),
                    .x = fields.s16(12),
                    .y = fields.s16(14),
                    .depth = fields.u8(17),
                    .bytes = static_cast<size_t>(head.size) - head.head - kImageFields};
  const uint8_t format = head.minor, left_pad = fields.u8(16);
  if (format != XCB_IMAGE_FORMAT_Z_PIXMAP || left_pad != 0) return {};
  const size_t row = server.image_row_bytes(image.depth, image.width);
  if (row == 0 || row * image.height != image.bytes) return {};  // the server says what is wrong
  return image;
}

Message put_shared_image(const Image& image, Order order, const Server& server, uint32_t segment) {
  constexpr uint16_t kWords = sizeof(xcb_shm_put_image_request_t) / 4;
  Message request = make_request(order, server.extensions().shm, XCB_SHM_PUT_IMAGE, kWords);
  request.u32(4, image.drawable).u32(8, image.gc).u16(12, image.width).u16(14, image.height);
  request.u16(20, image.width).u16(22, image.height).s16(24, image.x).s16(26, image.y);
  request.u8(28, image.depth).u8(29, XCB_IMAGE_FORMAT_Z_PIXMAP).u32(32, segment);
  return request;
}

std::shared_ptr<ImageMemory> ImageMemory::make(Server& server, size_t bytes) {
  if (bytes > kMostImageBytes - g_image_bytes) return nullptr;
  ioctl::UniqueFd file(memfd_create("v3demu-x11 image", MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) return nullptr;
  const std::shared_ptr<ImageMemory> memory(new ImageMemory(mapping, bytes));
  g_image_bytes += bytes;
  memory->segment_ = server.share(std::move(file), [held = std::weak_ptr(memory)] {
    if (const auto known = held.lock()) known->known_ = true;
  });
  return memory->segment_ ? memory : nullptr;
}

ImageMemory::~ImageMemory() {
  g_image_bytes -= size_;
  munmap(mapping_, size_);
}

std::shared_ptr<ImageMemory> Images::take(Server& server, size_t bytes) {
  if (!server.shares_memory()) return nullptr;
  for (std::shared_ptr<ImageMemory>& memory : memories_) {
    if (memory && !memory->is_free()) continue;
    if (memory && memory->bytes().size() >= bytes) {
      memory->set_used(true);
      return memory;
    }
    // The next image may use it.
    memory.reset();
    memory = ImageMemory::make(server, bytes);
  }
  return nullptr;
}

}  // namespace v3d::xproxy
