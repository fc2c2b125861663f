#include "ioctl/display/writer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>

#include "gpu/base/log.h"
#include "ioctl/display/compose.h"

namespace v3d::ioctl::kms {
namespace {

/// The memory of a buffer, from its start to its end. Empty when the host does not map it.
class Mapping {
 public:
  Mapping(const Buffer& buffer, int protection) : size_(buffer.size()) {
    const Buffer::Backing backing = buffer.backing();
    memory_ = mmap(nullptr, size_, protection, MAP_SHARED, backing.file->memfd.get(),
                   static_cast<off_t>(backing.offset));
  }
  ~Mapping() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// From there to the end.
  std::span<uint8_t> from(uint64_t offset) const {
    if (memory_ == MAP_FAILED || offset > size_) return {};
    return std::span(static_cast<uint8_t*>(memory_), size_).subspan(offset);
  }

 private:
  const size_t size_;
  void* memory_;
};

/// A plane with its memory.
struct MappedPlane {
  PlanePixels pixels;
  std::vector<std::unique_ptr<Mapping>> mappings;
};

std::vector<MappedPlane> map_planes(const Scanout& shown) {
  std::vector<MappedPlane> planes;
  for (const ScanoutPlane& plane : shown.planes) {
    MappedPlane& mapped = planes.emplace_back(MappedPlane{{describe(plane), {}}, {}});
    for (size_t i = 0; i < plane.parts.size(); ++i) {
      const ScanoutPlane::Part& part = plane.parts[i];
      mapped.mappings.push_back(std::make_unique<Mapping>(*part.memory, PROT_READ));
      mapped.pixels.plane.parts[i].pitch = part.pitch;
      mapped.pixels.parts[i] = mapped.mappings.back()->from(part.offset);
    }
  }
  return planes;
}

/// Rows from `first` on of what planes show.
absl::Status draw_rows(const std::vector<MappedPlane>& planes, uint32_t first, Image* rows) {
  absl::Status worst;
  for (const MappedPlane& plane : planes) {
    PlanePixels pixels = plane.pixels;
    const int64_t top = int64_t{pixels.plane.y} - first;
    if (top >= rows->height || top + pixels.plane.h <= 0) continue;
    pixels.plane.y = static_cast<int32_t>(top);
    worst.Update(draw_plane(pixels, rows));
  }
  return worst;
}

constexpr uint32_t field(uint32_t value, Channel channel) { return value << channel.shift; }

/// One row of a format of three channels of 8 bits, and of a fourth in which every bit is set.
void put_row(const uint32_t* pixels, uint32_t count, const Format& format, uint8_t* to) {
  const uint32_t bytes = format.bytes[0];
  const uint32_t others = ~(field(255, format.red) | field(255, format.green) | field(255, format.blue));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t word = others | field(pixels[i] >> 16 & 255, format.red) |
                          field(pixels[i] >> 8 & 255, format.green) | field(pixels[i] & 255, format.blue);
    std::memcpy(to + size_t{i} * bytes, &word, bytes);  // the host is little-endian, too
  }
}

}  // namespace

void write_picture(const Write::Picture& picture) {
  constexpr uint32_t kRows = 64;  // at a time: a whole picture may take as much memory as all that is shown
  const Framebuffer& fb = *picture.to;
  const Framebuffer::Part& part = fb.parts[0];
  const Mapping memory(*part.bo->buffer(), PROT_READ | PROT_WRITE);
  const std::span<uint8_t> to = memory.from(part.offset);
  if (to.empty()) return log_error("a picture is not written: its memory cannot be mapped");
  const std::vector<MappedPlane> planes = map_planes(picture.shown);
  absl::Status worst;
  for (uint32_t first = 0; first < fb.height; first += kRows) {
    Image rows(fb.width, std::min(kRows, fb.height - first));
    worst.Update(draw_rows(planes, first, &rows));
    // All rows lie in the memory: the framebuffer was made so.
    for (uint32_t y = 0; y < rows.height; ++y)
      put_row(&rows.pixels[size_t{y} * fb.width], fb.width, *fb.format,
              &to[uint64_t{first + y} * part.pitch]);
  }
  if (!worst.ok())
    log_error("a picture is written without a plane: %s", std::string(worst.message()).c_str());
}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Writer::push(std::vector<Write> writes) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    if (!thread_.joinable()) try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error& error) {  // the next one tries again
        log_error("pictures wait to be written: %s", error.what());
      }
    std::move(writes.begin(), writes.end(), std::back_inserter(queue_));
  }
  changed_.notify_one();
}

void Writer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    Write write = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    for (const Write::Picture& picture : write.pictures) write_picture(picture);
    written_(write.number);
    write.pictures.clear();  // memory may go with them
    lock.lock();
  }
}

}  // namespace v3d::ioctl::kms
