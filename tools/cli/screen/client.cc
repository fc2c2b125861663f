#include "tools/cli/screen/client.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "ioctl/display/compose.h"

namespace v3d::tools {
namespace {

constexpr uint32_t kMaxPayload =
    sizeof(wire::ScreenReply) + wire::kMaxScreenPlanes * sizeof(wire::ScreenPlane);
/// So often a picture that somebody drew into is made anew.
constexpr int kAttempts = 8;

/// Memory of a descriptor, for reading.
class Mapping {
 public:
  explicit Mapping(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0 || file.st_size <= 0) return;
    const auto size = static_cast<size_t>(file.st_size);
    void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) bytes_ = {static_cast<const uint8_t*>(at), size};
  }
  ~Mapping() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const uint8_t> from(uint64_t offset) const {
    return offset <= bytes_.size() ? bytes_.subspan(offset) : std::span<const uint8_t>();
  }

 private:
  std::span<const uint8_t> bytes_;
};

void tell_once(const absl::Status& error) {
  static std::set<std::string> told;
  if (told.size() < 16 && told.insert(std::string(error.message())).second)
    fprintf(stderr, "v3demu: %s: %s\n", absl::IsUnimplemented(error) ? "not implemented" : "no picture",
            std::string(error.message()).c_str());
}

bool send_all(int fd, const void* data, size_t size) {
  auto* at = static_cast<const char*>(data);
  while (size) {
    const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

/// @param fds  that came with it are appended
bool receive_all(int fd, void* data, size_t size, std::vector<ioctl::UniqueFd>* fds) {
  auto* at = static_cast<char*>(data);
  while (size) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::kMaxScreenFds)];
    iovec part = {at, size};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int number;
        std::memcpy(&number, CMSG_DATA(c) + i * sizeof number, sizeof number);
        fds->emplace_back(number);
      }
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

struct Answer {
  int error = 0;
  std::vector<uint8_t> payload;
  std::vector<ioctl::UniqueFd> fds;
};

/// False when the connection broke.
bool exchange(int fd, wire::Op op, const void* payload, size_t size, Answer* answer) {
  wire::MessageHeader header = {wire::kMagic, op, static_cast<uint32_t>(size), 0};
  if (!send_all(fd, &header, sizeof header) || !send_all(fd, payload, size)) return false;
  if (!receive_all(fd, &header, sizeof header, &answer->fds) || header.magic != wire::kMagic ||
      header.op != op || header.size > kMaxPayload)
    return false;
  answer->payload.resize(header.size);
  answer->error = header.error;
  return receive_all(fd, answer->payload.data(), header.size, &answer->fds);
}

absl::Status gone() { return absl::UnavailableError("the daemon has ended"); }

bool parse(Answer answer, Frame* frame) {
  if (answer.payload.size() < sizeof frame->screen) return false;
  std::memcpy(&frame->screen, answer.payload.data(), sizeof frame->screen);
  const size_t planes = (answer.payload.size() - sizeof frame->screen) / sizeof(wire::ScreenPlane);
  if (frame->screen.num_planes != planes || frame->screen.num_fds != answer.fds.size()) return false;
  frame->planes.resize(planes);
  if (planes)
    std::memcpy(frame->planes.data(), answer.payload.data() + sizeof frame->screen,
                planes * sizeof(wire::ScreenPlane));
  for (const wire::ScreenPlane& plane : frame->planes) {
    if (plane.num_parts > wire::kMaxPlaneParts) return false;
    for (uint32_t i = 0; i < plane.num_parts; ++i)
      if (plane.parts[i].fd >= answer.fds.size()) return false;
  }
  frame->memory = std::move(answer.fds);
  return true;
}

}  // namespace

ioctl::kms::Image compose(const Frame& frame) {
  ioctl::kms::Image image(frame.screen.width, frame.screen.height);
  for (const wire::ScreenPlane& plane : frame.planes) {
    std::vector<std::unique_ptr<Mapping>> mappings;
    ioctl::kms::PlanePixels pixels = {plane, {}};
    for (uint32_t i = 0; i < plane.num_parts; ++i) {
      mappings.push_back(std::make_unique<Mapping>(frame.memory[plane.parts[i].fd].get()));
      pixels.parts[i] = mappings.back()->from(plane.parts[i].offset);
    }
    if (absl::Status drawn = draw_plane(pixels, &image); !drawn.ok()) tell_once(drawn);
  }
  return image;
}

absl::StatusOr<ScreenClient> ScreenClient::connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ioctl::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (path.size() < sizeof address.sun_path) std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return absl::NotFoundError("no daemon runs on " + path);
  const wire::HelloRequest hello = {wire::kProtocol, getpid(), "v3demu screen"};
  Answer answer;
  if (exchange(fd.get(), wire::kHello, &hello, sizeof hello, &answer) && answer.error == 0)
    return ScreenClient(std::move(fd));
  return absl::UnavailableError(absl::StrCat(
      "the daemon on ", path, " does not answer: ", strerror(answer.error ? answer.error : EPIPE)));
}

absl::StatusOr<Frame> ScreenClient::look(const wire::ScreenRequest& request) {
  Answer answer;
  if (!exchange(socket_.get(), wire::kScreen, &request, sizeof request, &answer)) return gone();
  if (answer.error == ETIME) return absl::DeadlineExceededError("no other frame");
  if (answer.error == EBUSY) return absl::ResourceExhaustedError("too many look at the screen already");
  if (answer.error)
    return absl::UnknownError(absl::StrCat("the daemon does not show its screen: ", strerror(answer.error)));
  Frame frame;
  if (!parse(std::move(answer), &frame)) return absl::UnavailableError("the daemon speaks another protocol");
  return frame;
}

absl::StatusOr<ioctl::kms::Image> ScreenClient::picture(Frame* frame) {
  ioctl::kms::Image image;
  for (int i = 0; i < kAttempts; ++i) {
    image = compose(*frame);
    auto newer = next(frame->number(), 0);
    if (absl::IsDeadlineExceeded(newer.status())) break;
    if (!newer.ok()) return newer.status();
    if (newer->is_blank()) break;  // nobody draws any more
    *frame = *std::move(newer);
  }
  return image;
}

}  // namespace v3d::tools
