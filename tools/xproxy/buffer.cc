#include "tools/xproxy/buffer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "ioctl/abi/core.h"
#include "ioctl/abi/dma_buf.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"

namespace v3d::xproxy {
namespace {

namespace drm = ioctl::drm;
constexpr unsigned long kGemClose = _IOW('d', 0x09, drm::GemClose),
                        kPrimeHandleToFd = _IOWR('d', 0x2d, drm::PrimeHandle),
                        kVersion = _IOWR('d', 0x00, drm::Version);

/// The driver decides, as the words of one are other ioctls of the other.
bool has_driver_vc4(const ioctl::UniqueFd& node) {
  char name[4] = {};
  drm::Version version = {};
  version.name = reinterpret_cast<uintptr_t>(name);
  version.name_len = sizeof name - 1;
  return ::ioctl(node.get(), kVersion, &version) == 0 && std::string_view(name) == "vc4";
}

/// The handle of a BO; 0: there is no memory, or no daemon.
uint32_t create_bo(const ioctl::UniqueFd& node, uint32_t size) {
  if (has_driver_vc4(node)) {
    drm::vc4::CreateBo create{size, 0, 0, 0};
    return ::ioctl(node.get(), drm::vc4::kCreateBo, &create) == 0 ? create.handle : 0;
  }
  drm::CreateBo create{size, 0, 0, 0};
  return ::ioctl(node.get(), drm::request::kCreateBo, &create) == 0 ? create.handle : 0;
}

}  // namespace

ioctl::UniqueFd open_render_node() {
  return ioctl::UniqueFd(open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC));
}

std::shared_ptr<Buffer> Buffer::allocate(const ioctl::UniqueFd& node, const Layout& layout) {
  const uint64_t size = layout.offset + uint64_t{layout.stride} * layout.height;
  if (!node || size == 0 || size > UINT32_MAX) return nullptr;
  const uint32_t handle = create_bo(node, static_cast<uint32_t>(size));
  if (handle == 0) return nullptr;
  drm::PrimeHandle exported{handle, drm::kCloexec | drm::kRdwr, -1};
  const bool is_exported = ::ioctl(node.get(), kPrimeHandleToFd, &exported) == 0;
  drm::GemClose closed{handle, 0};
  ::ioctl(node.get(), kGemClose, &closed);  // the dma-buf holds the memory
  return is_exported ? import(ioctl::UniqueFd(exported.fd), layout) : nullptr;
}

std::shared_ptr<Buffer> Buffer::import(ioctl::UniqueFd dma_buf, const Layout& layout) {
  // Only the daemon's answer to this; and its dma-bufs do not shrink.
  drm::DmaBufSyncFile question{drm::kDmaBufRead, -1};
  if (::ioctl(dma_buf.get(), drm::request::kDmaBufExportSyncFile, &question) != 0) return nullptr;
  ioctl::UniqueFd(question.fd).reset();
  const off_t end = lseek(dma_buf.get(), 0, SEEK_END);
  const uint64_t row = (uint64_t{layout.width} * layout.bits_per_pixel + 7) / 8;
  if (end < 0 || layout.width == 0 || layout.height == 0 || layout.stride < row) return nullptr;
  const uint64_t needed = layout.offset + uint64_t{layout.stride} * layout.height;
  if (needed > static_cast<uint64_t>(end)) return nullptr;
  return std::shared_ptr<Buffer>(new Buffer(std::move(dma_buf), layout, static_cast<size_t>(end)));
}

Buffer::~Buffer() {
  if (mapping_) munmap(mapping_, size_);
}

std::span<uint8_t> Buffer::pixels() {
  if (!mapping_) {
    void* const place = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf_.get(), 0);
    if (place == MAP_FAILED) return {};
    mapping_ = place;
  }
  return {static_cast<uint8_t*>(mapping_) + layout_.offset, size_t{layout_.stride} * layout_.height};
}

void Buffer::write(int x, int y, size_t width, size_t height, Bytes rows) {
  const auto all = pixels();
  const size_t pixel = layout_.bits_per_pixel / 8, row = width * pixel;
  if (all.empty() || rows.size() < padded(row) * height) return;
  for (size_t i = 0; i < height; ++i) {
    const size_t line = (static_cast<size_t>(y) + i) * layout_.stride + static_cast<size_t>(x) * pixel;
    memcpy(all.data() + line, rows.data() + i * padded(row), row);
  }
}

ioctl::UniqueFd Buffer::writes_end() const {
  drm::DmaBufSyncFile question{drm::kDmaBufRead, -1};
  if (::ioctl(dma_buf_.get(), drm::request::kDmaBufExportSyncFile, &question) != 0) return {};
  ioctl::UniqueFd fence(question.fd);
  pollfd ready{fence.get(), POLLIN, 0};
  return poll(&ready, 1, 0) == 0 ? std::move(fence) : ioctl::UniqueFd();
}

}  // namespace v3d::xproxy
