#include "daemon/viewer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "gpu/base/log.h"
#include "ioctl/display/formats.h"
#include "ioctl/display/modifiers.h"
#include "ioctl/memory/bo.h"

namespace v3d::daemon {
namespace {

static_assert(ioctl::kms::kMostPlanes <= wire::kMaxScreenPlanes);

Reply failure(int error) {
  Reply reply;
  reply.error = error;
  return reply;
}

/// Of all that is shown at one time: as much as the largest picture takes, twice.
constexpr uint64_t kMostBytes = uint64_t{512} << 20;

/// Of parts in the copy, bytes.
constexpr uint64_t kAlignment = 64;

/// Bytes of a part's rows from its offset on.
uint64_t bytes_of(const ioctl::kms::ScanoutPlane& plane, uint32_t part) {
  const ioctl::kms::Format* format = ioctl::kms::find_format(plane.fourcc);
  if (!format) return UINT64_MAX;
  return ioctl::kms::extent(plane.modifier, row_bytes(*format, plane.width, part),
                            part_height(*format, plane.height, part), plane.parts[part].pitch);
}

/// A memfd's bytes while they are written.
class Copy {
 public:
  /// @return false when the host has no memory or no descriptors left
  bool create(uint64_t bytes) {
    fd_.reset(memfd_create("v3demu-screen", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd_ || ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) return false;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (at == MAP_FAILED) return false;
    bytes_ = {static_cast<uint8_t*>(at), bytes};
    return true;
  }
  ~Copy() { unmap(); }
  Copy() = default;
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  /// Of memory whose size is sealed.
  bool read(const ioctl::Buffer::Backing& from, uint64_t offset, std::span<uint8_t> to) {
    while (!to.empty()) {
      const ssize_t got =
          pread(from.file->memfd.get(), to.data(), to.size(), static_cast<off_t>(from.offset + offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to = to.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return true;
  }
  std::span<uint8_t> bytes() const { return bytes_; }
  /// Nobody writes to it any more, however they open it.
  ioctl::UniqueFd seal() {
    unmap();
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    return fcntl(fd_.get(), F_ADD_SEALS, kSeals) == 0 ? std::move(fd_) : ioctl::UniqueFd();
  }

 private:
  void unmap() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }
  ioctl::UniqueFd fd_;
  std::span<uint8_t> bytes_;
};

}  // namespace

Viewer::Viewer(ioctl::kms::Display& display, ioctl::Account& account, ioctl::Charge seat)
    : display_(display), account_(account), seat_(std::move(seat)) {
  display_.add_viewer();
}

Viewer::~Viewer() { display_.remove_viewer(); }

int Viewer::admit(ioctl::kms::Display& display, ioctl::Account& account, std::unique_ptr<Viewer>* viewer) {
  ioctl::Charge seat;
  if (const int error = account.charge(ioctl::Resource::kViewers, 1, &seat)) return error;
  viewer->reset(new Viewer(display, account, std::move(seat)));
  return 0;
}

int Viewer::attach(const ioctl::kms::Scanout& shown, std::vector<wire::ScreenPlane>* planes, Reply* reply) {
  // The last one is the viewer's own affair now.
  bytes_.release();
  descriptor_.release();
  struct Piece {
    const ioctl::kms::ScanoutPlane::Part* part;
    uint64_t bytes;
    uint64_t at = 0;  // in the copy
  };
  std::vector<Piece> pieces;
  uint64_t total = 0;
  for (const auto& plane : shown.planes) {
    std::vector<Piece> own;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plane.parts.size() && bytes <= kMostBytes; ++i) {
      own.push_back({.part = &plane.parts[i], .bytes = bytes_of(plane, i)});
      bytes += std::min(own.back().bytes, kMostBytes + 1);
    }
    if (bytes > kMostBytes - total) {
      log_warning("a plane of %d MiB is not shown to who looks at the screen", bytes >> 20);
      continue;
    }
    wire::ScreenPlane& told = planes->emplace_back(describe(plane));
    for (size_t i = 0; i < own.size(); ++i) {
      own[i].at = total;
      told.parts[i] = {total, own[i].part->pitch, 0};
      total += (own[i].bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    pieces.insert(pieces.end(), own.begin(), own.end());
  }
  if (total == 0) return 0;
  if (const int error = account_.charge(ioctl::Resource::kBoBytes, total, &bytes_)) return error;
  if (const int error = account_.charge(ioctl::Resource::kDescriptors, 1, &descriptor_)) return error;
  Copy copy;
  if (!copy.create(total)) return ENOMEM;
  for (const Piece& piece : pieces) {
    const std::span<uint8_t> place = copy.bytes().subspan(piece.at, piece.bytes);
    if (!copy.read(piece.part->memory->backing(), piece.part->offset, place)) return EIO;
  }
  reply->fds.push_back(copy.seal());
  return reply->fds.back() ? 0 : ENOMEM;
}

Reply Viewer::look(const wire::ScreenRequest& request, const std::shared_ptr<ioctl::Waiter>& waiter) {
  if (request.flags & ~(wire::kNextFrame | wire::kLastPicture) || request.timeout_ms > wire::kMaxScreenWaitMs)
    return failure(EINVAL);
  if (request.flags & wire::kNextFrame) {
    const int64_t deadline = ioctl::monotonic_ns() + int64_t{request.timeout_ms} * 1'000'000;
    const int error = display_.wait_for_frame(request.seen, waiter, deadline);
    // What is drawn on the console makes no frames.
    if (error && !(error == ETIME && display_.refresh_console())) return failure(error);
  }
  const ioctl::kms::Display::Look look(display_);
  const ioctl::kms::Scanout shown =
      request.flags & wire::kLastPicture ? display_.last_picture() : display_.scanout();
  Reply reply;
  std::vector<wire::ScreenPlane> planes;
  if (const int error = attach(shown, &planes, &reply)) return failure(error);
  reply.append(wire::ScreenReply{shown.frame, shown.time_ns, shown.active, shown.width, shown.height,
                                 shown.refresh_hz, static_cast<uint32_t>(planes.size()),
                                 static_cast<uint32_t>(reply.fds.size())});
  for (const wire::ScreenPlane& plane : planes) reply.append(plane);
  return reply;
}

}  // namespace v3d::daemon
