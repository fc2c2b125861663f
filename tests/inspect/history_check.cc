/// inspect_history CAPTURE PIXELS [SEED]: at random pixels of the render jobs of a capture the last values of
/// the history, of each target, depth, stencil and sample that is stored, are what memory holds when the job
/// has run as it is, and the history has as many fragments as the heat maps count. Prints how many values
/// were compared.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gpu/tlb/color_codec.h"
#include "gpu/tlb/tile_buffer.h"
#include "tools/inspect/inspector.h"

namespace v3d::inspect {
namespace {

constexpr uint8_t kRgba8 = 27, kSrgb8Alpha8 = 26;
constexpr uint8_t kDepth = 9, kStencil = 10, kBoth = 11;
constexpr uint8_t kAverage = 1, kAllSamples = 3;

/// What a pixel and its samples hold at the end of the job, by its histories.
struct Followed {
  PixelPlace place;
  tlb::Config config;
  std::vector<PixelEvent> stores;                               ///< of sample 0, the last one of each image
  std::array<std::vector<tlb::TileBuffer::Sample>, 4> samples;  ///< for each of the stores
  bool has_fragment = false;
};

struct Counts {
  int compared = 0, drawn = 0, wrong = 0;
  std::map<std::string, int> kinds;
};

bool is_color(const tlb::LoadStore& transfer) { return transfer.buffer < kNoBuffer; }

/// As a load that brings back what a store of the same image has left.
tlb::LoadStore load_of(tlb::LoadStore transfer) {
  if (transfer.decimate == kAverage) transfer.decimate = 0;  // memory holds the average
  // Several values of 8 bits may stand for one of 8 bits in the other curve.
  if (transfer.format == kSrgb8Alpha8 && is_color(transfer)) transfer.format = kRgba8;
  return transfer;
}

/// A tile buffer that stands at the tile of the pixel.
bool stand(tlb::TileBuffer& tile, const tlb::Config& config, const PixelPlace& place, std::string* error) {
  if (!tile.configure(config, error)) return false;
  tile.begin_tile(place.x / config.tile_width, place.y / config.tile_height);
  return true;
}

using Words = std::array<uint32_t, 4>;

/// What a load gives of words that were stored to memory of the check's own. The tile begins at the frame's
/// first pixel there, which leaves the pixel at its place in patterns of dithering.
std::optional<Words> stored_and_loaded(const tlb::Config& config, tlb::LoadStore transfer, const Words& words,
                                       const PixelPlace& place, std::string* error) {
  constexpr uint32_t kRow = 2 * 64 * 16;
  static std::vector<uint8_t> bytes(size_t{kRow} * 2 * 64 + 4096);
  tlb::TileBuffer tile((Memory(bytes.data())));
  tlb::Config small = config;
  small.width = config.tile_width;
  small.height = config.tile_height;
  small.targets[transfer.buffer].clear = words;
  if (!tile.configure(small, error)) return std::nullopt;
  tile.begin_tile(0, 0);
  tile.clear_colors();
  transfer.memory_format = 0;
  transfer.flip_y = false;
  transfer.stride_or_height = kRow;
  transfer.address = 0;
  transfer.clear_after = false;
  if (!tile.store(transfer, error) || !tile.load(load_of(transfer), error)) return std::nullopt;
  return tile.sample(place.x % config.tile_width, place.y % config.tile_height, 0).colors[transfer.buffer];
}

/// The average of the samples, which a store may leave in their place.
Words average(const tlb::RenderTarget& target, const Followed& followed, size_t store, size_t buffer) {
  Lanes all[tlb::kMaxSamples][tlb::kMaxWords] = {}, out[tlb::kMaxWords] = {};
  const uint32_t words = 1u << target.bpp;
  for (size_t sample = 0; sample < followed.samples.size(); ++sample)
    for (size_t word = 0; word < words; ++word)
      all[sample][word] = Lanes{} + followed.samples[sample][store].colors[buffer][word];
  tlb::average_samples(target.type, words, all, out);
  Words result{};
  for (size_t word = 0; word < words; ++word) result[word] = out[word][0];
  return result;
}

/// One sample of one store beside memory.
/// @return  whether it is right; nothing where that cannot be told, with the reason in *error
std::optional<bool> is_right(Memory memory, const Followed& followed, size_t store, uint32_t sample,
                             std::string* error) {
  const PixelPlace& place = followed.place;
  const tlb::LoadStore& transfer = followed.stores[store].transfer;
  tlb::TileBuffer tile(memory);
  if (!stand(tile, followed.config, place, error) || !tile.load(load_of(transfer), error))
    return std::nullopt;
  const tlb::TileBuffer::Sample found = tile.sample(place.x, place.y, sample);
  const tlb::TileBuffer::Sample& last = followed.samples[sample][store];
  if (transfer.buffer == kDepth) return found.depth == last.depth;
  if (transfer.buffer == kStencil) return found.stencil == last.stencil;
  if (transfer.buffer == kBoth) return found.depth == last.depth && found.stencil == last.stencil;
  const size_t rt = transfer.buffer;
  const tlb::RenderTarget& target = followed.config.targets[rt];
  if (transfer.raw_samples) return found.colors[rt] == last.colors[rt];
  const bool averages = transfer.decimate == kAverage && followed.config.multisample;
  const Words words = averages ? average(target, followed, store, rt) : last.colors[rt];
  const auto expected = stored_and_loaded(followed.config, transfer, words, place, error);
  if (!expected) return std::nullopt;
  for (size_t word = 0; word < (size_t{1} << target.bpp); ++word)
    if (found.colors[rt][word] != (*expected)[word]) return false;
  return true;
}

std::string kind_of(const tlb::LoadStore& transfer, const tlb::Config& config) {
  const std::string what = transfer.buffer == kDepth     ? "depth"
                           : transfer.buffer == kStencil ? "stencil"
                           : transfer.buffer == kBoth    ? "depth and stencil"
                                                         : "target " + std::to_string(transfer.buffer);
  const char* const samples = !config.multisample                ? ""
                              : transfer.raw_samples             ? ", raw samples"
                              : transfer.decimate == kAllSamples ? ", all samples"
                              : transfer.decimate == kAverage    ? ", average"
                                                                 : ", sample 0";
  return what + ", format " + std::to_string(transfer.format) + samples;
}

void compare(Memory memory, const Followed& followed, Counts& counts) {
  for (size_t store = 0; store < followed.stores.size(); ++store) {
    const tlb::LoadStore& transfer = followed.stores[store].transfer;
    const bool keeps_all = transfer.raw_samples || transfer.decimate == kAllSamples;
    const uint32_t samples = followed.config.multisample && keeps_all ? 4 : 1;
    const std::string kind = kind_of(transfer, followed.config);
    for (uint32_t sample = 0; sample < samples; ++sample) {
      std::string error;
      const auto right = is_right(memory, followed, store, sample, &error);
      if (!right) {
        ++counts.kinds[absl::StrCat("not comparable: ", kind, ": ", error)];
        continue;
      }
      ++counts.compared;
      ++counts.kinds[kind];
      counts.drawn += followed.has_fragment;
      if (*right) continue;
      ++counts.wrong;
      const PixelPlace& place = followed.place;
      std::printf("job %u layer %u pixel %u,%u sample %u: the last value of %s is not in memory\n", place.job,
                  place.layer, place.x, place.y, sample, kind.c_str());
    }
  }
}

/// The stores of a history, the last one of each image.
std::vector<PixelEvent> last_stores(const History& history) {
  std::vector<PixelEvent> stores;
  for (const PixelEvent& event : history.events) {
    if (event.kind != PixelEvent::Kind::kStore) continue;
    std::erase_if(stores, [&event](const PixelEvent& earlier) {
      return earlier.transfer.address == event.transfer.address &&
             earlier.transfer.buffer == event.transfer.buffer;
    });
    stores.push_back(event);
  }
  return stores;
}

absl::StatusOr<Followed> follow(Inspector& inspector, PixelPlace place, const History& first) {
  Followed followed;
  followed.place = place;
  followed.config = first.config;
  followed.stores = last_stores(first);
  for (const PixelEvent& event : first.events)
    followed.has_fragment = followed.has_fragment || event.kind == PixelEvent::Kind::kFragment;
  for (uint32_t sample = 0; sample < (first.config.multisample ? 4 : 1); ++sample) {
    place.sample = sample;
    const auto history = inspector.history(place);
    if (!history.ok()) return history.status();
    for (const PixelEvent& event : last_stores(*history)) followed.samples[sample].push_back(event.before);
    if (followed.samples[sample].size() != followed.stores.size())
      return absl::InternalError("the samples of a pixel differ in their stores");
  }
  return followed;
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

/// @return  the frame of a render job, or width 0
PixelPlace frame_of(Inspector& inspector, uint32_t job) {
  const auto map = inspector.heat(job, ~uint64_t{0}, 0, Heat::kFragments);
  if (map.ok() && !map->pixels.empty()) return {.job = job, .x = map->config.width, .y = map->config.height};
  const auto history = inspector.history({.job = job});
  if (!history.ok()) return {.job = job, .x = 0};
  return {.job = job, .x = history->config.width, .y = history->config.height};
}

/// Compares as many random pixels of a job.
void check_job(Inspector& inspector, const PixelPlace& frame, int pixels, std::mt19937& random,
               Counts& counts) {
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random()) % limit; };
  const Maps maps(inspector, frame.job);
  std::vector<Followed> all;
  for (int n = 0; n < pixels; ++n) {
    const PixelPlace place = {.job = frame.job, .x = below(frame.x), .y = below(frame.y)};
    const auto history = inspector.history(place);
    if (!history.ok()) {
      ++counts.kinds["no history: " + std::string(history.status().message())];
      continue;
    }
    counts.wrong += differs(maps, *history, place);
    auto followed = follow(inspector, place, *history);
    if (followed.ok())
      all.push_back(*std::move(followed));
    else
      ++counts.kinds["no history: " + std::string(followed.status().message())];
  }
  const absl::Status ran = inspector.run_whole(frame.job, [&](mmu::AddressSpace& space) {
    for (const Followed& followed : all) compare(space.memory(), followed, counts);
  });
  if (!ran.ok()) std::printf("job %u: %s\n", frame.job, std::string(ran.message()).c_str());
}

int check(const char* path, int pixels, uint32_t seed) {
  auto opened = Inspector::open(path, nullptr);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", path, std::string(opened.status().message()).c_str());
    return 1;
  }
  Inspector& inspector = **opened;
  std::vector<PixelPlace> frames;
  for (uint32_t job = 1; job <= inspector.jobs().size(); ++job) {
    if (inspector.jobs()[job - 1].kind != daemon::CapturedJob::kRender) continue;
    if (const PixelPlace frame = frame_of(inspector, job); frame.x != 0) frames.push_back(frame);
  }
  std::mt19937 random(seed);
  // Captures of many jobs have as many of them looked at as there are pixels.
  std::shuffle(frames.begin(), frames.end(), random);
  Counts counts;
  int left = pixels;
  for (size_t n = 0; n < frames.size() && left > 0; ++n) {
    const int jobs = static_cast<int>(frames.size() - n);
    const int share = (left + jobs - 1) / jobs;
    check_job(inspector, frames[n], share, random, counts);
    left -= share;
  }
  for (const auto& [kind, number] : counts.kinds) std::printf("%6d %s\n", number, kind.c_str());
  std::printf("%d compared, %d with fragments, %d wrong\n", counts.compared, counts.drawn, counts.wrong);
  return counts.compared == 0 || counts.wrong != 0;
}

}  // namespace
}  // namespace v3d::inspect

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  return v3d::inspect::check(argv[1], std::atoi(argv[2]), argc == 4 ? std::atoi(argv[3]) : 1);
}
