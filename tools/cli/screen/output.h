/// Outputs are where pictures of the screen go.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ioctl/display/image.h"

namespace v3d::tools {

class Output {
 public:
  virtual ~Output() = default;
  /// A picture that is on the screen now. Called when it is due, perhaps with the same one again.
  /// @param frame  its number
  virtual absl::Status show(const ioctl::kms::Image& image, uint64_t frame) = 0;
  /// Whether it wants a picture now.
  virtual bool is_due() { return true; }
  /// How long until it wants to be called even without a new frame; milliseconds.
  virtual uint32_t patience_ms() { return 100; }
  /// Whether whoever looks has seen enough.
  virtual bool is_done() { return false; }
  /// Whether whoever looks wants to see no more, nor what is shown to go on.
  virtual bool is_closed() { return false; }
  /// What lies in its files now, as the end of a sentence; empty: it has none.
  virtual std::string result() { return {}; }
  virtual absl::Status finish() { return absl::OkStatus(); }
};

/// A window by libSDL2, which is looked for when this is called. Unavailable with the reason.
absl::StatusOr<std::unique_ptr<Output>> make_window();

/// A file by ffmpeg, which tells the format by the file's name. Unavailable when it is not installed.
/// @param frames  pictures, after which it is done; 0: no end
absl::StatusOr<std::unique_ptr<Output>> make_video(const std::string& path, uint32_t rate, uint64_t frames);

/// PNG files: of each picture one. `path` with %d or %04d and so on, if there is to be more than one.
/// InvalidArgument for other uses of %, and for more than one picture under one name.
absl::StatusOr<std::unique_ptr<Output>> make_pictures(const std::string& path, uint64_t count);

}  // namespace v3d::tools
