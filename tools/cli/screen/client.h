/// This is the daemon's screen, seen from another process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/display/image.h"
#include "ioctl/link/wire.h"

namespace v3d::tools {

/// What was shown. Keeps the memory, not what it says.
struct Frame {
  wire::ScreenReply screen = {};
  std::vector<wire::ScreenPlane> planes;  ///< from bottom to top
  std::vector<ioctl::UniqueFd> memory;

  bool is_blank() const { return planes.empty(); }
  uint64_t number() const { return screen.frame; }
};

/// The picture; what of it cannot be made is left out, and told once on stderr.
ioctl::kms::Image compose(const Frame& frame);

/// A connection that looks. Not synchronised.
class ScreenClient {
 public:
  /// NotFound when no daemon runs there, Unavailable when it does not answer.
  static absl::StatusOr<ScreenClient> connect(const std::string& socket);

  /// What is shown now.
  absl::StatusOr<Frame> now() { return look({0, 0, 0}); }
  /// The last picture of a program that may have ended (wire.h, kLastPicture); blank when there was none.
  absl::StatusOr<Frame> last() { return look({0, 0, wire::kLastPicture}); }
  /// The next frame after `seen`. DeadlineExceeded when there is none in that time.
  absl::StatusOr<Frame> next(uint64_t seen, uint32_t timeout_ms) {
    return look({seen, timeout_ms, wire::kNextFrame});
  }
  /// The picture of what is shown, not torn by whoever draws meanwhile as long as it shows fewer frames than
  /// can be composed. @param frame  what was seen; is replaced
  absl::StatusOr<ioctl::kms::Image> picture(Frame* frame);

 private:
  explicit ScreenClient(ioctl::UniqueFd socket) : socket_(std::move(socket)) {}
  /// Unavailable: the daemon has ended. ResourceExhausted: too many look.
  absl::StatusOr<Frame> look(const wire::ScreenRequest& request);

  ioctl::UniqueFd socket_;
};

}  // namespace v3d::tools
