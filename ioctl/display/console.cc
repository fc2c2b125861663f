#include "ioctl/display/console.h"

#include "gpu/mmu/address_space.h"

namespace v3d::ioctl::kms {
namespace {

const Format& console_format() { return *find_format(legacy_format(kConsoleBits, kConsoleBits)); }

uint32_t console_pitch() { return uint32_t{modes()[0].hdisplay} * console_format().bytes[0]; }

}  // namespace

uint64_t console_bytes() {
  const uint64_t bytes = uint64_t{console_pitch()} * modes()[0].vdisplay;
  return (bytes + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
}

std::shared_ptr<Framebuffer> make_console(std::shared_ptr<Buffer> memory, uint64_t mmap_offset) {
  auto fb = std::make_shared<Framebuffer>();
  fb->width = modes()[0].hdisplay;
  fb->height = modes()[0].vdisplay;
  fb->format = &console_format();
  fb->parts[0] = {std::make_shared<Bo>(std::move(memory), nullptr, Placement{}, mmap_offset, false,
                                       std::make_shared<MemoryUse>()),
                  console_pitch(), 0};
  return fb;
}

void show_console(DisplayState& state, uint32_t pipe, const FramebufferPtr& console, const BlobPtr& mode) {
  state.crtc(pipe).set_blob(kModeId, mode);
  state.crtc(pipe).set(kActive, 1);
  state.light(pipe, true);
  state.show(kPipes[pipe].primary, kPipes[pipe].crtc, console);
  state.place(kPipes[pipe].primary, {0, 0, console->width << 16, console->height << 16},
              {0, 0, console->width, console->height});
}

}  // namespace v3d::ioctl::kms
