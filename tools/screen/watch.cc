#include "tools/screen/watch.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace v3d::tools {

absl::StatusOr<std::vector<std::unique_ptr<Output>>> make_outputs(const ScreenOptions& options) {
  std::vector<std::unique_ptr<Output>> outputs;
  if (!options.video.empty()) {
    auto video = make_video(options.video, options.rate, options.frames);
    if (!video.ok()) return video.status();
    outputs.push_back(*std::move(video));
  }
  if (options.window) {
    auto window = make_window();
    if (!window.ok()) return window.status();
    outputs.push_back(*std::move(window));
  }
  return outputs;
}

absl::Status Watch::step() {
  uint32_t patience = 100;
  for (const auto& output : outputs_) patience = std::min(patience, output->patience_ms());
  auto frame = asked_ ? client_.next(seen_, patience) : client_.now();
  asked_ = true;
  if (frame.ok()) {
    seen_ = frame->number();
    if (!frame->is_blank()) {
      auto image = client_.picture(&*frame);
      if (!image.ok()) return image.status();
      image_ = *std::move(image);
      seen_ = frame->number();
    } else if (!image_.empty()) {
      std::fill(image_.pixels.begin(), image_.pixels.end(), 0);  // an earlier picture has gone
    }
  } else if (!absl::IsDeadlineExceeded(frame.status())) {
    return frame.status();
  }
  if (image_.empty()) return absl::OkStatus();
  for (const auto& output : outputs_)
    if (absl::Status shown = output->show(image_, seen_); !shown.ok()) return shown;
  return absl::OkStatus();
}

bool Watch::is_done() {
  return std::any_of(outputs_.begin(), outputs_.end(), [](const auto& output) { return output->is_done(); });
}

absl::Status Watch::finish() {
  absl::Status first;
  for (const auto& output : outputs_) first.Update(output->finish());
  return first;
}

std::string Watch::headline() const {
  return image_.empty() ? "" : absl::StrFormat("frame %d, %dx%d", seen_, image_.width, image_.height);
}

std::vector<std::string> Watch::results() {
  std::vector<std::string> results;
  for (const auto& output : outputs_)
    if (std::string result = output->result(); !result.empty()) results.push_back(std::move(result));
  return results;
}

}  // namespace v3d::tools
