/// Frames through an X server: one process shows numbered frames in a window, another reads what is in it.
///
///   frame_window [--frames N] [--work N]
///
/// Whatever is read has to be one whole frame, not older than one read before, and not older than what the
/// buffers in flight can hide. Exit status: 0 so it was; 1 not; 2 something failed.
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "painter.h"

namespace e2e {
namespace {

constexpr uint32_t kSize = 128;
constexpr uint32_t kInFlight = 4;  // buffers of a window, of which the server may show the oldest

struct Shown {
  Window window;
  uint32_t frame;  // 0: no more
};

int produce(int socket, uint32_t frames, uint32_t work) {
  Display* display = XOpenDisplay(nullptr);
  require(display != nullptr, "an X server");
  const int screen = DefaultScreen(display);
  XSetWindowAttributes attributes = {};
  attributes.override_redirect = True;  // of this very size, without a frame around it
  const Window window =
      XCreateWindow(display, RootWindow(display, screen), 0, 0, kSize, kSize, 0, CopyFromParent, InputOutput,
                    CopyFromParent, CWOverrideRedirect, &attributes);
  XMapWindow(display, window);
  XSync(display, False);
  Painter painter(work, display);
  painter.draw_in(window, static_cast<uint32_t>(XVisualIDFromVisual(DefaultVisual(display, screen))));
  const Layout layout = {kSize, kSize, 0, 0, 0};
  for (uint32_t frame = 1; frame <= frames; ++frame) {
    painter.draw_frame(0, layout, frame);
    painter.swap();
    XSync(display, False);  // the server knows of it; whether it is drawn is the fences' affair
    const Shown shown = {window, frame};
    char looked;
    require(write(socket, &shown, sizeof shown) == sizeof shown && read(socket, &looked, 1) == 1, "a reader");
  }
  const Shown end = {window, 0};
  require(write(socket, &end, sizeof end) == sizeof end, "a reader");
  char gone;
  return read(socket, &gone, 1) == 0 ? 0 : 2;
}

/// The number of the frame that an image is; -1: it is not one whole frame.
int frame_of(XImage* image) {
  const auto rgb = [&](uint32_t x, uint32_t y) {  // red lowest, as expected_pixel() has it
    const auto pixel = static_cast<uint32_t>(XGetPixel(image, static_cast<int>(x), static_cast<int>(y)));
    return (pixel >> 16 & 0xFF) | (pixel & 0xFF00) | (pixel & 0xFF) << 16;
  };
  const uint32_t frame = rgb(0, 0) & 0xFFFF;
  for (uint32_t y = 0; y < kSize; ++y)
    for (uint32_t x = 0; x < kSize; ++x)  // rows of a framebuffer go up
      if (rgb(x, y) != (expected_pixel(frame, x, kSize - 1 - y) & 0xFFFFFF)) return -1;
  return static_cast<int>(frame);
}

int consume(int socket) {
  Display* display = XOpenDisplay(nullptr);
  require(display != nullptr, "an X server");
  uint32_t looks = 0, torn = 0, stale = 0, newest = 0;
  Shown shown;
  while (read(socket, &shown, sizeof shown) == sizeof shown && shown.frame != 0) {
    XImage* image = XGetImage(display, shown.window, 0, 0, kSize, kSize, AllPlanes, ZPixmap);
    require(image != nullptr, "the window's picture");
    const int frame = frame_of(image);
    XDestroyImage(image);
    ++looks;
    if (frame < 0) {
      // Before the first frame there is no picture.
      torn += shown.frame > kInFlight;
    } else {
      const auto seen = static_cast<uint32_t>(frame);
      stale += seen < newest || seen + kInFlight < shown.frame || seen > shown.frame;
      newest = std::max(newest, seen);
    }
    const char looked = 0;
    require(write(socket, &looked, 1) == 1, "a producer");
  }
  std::printf("%u frames looked at, %u stale, %u torn; the last was %u\n", looks, stale, torn, newest);
  return shown.frame == 0 && looks > 0 && stale + torn == 0 ? 0 : 1;
}

}  // namespace
}  // namespace e2e

int main(int argc, char** argv) {
  using e2e::require;
  uint32_t frames = 100, work = 400;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    require(option == "--frames" || option == "--work", "an option", argv[i]);
    (option == "--frames" ? frames : work) = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
  }
  require(frames > 0 && frames < 65536, "frames have numbers of 16 bits");
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
  const pid_t reader = fork();
  require(reader >= 0, "fork");
  close(ends[reader == 0 ? 0 : 1]);
  if (reader == 0) return e2e::consume(ends[1]);
  std::setbuf(stdout, nullptr);
  // The reader's end tells; it closes its socket by ending.
  const int drawn = e2e::produce(ends[0], frames, work);
  int status = 0;
  require(waitpid(reader, &status, 0) == reader && WIFEXITED(status), "the reader ends by itself");
  return drawn != 0 ? drawn : WEXITSTATUS(status);
}
