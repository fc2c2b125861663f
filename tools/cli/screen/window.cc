/// @file The screen as a window, by libSDL2 if that is installed: no header of it is needed to build this.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli/screen/output.h"

namespace v3d::tools {
namespace {

constexpr char kLibrary[] = "libSDL2-2.0.so.0";

// Of SDL 2's interface, which does not change.
constexpr uint32_t kInitVideo = 0x20, kWindowResizable = 0x20, kAllowHighDpi = 0x2000, kQuit = 0x100,
                   kRgb888 = 0x16161804;
constexpr int kCentered = 0x2fff0000, kStreaming = 1;
union Event {
  uint32_t type;
  uint8_t padding[128];  // of SDL's 56
};

struct Sdl {
  int (*init)(uint32_t flags);
  void (*quit)();
  const char* (*error)();
  const char* (*driver)();
  void* (*create_window)(const char* title, int x, int y, int w, int h, uint32_t flags);
  void (*destroy_window)(void* window);
  void (*set_title)(void* window, const char* title);
  void* (*create_renderer)(void* window, int index, uint32_t flags);
  int (*set_logical_size)(void* renderer, int w, int h);
  void* (*create_texture)(void* renderer, uint32_t format, int access, int w, int h);
  void (*destroy_texture)(void* texture);
  int (*update_texture)(void* texture, const void* area, const void* pixels, int pitch);
  int (*clear)(void* renderer);
  int (*copy)(void* renderer, void* texture, const void* from, const void* to);
  void (*present)(void* renderer);
  int (*poll_event)(Event* event);
};

/// @return what is missing; empty: nothing
std::string load(Sdl* sdl) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return absl::StrCat("a window needs ", kLibrary, " (Debian: libsdl2-2.0-0)");
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    void* found = dlsym(library, name);
    if (!found) missing = absl::StrCat(kLibrary, " has no ", name);
    std::memcpy(function, &found, sizeof found);
  };
  find("SDL_Init", &sdl->init);
  find("SDL_Quit", &sdl->quit);
  find("SDL_GetError", &sdl->error);
  find("SDL_GetCurrentVideoDriver", &sdl->driver);
  find("SDL_CreateWindow", &sdl->create_window);
  find("SDL_DestroyWindow", &sdl->destroy_window);
  find("SDL_SetWindowTitle", &sdl->set_title);
  find("SDL_CreateRenderer", &sdl->create_renderer);
  find("SDL_RenderSetLogicalSize", &sdl->set_logical_size);
  find("SDL_CreateTexture", &sdl->create_texture);
  find("SDL_DestroyTexture", &sdl->destroy_texture);
  find("SDL_UpdateTexture", &sdl->update_texture);
  find("SDL_RenderClear", &sdl->clear);
  find("SDL_RenderCopy", &sdl->copy);
  find("SDL_RenderPresent", &sdl->present);
  find("SDL_PollEvent", &sdl->poll_event);
  return missing;
}

/// Where there is no display, SDL takes a driver of its own whose windows nobody sees.
bool is_seen(const char* driver) {
  if (getenv("SDL_VIDEODRIVER")) return true;  // whoever names one asks for it
  return driver && strcmp(driver, "offscreen") != 0 && strcmp(driver, "dummy") != 0;
}

class Window : public Output {
 public:
  explicit Window(const Sdl& sdl) : sdl_(sdl) {}
  ~Window() override {
    if (texture_) sdl_.destroy_texture(texture_);
    if (window_) sdl_.destroy_window(window_);
    sdl_.quit();
  }

  absl::Status open() {
    window_ = sdl_.create_window("v3demu", kCentered, kCentered, 1280, 720, kWindowResizable | kAllowHighDpi);
    renderer_ = window_ ? sdl_.create_renderer(window_, -1, 0) : nullptr;
    return renderer_ ? absl::OkStatus() : failed();
  }

  absl::Status show(const ioctl::kms::Image& image, uint64_t frame) override {
    if (image.width != width_ || image.height != height_) {
      if (absl::Status fits = resize(image.width, image.height); !fits.ok()) return fits;
    }
    if (frame != frame_) {
      sdl_.update_texture(texture_, nullptr, image.pixels.data(),
                          static_cast<int>(width_ * sizeof(uint32_t)));
      sdl_.set_title(window_, absl::StrFormat("v3demu - frame %d", frame).c_str());
      frame_ = frame;
    }
    sdl_.clear(renderer_);
    sdl_.copy(renderer_, texture_, nullptr, nullptr);
    sdl_.present(renderer_);
    return absl::OkStatus();
  }
  uint32_t patience_ms() override { return 50; }
  bool is_closed() override { return is_done(); }
  bool is_done() override {
    Event event;
    while (sdl_.poll_event(&event))
      if (event.type == kQuit) closed_ = true;
    return closed_;
  }

 private:
  absl::Status failed() const { return absl::UnavailableError(absl::StrCat("no window: ", sdl_.error())); }
  absl::Status resize(uint32_t width, uint32_t height) {
    if (texture_) sdl_.destroy_texture(texture_);
    const auto w = static_cast<int>(width), h = static_cast<int>(height);
    texture_ = sdl_.create_texture(renderer_, kRgb888, kStreaming, w, h);
    if (!texture_) return failed();
    sdl_.set_logical_size(renderer_, w, h);
    width_ = width;
    height_ = height;
    frame_ = 0;
    return absl::OkStatus();
  }

  const Sdl sdl_;
  void *window_ = nullptr, *renderer_ = nullptr, *texture_ = nullptr;
  uint32_t width_ = 0, height_ = 0;
  uint64_t frame_ = 0;
  bool closed_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> make_window() {
  Sdl sdl = {};
  if (const std::string missing = load(&sdl); !missing.empty()) return absl::UnavailableError(missing);
  if (sdl.init(kInitVideo) != 0) return absl::UnavailableError(absl::StrCat("no window: ", sdl.error()));
  if (!is_seen(sdl.driver())) {
    sdl.quit();
    return absl::UnavailableError(
        "no window: there is no display to open it on ($DISPLAY, $WAYLAND_DISPLAY); pictures and videos need "
        "none (--png, --video)");
  }
  auto window = std::make_unique<Window>(sdl);
  if (absl::Status opened = window->open(); !opened.ok()) return opened;
  return window;
}

}  // namespace v3d::tools
