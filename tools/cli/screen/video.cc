/// @file The screen as a video, which ffmpeg makes of raw pictures.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/new_file.h"
#include "tools/cli/run/program.h"
#include "tools/cli/screen/output.h"

namespace v3d::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// Pictures at a constant rate, all of the size of the first one.
class Video : public Output {
 public:
  Video(std::string encoder, std::string path, uint32_t rate, uint64_t frames)
      : encoder_(std::move(encoder)), path_(std::move(path)), file_(path_), rate_(rate), frames_(frames) {}
  ~Video() override { finish().IgnoreError(); }

  absl::Status show(const ioctl::kms::Image& image, uint64_t) override {
    if (pid_ < 0) {
      width_ = image.width;
      height_ = image.height;
      if (absl::Status started = start(); !started.ok()) return started;
      start_ = Clock::now();
    }
    for (const uint64_t want = due(); written_ < want && !is_done();)
      if (absl::Status done = write_picture(image); !done.ok()) return done;
    return absl::OkStatus();
  }
  bool is_due() override { return pid_ < 0 || written_ < due(); }
  uint32_t patience_ms() override { return pid_ < 0 ? 100 : 1000 / rate_; }
  bool is_done() override { return frames_ && written_ >= frames_; }
  std::string result() override {
    return written_ ? absl::StrCat(written_, " pictures in ", path_) : "no video";
  }

  absl::Status finish() override {
    if (pipe_ < 0) return absl::OkStatus();
    close(pipe_);
    pipe_ = -1;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? file_.finish() : failed();
  }

 private:
  /// Pictures that there have to be by now.
  uint64_t due() const {
    const std::chrono::duration<double> passed = Clock::now() - start_;
    return static_cast<uint64_t>(passed.count() * rate_) + 1;
  }

  absl::Status failed() const { return absl::UnavailableError("ffmpeg cannot make " + path_); }

  absl::Status start() {
    if (absl::Status begun = file_.begin(); !begun.ok()) return begun;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError(strerror(errno));
    const std::string size = absl::StrCat(width_, "x", height_), rate = absl::StrCat(rate_);
    const std::vector<std::string> words = {
        "ffmpeg",        "-loglevel", "error",       "-nostdin",   "-y",         "-f", "rawvideo",
        "-pixel_format", "bgr0",      "-video_size", size,         "-framerate", rate, "-i",
        "pipe:0",        "-pix_fmt",  "yuv420p",     file_.draft()};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);  // Ctrl-C ends what is filmed, and the film is finished then
      signal(SIGPIPE, SIG_DFL);
      dup2(ends[0], STDIN_FILENO);
      execv(encoder_.c_str(), arguments.data());
      _exit(127);
    }
    close(ends[0]);
    pipe_ = ends[1];
    if (pid_ > 0) return absl::OkStatus();
    close(pipe_);
    pipe_ = -1;
    return absl::UnavailableError(strerror(errno));
  }

  absl::Status write_picture(const ioctl::kms::Image& image) {
    const ioctl::kms::Image* whole = &image;
    ioctl::kms::Image fitted;
    if (image.width != width_ || image.height != height_) {  // the mode has changed
      fitted = ioctl::kms::Image(width_, height_);
      for (uint32_t y = 0; y < std::min(height_, image.height); ++y)
        std::memcpy(&fitted.pixels[uint64_t{y} * width_], &image.pixels[uint64_t{y} * image.width],
                    std::min(width_, image.width) * sizeof(uint32_t));
      whole = &fitted;
    }
    const char* at = reinterpret_cast<const char*>(whole->pixels.data());
    for (size_t left = whole->pixels.size() * sizeof(uint32_t); left;) {
      const ssize_t wrote = write(pipe_, at, left);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return failed();
      at += wrote;
      left -= static_cast<size_t>(wrote);
    }
    ++written_;
    return absl::OkStatus();
  }

  const std::string encoder_, path_;
  NewFile file_;
  const uint32_t rate_;
  const uint64_t frames_;
  uint32_t width_ = 0, height_ = 0;
  pid_t pid_ = -1;
  int pipe_ = -1;
  Clock::time_point start_;
  uint64_t written_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> make_video(const std::string& path, uint32_t rate, uint64_t frames) {
  std::string encoder = find_program("ffmpeg");
  if (encoder.empty()) return absl::UnavailableError("videos need ffmpeg, which is not installed");
  signal(SIGPIPE, SIG_IGN);  // an encoder that ends is told by write()
  return std::make_unique<Video>(std::move(encoder), path, rate, frames);
}

}  // namespace v3d::tools
