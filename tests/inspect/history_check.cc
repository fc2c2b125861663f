/// inspect_history CAPTURE PIXELS: at random pixels of the render jobs of a capture the last value of the
/// history is what memory holds when the job has run as it is, and the history has as many fragments as the
/// heat maps count. Prints how many were compared.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/captures/render_images.h"
#include "tools/inspect/inspector.h"

namespace v3d::inspect {
namespace {

constexpr uint8_t kRgba8 = 27;

struct Stored {
  tools::StoredImage image;
  tools::Picture picture;
};

std::vector<Stored> pictures_of(Inspector& inspector, uint32_t job) {
  std::vector<Stored> stored;
  const daemon::CapturedJob& captured = inspector.jobs()[job - 1];
  const absl::Status ran = inspector.run_whole(job, [&](mmu::AddressSpace& space) {
    tools::ByteOrders orders;
    const auto images = captured.surfaces
                            ? tools::stored_images(*captured.surfaces, false)
                            : tools::stored_images(space.memory(), inspector.profile().generation,
                                                   captured.cl().rcl_start, captured.cl().rcl_end, &orders);
    for (const tools::StoredImage& image : images) {
      std::string error;
      if (image.packet.format != kRgba8) continue;
      tools::Picture picture = tools::read_image(space, image, &error);
      if (!picture.rgba.empty()) stored.push_back({image, std::move(picture)});
    }
  });
  if (!ran.ok()) std::fprintf(stderr, "job %u: %s\n", job, std::string(ran.message()).c_str());
  return stored;
}

/// Whether the store keeps the bytes of the tile buffer.
bool keeps_bytes(const PixelEvent& event, const tlb::Config& config) {
  return event.kind == PixelEvent::Kind::kStore && event.transfer.buffer < kNoBuffer && !config.multisample &&
         config.targets[event.transfer.buffer].type == tlb::ColorType::k8 && event.transfer.format == kRgba8;
}

/// @return  how many values differ
int compare(const History& history, const PixelPlace& place, const std::vector<Stored>& stored, int* compared,
            int* drawn) {
  int wrong = 0;
  bool has_fragment = false;
  for (const PixelEvent& event : history.events) {
    has_fragment = has_fragment || event.kind == PixelEvent::Kind::kFragment;
    if (!keeps_bytes(event, history.config)) continue;
    for (const auto& [image, picture] : stored) {
      if (image.packet.address != event.transfer.address) continue;
      uint32_t pixel;
      std::memcpy(&pixel, &picture.rgba[(size_t{place.y} * picture.width + place.x) * 4], sizeof pixel);
      const size_t rt = event.transfer.buffer;
      const uint32_t last = rgba8_of(history.config.targets[rt], event.before.colors[rt]);
      ++*compared;
      *drawn += has_fragment;
      if (pixel == last) continue;
      ++wrong;
      std::printf("job %u layer %u pixel %u,%u: history %08x, memory %08x\n", place.job, place.layer, place.x,
                  place.y, last, pixel);
    }
  }
  return wrong;
}

/// Heat maps of a job.
struct Maps {
  Maps(Inspector& inspector, uint32_t job) {
    for (const Heat heat : {Heat::kFragments, Heat::kRemoved, Heat::kShaded})
      if (auto map = inspector.heat(job, ~uint64_t{0}, 0, heat); map.ok()) all.push_back(*std::move(map));
  }
  std::vector<HeatPicture> all;
};

/// @return  whether a map differs from the history
bool differs(const Maps& maps, const History& history, const PixelPlace& place) {
  if (maps.all.size() != 3 || maps.all[0].pixels.empty() || history.is_cut) return false;
  uint32_t counts[3] = {};
  for (const PixelEvent& event : history.events) {
    if (event.kind != PixelEvent::Kind::kFragment) continue;
    ++counts[0];
    counts[1] += event.tests_early && event.passed_early == 0;
    counts[2] += !event.runs.empty();
  }
  bool any = false;
  for (size_t n = 0; n < 3; ++n) {
    const uint32_t mapped = maps.all[n].pixels[size_t{place.y} * maps.all[n].config.width + place.x];
    if (mapped == counts[n]) continue;
    any = true;
    std::printf("job %u pixel %u,%u: map %zu has %u, the history %u\n", place.job, place.x, place.y, n,
                mapped, counts[n]);
  }
  return any;
}

int check(const char* path, int pixels) {
  auto opened = Inspector::open(path, nullptr);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", path, std::string(opened.status().message()).c_str());
    return 1;
  }
  Inspector& inspector = **opened;
  std::vector<std::pair<uint32_t, std::vector<Stored>>> renders;
  for (uint32_t job = 1; job <= inspector.jobs().size(); ++job) {
    if (inspector.jobs()[job - 1].kind != daemon::CapturedJob::kRender) continue;
    std::vector<Stored> stored = pictures_of(inspector, job);
    if (!stored.empty()) renders.emplace_back(job, std::move(stored));
  }
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same pixels every time
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random()) % limit; };
  int compared = 0, drawn = 0, wrong = 0;
  for (const auto& [job, stored] : renders) {
    const int share = (pixels + static_cast<int>(renders.size()) - 1) / static_cast<int>(renders.size());
    const Maps maps(inspector, job);
    for (int n = 0; n < share; ++n) {
      const tools::Picture& first = stored[0].picture;
      const PixelPlace place = {.job = job, .x = below(first.width), .y = below(first.height)};
      const auto history = inspector.history(place);
      if (!history.ok()) continue;
      wrong += compare(*history, place, stored, &compared, &drawn);
      wrong += differs(maps, *history, place);
    }
  }
  std::printf("%d compared, %d with fragments, %d wrong\n", compared, drawn, wrong);
  return compared == 0 || wrong != 0;
}

}  // namespace
}  // namespace v3d::inspect

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return v3d::inspect::check(argv[1], std::atoi(argv[2]));
}
