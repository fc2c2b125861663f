/// @file Pictures of the screen as PNG files.
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli/files/png_file.h"
#include "tools/cli/screen/output.h"

namespace v3d::tools {
namespace {

/// A file name with a number in it, or none.
struct Pattern {
  std::string before, after;
  int digits = 0;
  bool has_number = false;

  std::string name(uint64_t number) const {
    return has_number ? absl::StrFormat("%s%0*d%s", before, digits, number, after) : before;
  }
};

absl::StatusOr<Pattern> parse_pattern(const std::string& text) {
  Pattern pattern;
  std::string* to = &pattern.before;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *to += text[i];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && isdigit(static_cast<unsigned char>(text[end])) && end < i + 3) ++end;
    if (end < text.size() && text[end] == '%' && end == i + 1) {
      *to += '%';
    } else if (end < text.size() && text[end] == 'd' && !pattern.has_number) {
      pattern.has_number = true;
      pattern.digits = end > i + 1 ? std::stoi(text.substr(i + 1, end - i - 1)) : 0;
      to = &pattern.after;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(text, ": of percent signs one, in %d or %04d, may stand there for the number"));
    }
    i = end;
  }
  return pattern;
}

class Pictures : public Output {
 public:
  Pictures(Pattern pattern, uint64_t count) : pattern_(std::move(pattern)), count_(count) {}

  absl::Status show(const ioctl::kms::Image& image, uint64_t frame) override {
    if (saved_ && frame == frame_) return absl::OkStatus();
    last_ = pattern_.name(saved_);
    if (absl::Status done = save_png(last_, image); !done.ok()) return done;
    frame_ = frame;
    ++saved_;
    return absl::OkStatus();
  }
  bool is_done() override { return saved_ >= count_; }
  std::string result() override {
    if (saved_ == 0) return "no picture";
    return saved_ == 1 ? last_ : absl::StrCat(saved_, " pictures, up to ", last_);
  }

 private:
  const Pattern pattern_;
  const uint64_t count_;
  uint64_t saved_ = 0, frame_ = 0;
  std::string last_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> make_pictures(const std::string& path, uint64_t count) {
  const auto pattern = parse_pattern(path);
  if (!pattern.ok()) return pattern.status();
  if (count > 1 && !pattern->has_number)
    return absl::InvalidArgumentError(absl::StrCat(path, ": several pictures need a %d in the name"));
  return std::make_unique<Pictures>(*pattern, count);
}

}  // namespace v3d::tools
