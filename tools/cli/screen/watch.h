/// These functions show a screen as long as somebody wants to see it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cli/screen/client.h"
#include "tools/cli/screen/output.h"

namespace v3d::tools {

struct ScreenOptions {
  bool window = false;
  std::string png;  ///< of `screen`: each picture; of commands that run a program: its last one
  std::string video;
  uint32_t rate = 30;   ///< of the video, pictures per second
  uint64_t frames = 0;  ///< 0: no end, and one PNG file
  bool any() const { return window || !png.empty() || !video.empty(); }
};

class Watch {
 public:
  Watch(ScreenClient client, std::vector<std::unique_ptr<Output>> outputs)
      : client_(std::move(client)), outputs_(std::move(outputs)) {}

  /// Waits a moment, 100 ms at most, for the next frame and shows it.
  absl::Status step();
  /// An output has seen enough.
  bool is_done();
  /// A window has been closed.
  bool is_closed();
  /// Completes files. The first error.
  absl::Status finish();

  bool has_outputs() const { return !outputs_.empty(); }
  /// "frame 7, 1920x1080" of what was shown last; empty: nothing has been.
  std::string headline() const;
  /// Of the outputs.
  std::vector<std::string> results();
  ScreenClient& client() { return client_; }

 private:
  absl::Status make_picture();

  ScreenClient client_;
  std::vector<std::unique_ptr<Output>> outputs_;
  bool asked_ = false;
  uint64_t seen_ = 0;
  Frame frame_;              // the last one,
  bool is_new_ = false;      // of which there is no picture yet
  ioctl::kms::Image image_;  // what is shown; empty before the first frame with something in it
};

/// The outputs that options ask for, without PNG files.
absl::StatusOr<std::vector<std::unique_ptr<Output>>> make_outputs(const ScreenOptions& options);

}  // namespace v3d::tools
