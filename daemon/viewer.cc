#include "daemon/viewer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>

#include "ioctl/memory/bo.h"

namespace v3d::daemon {
namespace {

static_assert(ioctl::kms::kMostPlanes <= wire::kMaxScreenPlanes);

Reply failure(int error) {
  Reply reply;
  reply.error = error;
  return reply;
}

/// A descriptor of its own open file: a duplicate could be written to. 0 or an errno.
int open_for_reading(const ioctl::MemoryFile& file, ioctl::UniqueFd* fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(file.memfd.get());
  fd->reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return *fd ? 0 : errno;
}

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
  std::map<const ioctl::Buffer*, uint32_t> sent;  // and as which descriptor
  for (const auto& plane : shown.planes)
    for (const auto& part : plane.parts) sent.emplace(part.memory.get(), 0);
  descriptors_.release();
  if (const int error = account_.charge(ioctl::Resource::kDescriptors, sent.size(), &descriptors_))
    return error;
  std::map<const ioctl::Buffer*, uint64_t> offsets;
  for (auto& [buffer, number] : sent) {
    const ioctl::Buffer::Backing backing = buffer->backing();
    offsets[buffer] = backing.offset;
    number = static_cast<uint32_t>(reply->fds.size());
    if (const int error = open_for_reading(*backing.file, &reply->fds.emplace_back())) return error;
  }
  for (const auto& plane : shown.planes) {
    wire::ScreenPlane& told = planes->emplace_back(describe(plane));
    for (size_t i = 0; i < plane.parts.size(); ++i) {
      const ioctl::Buffer* buffer = plane.parts[i].memory.get();
      told.parts[i] = {offsets[buffer] + plane.parts[i].offset, plane.parts[i].pitch, sent[buffer]};
    }
  }
  return 0;
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
