#include "gpu/tlb/transfer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/tlb/color_codec.h"
#include "gpu/tlb/tile_image.h"

namespace v3d::tlb {
namespace {

enum Buffer : uint8_t { kNoBuffer = 8, kDepth = 9, kStencil = 10, kDepthStencil = 11 };
enum Decimate : uint8_t { kSample0 = 0, kAverage = 1, kAllSamples = 3 };

/// Which of the two aspects a packet for a depth/stencil buffer moves.
struct Aspects {
  bool depth, stencil;
};

Aspects aspects(uint8_t buffer, const ImageFormat& format) {
  const bool has_depth = format.numeric != Numeric::kStencil;
  const bool has_stencil = format.numeric == Numeric::kStencil || format.numeric == Numeric::kDepth24Stencil;
  return {buffer != kStencil && has_depth, buffer != kDepth && has_stencil};
}

/// What makes the packet impossible, or an empty string.
std::string find_fault(const Tile& tile, const LoadStore& packet, bool is_load) {
  if (packet.buffer > kDepthStencil) return absl::StrFormat("buffer %d", packet.buffer);
  if (packet.memory_format > static_cast<uint8_t>(tmu::Tiling::kUifXor))
    return absl::StrFormat("memory format %d", packet.memory_format);
  const ImageFormat& format = image_format(packet.format);
  const bool wants_color = packet.buffer < kNoBuffer;
  const bool depth_format = format.numeric >= Numeric::kDepth32F;
  const Aspects moved = aspects(packet.buffer, format);
  if (format.numeric == Numeric::kUnsupported || wants_color == depth_format ||
      (!wants_color && !moved.depth && !moved.stencil))
    return absl::StrFormat("image format %d (%s) with buffer %d", packet.format, format.name, packet.buffer);
  if (wants_color && !tile.has_target(packet.buffer))
    return absl::StrFormat("buffer %d, which the frame does not have", packet.buffer);
  const bool can_average_it = wants_color && can_average(tile.config.targets[packet.buffer].type);
  const bool known =
      packet.decimate == kSample0 ||
      (packet.decimate == kAverage && !is_load && (can_average_it || !tile.config.multisample)) ||
      (packet.decimate == kAllSamples && tile.config.multisample);
  if (!known)
    return absl::StrFormat("decimate mode %d of buffer %d in a frame with %d samples", packet.decimate,
                           packet.buffer, tile.samples());
  return {};
}

bool check(const Tile& tile, const LoadStore& packet, bool is_load, std::string* error) {
  const std::string fault = tile.fault.empty() ? find_fault(tile, packet, is_load) : tile.fault;
  if (!fault.empty() && error)
    *error = absl::StrFormat("TLB %s: %s is not implemented", is_load ? "load" : "store", fault);
  return fault.empty();
}

/// Calls fn(x, word offset in the planes) for the blocks of the strip at row y.
template <typename Fn>
void for_blocks(const Tile& tile, uint32_t y, Fn&& fn) {
  for (uint32_t x = 0; x < tile.live_width; x += 8) fn(x, tile.quad_offset(x, y));
}

Lanes load_block(const uint32_t* plane, uint32_t offset) {
  Lanes v;
  std::memcpy(&v, plane + offset, sizeof v);
  return v;
}
void store_block(uint32_t* plane, uint32_t offset, Lanes v) { std::memcpy(plane + offset, &v, sizeof v); }

void load_color(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint32_t rt = packet.buffer;
  const RenderTarget& target = tile.config.targets[rt];
  const uint32_t words = color_words(target);
  const bool all_samples = packet.decimate == kAllSamples;
  const uint32_t image_samples = all_samples ? tile.samples() : 1, copies = tile.samples() / image_samples;
  const ColorCodec codec(format, target, packet);
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  tile.color_is_clear[rt] = false;
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, true);
    for_blocks(tile, y, [&](uint32_t x, uint32_t offset) {
      for (uint32_t s = 0; s < image_samples; ++s) {
        Lanes texel[kMaxWords], converted[kMaxWords];
        image.get(x, s, texel);
        if (!codec.copies()) codec.load(texel, converted);
        const Lanes* const color = codec.copies() ? texel : converted;
        for (uint32_t copy = 0; copy < copies; ++copy)
          for (uint32_t w = 0; w < words; ++w) store_block(tile.color(rt, s + copy, w), offset, color[w]);
      }
    });
  }
}

/// Words of one block as decimation leaves them.
void read_color(Tile& tile, uint32_t rt, bool average, uint32_t sample, uint32_t offset, Lanes* color) {
  const RenderTarget& target = tile.config.targets[rt];
  const uint32_t words = color_words(target);
  if (!average) {
    for (uint32_t w = 0; w < words; ++w) color[w] = load_block(tile.color(rt, sample, w), offset);
    return;
  }
  Lanes samples[kMaxSamples][kMaxWords];
  for (uint32_t s = 0; s < kMaxSamples; ++s)
    for (uint32_t w = 0; w < words; ++w) samples[s][w] = load_block(tile.color(rt, s, w), offset);
  average_samples(target.type, words, samples, color);
}

void store_color(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint32_t rt = packet.buffer;
  const RenderTarget& target = tile.config.targets[rt];
  const bool all_samples = packet.decimate == kAllSamples;
  const bool average = packet.decimate == kAverage && tile.config.multisample;
  const uint32_t image_samples = all_samples ? tile.samples() : 1;
  const ColorCodec codec(format, target, packet);
  TileImage image(memory, tile, packet, format.bytes, all_samples);

  const auto make_texel = [&](uint32_t y, uint32_t sample, uint32_t offset, Lanes* texel) {
    if (codec.copies()) {
      read_color(tile, rt, average, sample, offset, texel);
    } else {
      Lanes color[kMaxWords];
      read_color(tile, rt, average, sample, offset, color);
      codec.store(color, (y >> 1) & 1, texel);
    }
  };
  const bool constant = tile.color_is_clear[rt] && !codec.dithers();
  Lanes texel[kMaxWords];
  if (constant) make_texel(0, 0, 0, texel);
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, false);
    for_blocks(tile, y, [&](uint32_t x, uint32_t offset) {
      for (uint32_t s = 0; s < image_samples; ++s) {
        if (!constant) make_texel(y, s, offset, texel);
        image.put(x, s, texel);
      }
    });
    image.flush_strip();
  }
}

DepthType depth_type_of(const ImageFormat& format) {
  switch (format.numeric) {
    case Numeric::kDepth32F:
      return DepthType::k32F;
    case Numeric::kDepth16:
      return DepthType::k16;
    default:
      return DepthType::k24;
  }
}

Lanes convert_depth(DepthType from, DepthType to, Lanes v) {
  return from == to ? v : to_stored_depth(to, from_stored_depth(from, v));
}

/// Memory holds D24S8 with the stencil in the low byte.
void load_depth_stencil(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const Aspects moved = aspects(packet.buffer, format);
  const bool packed = format.numeric == Numeric::kDepth24Stencil;
  const bool all_samples = packet.decimate == kAllSamples;
  const uint32_t image_samples = all_samples ? tile.samples() : 1, copies = tile.samples() / image_samples;
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  if (moved.depth) tile.depth_is_clear = false;
  if (moved.stencil) tile.stencil_is_clear = false;
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, true);
    for_blocks(tile, y, [&](uint32_t x, uint32_t offset) {
      for (uint32_t s = 0; s < image_samples; ++s) {
        Lanes texel;
        image.get(x, s, &texel);
        const Lanes depth =
            convert_depth(depth_type_of(format), tile.config.depth_type, packed ? texel >> 8 : texel);
        for (uint32_t copy = 0; copy < copies; ++copy) {
          if (moved.depth) store_block(tile.depth(s + copy), offset, depth);
          if (moved.stencil) store_block(tile.stencil(s + copy), offset, texel & 0xffu);
        }
      }
    });
  }
}

/// One aspect of D24S8 leaves the other one's bits in memory alone.
void store_depth_stencil(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const Aspects moved = aspects(packet.buffer, format);
  const bool packed = format.numeric == Numeric::kDepth24Stencil;
  const uint32_t kept = !packed || (moved.depth && moved.stencil) ? 0 : moved.depth ? 0xffu : ~0xffu;
  const bool all_samples = packet.decimate == kAllSamples;
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, kept != 0);
    for_blocks(tile, y, [&](uint32_t x, uint32_t offset) {
      for (uint32_t s = 0; s < (all_samples ? tile.samples() : 1); ++s) {
        Lanes texel{};
        if (moved.depth) {
          texel =
              convert_depth(tile.config.depth_type, depth_type_of(format), load_block(tile.depth(s), offset));
          if (packed) texel <<= 8;
        }
        if (moved.stencil) texel |= load_block(tile.stencil(s), offset);
        if (kept != 0) {
          Lanes old;
          image.get(x, s, &old);
          texel |= old & kept;
        }
        image.put(x, s, &texel);
      }
    });
    image.flush_strip();
  }
}

/// Memory words of 16 bytes (compute-and-timing.md 15.1).
uint64_t memory_words(const Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint64_t samples = packet.decimate == kAllSamples ? tile.samples() : 1;
  return (samples * tile.live_width * tile.live_height * format.bytes + 15) / 16;
}

}  // namespace

bool load_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error) {
  if (packet.buffer == kNoBuffer) return true;
  if (!check(tile, packet, true, error)) return false;
  const ImageFormat& format = image_format(packet.format);
  packet.buffer < kNoBuffer ? load_color(memory, tile, packet, format)
                            : load_depth_stencil(memory, tile, packet, format);
  tile.counts[perf::kTlbWordsRead] += memory_words(tile, packet, format);
  return true;
}

bool store_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error) {
  if (packet.buffer == kNoBuffer) return true;
  if (!check(tile, packet, false, error)) return false;
  const ImageFormat& format = image_format(packet.format);
  packet.buffer < kNoBuffer ? store_color(memory, tile, packet, format)
                            : store_depth_stencil(memory, tile, packet, format);
  tile.counts[perf::kTlbWordsWritten] += memory_words(tile, packet, format);
  if (!packet.clear_after) return true;
  if (packet.buffer < kNoBuffer) tile.clear_color(packet.buffer);
  if (packet.buffer == kDepth || packet.buffer == kDepthStencil) tile.clear_depth();
  if (packet.buffer == kStencil || packet.buffer == kDepthStencil) tile.clear_stencil();
  return true;
}

}  // namespace v3d::tlb
