#include "tools/cli/screen/watch.h"

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
  auto next = asked_ ? client_.next(seen_, patience) : client_.now();
  asked_ = true;
  if (next.ok()) {
    seen_ = next->number();
    frame_ = *std::move(next);
    is_new_ = true;
  } else if (!absl::IsDeadlineExceeded(next.status())) {
    return next.status();
  }
  std::vector<Output*> due;
  for (const auto& output : outputs_)
    if (output->is_due()) due.push_back(output.get());
  if (due.empty()) return absl::OkStatus();
  if (is_new_)
    if (absl::Status made = make_picture(); !made.ok()) return made;
  if (image_.empty()) return absl::OkStatus();
  for (Output* output : due)
    if (absl::Status shown = output->show(image_, seen_); !shown.ok()) return shown;
  return absl::OkStatus();
}

absl::Status Watch::make_picture() {
  is_new_ = false;
  if (frame_.is_blank()) {
    std::fill(image_.pixels.begin(), image_.pixels.end(), 0);  // an earlier picture has gone
    return absl::OkStatus();
  }
  auto image = client_.picture(&frame_);
  if (!image.ok()) return image.status();
  image_ = *std::move(image);
  seen_ = frame_.number();
  return absl::OkStatus();
}

bool Watch::is_done() {
  return std::any_of(outputs_.begin(), outputs_.end(), [](const auto& output) { return output->is_done(); });
}

bool Watch::is_closed() {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [](const auto& output) { return output->is_closed(); });
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
