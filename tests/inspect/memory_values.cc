#include "tests/inspect/memory_values.h"

#include <cstddef>
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gpu/tlb/color_codec.h"

namespace v3d::inspect {
namespace {

constexpr uint8_t kRgba8 = 27, kSrgb8Alpha8 = 26;
constexpr uint8_t kDepth = 9, kStencil = 10, kBoth = 11;
constexpr uint8_t kAverage = 1, kAllSamples = 3;

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
  const tlb::LoadStore& transfer = followed.stores[store];
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

}  // namespace

void compare(Memory memory, const Followed& followed, Counts& counts) {
  const PixelPlace& place = followed.place;
  for (size_t store = 0; store < followed.stores.size(); ++store) {
    const tlb::LoadStore& transfer = followed.stores[store];
    const bool keeps_all = transfer.raw_samples || transfer.decimate == kAllSamples;
    const uint32_t samples = followed.config.multisample && keeps_all ? 4 : 1;
    const std::string kind = kind_of(transfer, followed.config);
    for (uint32_t sample = 0; sample < samples; ++sample) {
      std::string error;
      const auto right = is_right(memory, followed, store, sample, &error);
      if (!right) {
        ++counts.failed[absl::StrCat("not comparable: ", kind, ": ", error)];
        continue;
      }
      ++counts.compared;
      ++counts.kinds[kind];
      counts.drawn += followed.has_fragment;
      if (*right) continue;
      ++counts.wrong;
      std::printf("job %u layer %u pixel %u,%u sample %u: the last value of %s is not in memory\n", place.job,
                  place.layer, place.x, place.y, sample, kind.c_str());
    }
  }
}

}  // namespace v3d::inspect
