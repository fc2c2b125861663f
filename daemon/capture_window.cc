#include "daemon/capture_window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "gpu/base/log.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/render_list.h"

namespace v3d::daemon {

std::optional<CaptureFrames> CaptureFrames::parse(const std::string& text) {
  CaptureFrames frames;
  const size_t dash = std::min(text.find('-'), text.size());
  if (!absl::SimpleAtoi(text.substr(0, dash), &frames.first)) return {};
  frames.last = frames.first;
  if (dash < text.size() && !absl::SimpleAtoi(text.substr(dash + 1), &frames.last)) return {};
  if (frames.first == 0 || frames.last < frames.first) return {};
  return frames;
}

bool FrameCounter::Target::looks_like(const Target& other) const {
  return width == other.width && height == other.height && format == other.format && layout == other.layout;
}

uint32_t FrameCounter::current() {
  if (current_ == 0) current_ = 1;
  return current_;
}

uint32_t FrameCounter::draw(std::vector<Target> targets) {
  const auto alike = [](const Target& a, const Target& b) { return a.looks_like(b); };
  if (targets.empty()) return current();
  if (drawn_ && std::equal(first_.begin(), first_.end(), targets.begin(), targets.end(), alike)) {
    ++current_;
    drawn_ = false;
  }
  if (!std::exchange(drawn_, true)) first_ = std::move(targets);
  return current();
}

namespace {

/// What a frame of VideoCore IV stores; samples alone, where they are not resolved.
std::vector<FrameCounter::Target> targets_of(const device::SurfaceJob& job) {
  for (const auto* color : {&job.color_write, &job.msaa_color_write})
    if (color->present) return {{color->address, job.width, job.height, color->bits, color->raw_samples}};
  return {};
}

}  // namespace

std::vector<FrameCounter::Target> targets_of(Memory memory, chip::Generation generation,
                                             const device::ClJob& job) {
  constexpr uint32_t kMaxPackets = 1u << 16;
  constexpr uint8_t kLastColor = 7;
  std::vector<FrameCounter::Target> targets;
  if (job.surfaces) return targets_of(*job.surfaces);
  uint32_t lists = 0;
  cle::FrameConfig frame(generation);
  std::string error;
  cle::Packet packet;
  GpuAddr pc = job.rcl_start;
  for (uint32_t i = 0; pc != job.rcl_end && i < kMaxPackets && cle::decode(memory, pc, generation, &packet);
       ++i) {
    pc += packet.length;
    if (packet.opcode == cle::Opcode::kTileRenderingModeCfg) frame.apply(packet, &error);
    if (packet.opcode != cle::Opcode::kStartAddressOfGenericTileList) continue;
    const auto start =
        static_cast<GpuAddr>(packet.get(cle::field("Start Address of Generic Tile List", "start")));
    const auto end =
        static_cast<GpuAddr>(packet.get(cle::field("Start Address of Generic Tile List", "end")));
    if (++lists > kMostTileLists) {
      log_warning("of a rendering list only %d tile lists are looked at for the capture's frames",
                  kMostTileLists);
      return targets;
    }
    cle::TileProgram program;
    if (!cle::parse_generic_list(memory, generation, start, end, &program, &error)) continue;
    for (const cle::TileCommand& command : program.commands) {
      const tlb::LoadStore& store = command.transfer;
      if (command.kind != cle::TileCommand::Kind::kStore || store.buffer > kLastColor) continue;
      const bool known = std::any_of(targets.begin(), targets.end(),
                                     [&](const auto& target) { return target.address == store.address; });
      if (!known && targets.size() == kMostTargets) {
        log_warning("of a rendering list only %d images are looked at for the capture's frames",
                    kMostTargets);
        return targets;
      }
      if (!known)
        targets.push_back({store.address, frame.config().width, frame.config().height,
                           static_cast<uint32_t>(store.format), static_cast<uint32_t>(store.memory_format)});
    }
  }
  return targets;
}

}  // namespace v3d::daemon
