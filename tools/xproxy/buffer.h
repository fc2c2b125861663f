/// A Buffer is what the pixels of a DRI3 pixmap lie in: a dma-buf of the emulated GPU, linear, of one plane.
#pragma once

#include <cstdint>
#include <memory>

#include "ioctl/base/unique_fd.h"
#include "tools/xproxy/wire.h"

namespace v3d::xproxy {

struct Layout {
  uint32_t offset = 0, stride = 0;  ///< bytes
  uint16_t width = 0, height = 0;   ///< pixels
  uint8_t depth = 0, bits_per_pixel = 0;
};

/// Of the emulated GPU, which the preload library gives. Empty: it could not.
ioctl::UniqueFd open_render_node();

class Buffer {
 public:
  /// Memory of the GPU that is all zero. Null: there is none, or no node.
  static std::shared_ptr<Buffer> allocate(const ioctl::UniqueFd& node, const Layout& layout);
  /// Null: no dma-buf of the emulated GPU, or one too small for the picture.
  static std::shared_ptr<Buffer> import(ioctl::UniqueFd dma_buf, const Layout& layout);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Layout& layout() const { return layout_; }
  /// Of the whole dma-buf.
  size_t size() const { return size_; }
  int dma_buf() const { return dma_buf_.get(); }
  /// The rows, for the processor; empty: they cannot be mapped. The memory of such a buffer is sealed against
  /// shrinking.
  std::span<uint8_t> pixels();
  /// Replaces a part, which must lie inside, by rows that are padded to 4 bytes each.
  void write(int x, int y, size_t width, size_t height, Bytes rows);
  /// What is readable once all jobs that write the buffer have ended. Empty: they have.
  ioctl::UniqueFd writes_end() const;

  /// MIT-SHM's name for it, by which the server knows it as long as this lives. Server's affair.
  struct Segment {
    virtual ~Segment() = default;
    uint32_t id = 0;
  };
  std::unique_ptr<Segment> segment;

 private:
  Buffer(ioctl::UniqueFd dma_buf, const Layout& layout, size_t size)
      : dma_buf_(std::move(dma_buf)), layout_(layout), size_(size) {}

  ioctl::UniqueFd dma_buf_;
  Layout layout_;
  size_t size_;
  void* mapping_ = nullptr;
};

}  // namespace v3d::xproxy
