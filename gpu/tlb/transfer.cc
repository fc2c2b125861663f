#include "gpu/tlb/transfer.h"

#include <algorithm>
#include <array>

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

constexpr bool is_memory_format(uint8_t number) {
  switch (static_cast<tmu::Tiling>(number)) {
    case tmu::Tiling::kRaster:
    case tmu::Tiling::kLineartile:
    case tmu::Tiling::kUblinear1:
    case tmu::Tiling::kUblinear2:
    case tmu::Tiling::kUif:
    case tmu::Tiling::kUifXor:
    case tmu::Tiling::kT:
    case tmu::Tiling::kLineartileRows:
      return true;
  }
  return false;
}

/// What makes the packet impossible, or an empty string.
std::string find_fault(const Tile& tile, const LoadStore& packet, bool is_load) {
  if (packet.buffer > kDepthStencil) return absl::StrFormat("buffer %d", packet.buffer);
  if (!is_memory_format(packet.memory_format))
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

/// Calls fn(number, x, word offset in the planes) for the blocks of the strip at row y.
/// @return  how many they are
template <typename Fn>
size_t for_blocks(const Tile& tile, uint32_t y, Fn&& fn) {
  const uint32_t first = tile.quad_offset(0, y);
  size_t i = 0;
  for (; i * 8 < tile.live_width; ++i)
    fn(i, static_cast<uint32_t>(i * 8), first + static_cast<uint32_t>(i) * 16);
  return i;
}

Lanes load_block(const uint32_t* plane, uint32_t offset) {
  Lanes v;
  std::memcpy(&v, plane + offset, sizeof v);
  return v;
}
void store_block(uint32_t* plane, uint32_t offset, const Lanes& v) { store_lanes(v, plane + offset); }

const uint32_t* words_of(const Lanes& v) { return reinterpret_cast<const uint32_t*>(&v); }

/// Blocks of a strip.
constexpr size_t kBlocks = kMaxTileSize / 8;

/// The pixels of a buffer inside the frame are written next.
void overwrite(Tile& tile, uint32_t buffer) {
  tile.fill_outside(buffer);
  tile.dirty(buffer);
}

/// Blocks of a strip that stand in a plane, as TileImage wants them.
template <typename Word>
auto strip_of_plane(const Tile& tile, Word* plane, uint32_t y) {
  Word* const strip = plane + tile.quad_offset(0, y);
  return [=](uint32_t block) { return strip + block * kLanes; };
}
/// The same of two strips, one below the other.
template <typename Word>
auto strips_of_plane(const Tile& tile, Word* plane, uint32_t y) {
  const auto upper = strip_of_plane(tile, plane, y), lower = strip_of_plane(tile, plane, y + 2);
  return [=](uint32_t block, int half) { return half == 0 ? upper(block) : lower(block); };
}

/// Loads a plane, each of whose words is made of a texel.
template <typename Of>
void load_plane(const Tile& tile, TileImage& image, uint32_t* plane, const Of& of) {
  if (image.in_rows())
    for (uint32_t y = 0; y < tile.live_height; y += 2) image.get_rows(y, strip_of_plane(tile, plane, y), of);
  else
    for (uint32_t y = 0; y < tile.live_height; y += 4)
      image.get_utiles(y, strips_of_plane(tile, plane, y), of);
}

void load_color(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint32_t rt = packet.buffer;
  const RenderTarget& target = tile.config.targets[rt];
  const uint32_t words = color_words(target);
  const bool all_samples = packet.decimate == kAllSamples;
  const uint32_t image_samples = all_samples ? tile.samples() : 1, copies = tile.samples() / image_samples;
  const ColorCodec codec(format, target, packet);
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  overwrite(tile, Tile::kColors + rt);
  if ((image.in_utiles() || image.in_rows()) && tile.samples() == 1) {
    if (codec.copies()) return load_plane(tile, image, tile.color(rt, 0, 0), SameTexels());
    if (codec.swaps_bytes()) return load_plane(tile, image, tile.color(rt, 0, 0), SwappedTexels());
  }
  std::array<ColorWords, kBlocks> texels, colors;
  const std::array<ColorWords, kBlocks>& loaded = codec.copies() ? texels : colors;
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, true);
    for (uint32_t s = 0; s < image_samples; ++s) {
      const size_t count =
          for_blocks(tile, y, [&](size_t i, uint32_t x, uint32_t) { image.get(x, s, texels[i].data()); });
      if (!codec.copies()) codec.load({texels.data(), count}, colors.data());
      for (uint32_t copy = 0; copy < copies; ++copy)
        for (uint32_t w = 0; w < words; ++w) {
          uint32_t* const plane = tile.color(rt, s + copy, w);
          for_blocks(tile, y,
                     [&](size_t i, uint32_t, uint32_t offset) { store_block(plane, offset, loaded[i][w]); });
        }
    }
  }
}

/// A strip of a render target as decimation leaves it. @return  the number of blocks
size_t read_color(Tile& tile, uint32_t rt, bool average, uint32_t sample, uint32_t y, ColorWords* colors) {
  const RenderTarget& target = tile.config.targets[rt];
  const uint32_t words = color_words(target);
  const uint32_t* planes[kMaxSamples][kMaxWords];
  const uint32_t samples = average ? kMaxSamples : 1;
  for (uint32_t s = 0; s < samples; ++s)
    for (uint32_t w = 0; w < words; ++w) planes[s][w] = tile.color(rt, sample + s, w);
  return for_blocks(tile, y, [&](size_t i, uint32_t, uint32_t offset) {
    if (!average) {
      for (uint32_t w = 0; w < words; ++w) colors[i][w] = load_block(planes[0][w], offset);
      return;
    }
    Lanes of_samples[kMaxSamples][kMaxWords];
    for (uint32_t s = 0; s < samples; ++s)
      for (uint32_t w = 0; w < words; ++w) of_samples[s][w] = load_block(planes[s][w], offset);
    average_samples(target.type, words, of_samples, colors[i].data());
  });
}

/// Stores a plane's words, each of which is a texel.
template <typename Of>
void store_plane(const Tile& tile, TileImage& image, const uint32_t* plane, const Of& of) {
  if (image.in_rows())
    for (uint32_t y = 0; y < tile.live_height; y += 2) image.put_rows(y, strip_of_plane(tile, plane, y), of);
  else
    for (uint32_t y = 0; y < tile.live_height; y += 4)
      image.put_utiles(y, 0, strips_of_plane(tile, plane, y), of);
}

/// Stores a tile of which all texels are the same.
/// @param kept  bits that memory keeps; only of utiles
void store_constant(const Tile& tile, TileImage& image, uint32_t kept, const Lanes& texels) {
  if (image.in_rows())
    for (uint32_t y = 0; y < tile.live_height; y += 2) image.set_rows(y, texels);
  else
    for (uint32_t y = 0; y < tile.live_height; y += 4) image.set_utiles(y, kept, texels);
}

/// Stores a tile of whole utiles.
/// @param texels  (y) gives what TileImage::put_utiles() asks for, of the four rows at y
template <typename Texels>
void store_utiles(const Tile& tile, TileImage& image, uint32_t kept, const Texels& texels) {
  for (uint32_t y = 0; y < tile.live_height; y += 4) image.put_utiles(y, kept, texels(y), SameTexels());
}

void store_color(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint32_t rt = packet.buffer;
  const bool all_samples = packet.decimate == kAllSamples;
  const bool average = packet.decimate == kAverage && tile.config.multisample;
  const uint32_t image_samples = all_samples ? tile.samples() : 1;
  const ColorCodec codec(format, tile.config.targets[rt], packet);
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  const bool constant = tile.is_clear(Tile::kColors + rt) && !codec.dithers();
  constant ? tile.fill_strip(Tile::kColors + rt) : tile.fill(Tile::kColors + rt);
  std::array<ColorWords, kBlocks> colors, texels;
  const std::array<ColorWords, kBlocks>& stored = codec.copies() ? colors : texels;
  const auto make_texels = [&](uint32_t y, uint32_t sample) {
    const size_t count = read_color(tile, rt, average, sample, y, colors.data());
    if (!codec.copies()) codec.store({colors.data(), count}, (y >> 1) & 1, texels.data());
    return count;
  };
  if (constant) make_texels(0, 0);
  if (image.in_utiles() || image.in_rows()) {
    if (constant) return store_constant(tile, image, 0, stored[0][0]);
    const uint32_t* const plane = tile.color(rt, 0, 0);
    if (codec.copies() && !average) return store_plane(tile, image, plane, SameTexels());
    if (codec.swaps_bytes() && !average) return store_plane(tile, image, plane, SwappedTexels());
  }
  if (image.in_utiles()) {
    std::array<Lanes, kBlocks> halves[2];
    return store_utiles(tile, image, 0, [&](uint32_t y) {
      for (uint32_t half = 0; half < 2; ++half) {
        const size_t count = make_texels(y + 2 * half, 0);
        for (size_t i = 0; i < count; ++i) halves[half][i] = stored[i][0];
      }
      return [&halves](uint32_t block, int half) { return words_of(halves[half][block]); };
    });
  }
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, false);
    for (uint32_t s = 0; s < image_samples; ++s) {
      if (!constant) make_texels(y, s);
      for_blocks(tile, y, [&](size_t i, uint32_t x, uint32_t) { image.put(x, s, stored[i].data()); });
    }
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
  if (moved.depth) overwrite(tile, Tile::kDepth);
  if (moved.stencil) overwrite(tile, Tile::kStencil);
  if ((image.in_utiles() || image.in_rows()) && tile.samples() == 1 &&
      (!moved.depth || depth_type_of(format) == tile.config.depth_type)) {
    if (moved.depth && packed) load_plane(tile, image, tile.depth(0), DepthOfTexels());
    if (moved.depth && !packed) load_plane(tile, image, tile.depth(0), SameTexels());
    if (moved.stencil) load_plane(tile, image, tile.stencil(0), StencilOfTexels());
    return;
  }
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, true);
    for_blocks(tile, y, [&](size_t, uint32_t x, uint32_t offset) {
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

/// Blocks of a strip in a plane, or one block that stands for all of them.
struct Blocks {
  const uint32_t* first;
  uint32_t step;
  Lanes load(size_t i) const { return load_block(first, static_cast<uint32_t>(i) * step); }
};

/// A strip of depth and stencil as texels of the format.
size_t read_depth_stencil(Tile& tile, const Aspects& moved, const ImageFormat& format, uint32_t sample,
                          uint32_t y, Lanes* texels) {
  const DepthType from = tile.config.depth_type, to = depth_type_of(format);
  const uint32_t shift = format.numeric == Numeric::kDepth24Stencil ? 8 : 0;
  const auto blocks = [&](const uint32_t* plane) { return Blocks{plane + tile.quad_offset(0, y), kLanes}; };
  // A plane that nobody wrote need not be read: stencil next to depth, mostly.
  const bool reads_stencil = moved.stencil && !tile.is_clear(Tile::kStencil);
  const Lanes constant = splat(moved.stencil ? tile.config.clear_stencil : 0u);
  const Blocks stencil = reads_stencil ? blocks(tile.stencil(sample)) : Blocks{words_of(constant), 0};
  const size_t count = (tile.live_width + 7) / 8;
  if (!moved.depth) {
    for (size_t i = 0; i < count; ++i) store_lanes(stencil.load(i), &texels[i]);
    return count;
  }
  const Blocks depth = blocks(tile.depth(sample));
  const auto combine = [&](size_t i, const Lanes& stored) {
    store_lanes(by_parts<Lanes>([shift](auto d, auto s) { return d << shift | s; }, stored, stencil.load(i)),
                &texels[i]);
  };
  if (from == to)
    for (size_t i = 0; i < count; ++i) combine(i, depth.load(i));
  else
    for (size_t i = 0; i < count; ++i) combine(i, convert_depth(from, to, depth.load(i)));
  return count;
}

/// One aspect of D24S8 leaves the other one's bits in memory alone.
void store_depth_stencil(Memory memory, Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const Aspects moved = aspects(packet.buffer, format);
  const bool packed = format.numeric == Numeric::kDepth24Stencil;
  const uint32_t kept = !packed || (moved.depth && moved.stencil) ? 0 : moved.depth ? 0xffu : ~0xffu;
  const bool all_samples = packet.decimate == kAllSamples;
  const bool constant =
      (!moved.depth || tile.is_clear(Tile::kDepth)) && (!moved.stencil || tile.is_clear(Tile::kStencil));
  if (moved.depth) constant ? tile.fill_strip(Tile::kDepth) : tile.fill(Tile::kDepth);
  TileImage image(memory, tile, packet, format.bytes, all_samples);
  std::array<Lanes, kBlocks> texels;
  if (constant) read_depth_stencil(tile, moved, format, 0, 0, texels.data());
  if (image.in_utiles() || (image.in_rows() && kept == 0)) {
    if (constant) return store_constant(tile, image, kept, texels[0]);
    // Nobody wrote the stencil next to it, mostly.
    const bool depth_alone = moved.depth && kept == 0 && (!moved.stencil || tile.is_clear(Tile::kStencil));
    if (depth_alone && depth_type_of(format) == tile.config.depth_type) {
      if (!packed) return store_plane(tile, image, tile.depth(0), SameTexels());
      return store_plane(tile, image, tile.depth(0), DepthTexels{tile.config.clear_stencil});
    }
  }
  if (image.in_utiles()) {
    std::array<Lanes, kBlocks> lower;
    return store_utiles(tile, image, kept, [&](uint32_t y) {
      read_depth_stencil(tile, moved, format, 0, y, texels.data());
      read_depth_stencil(tile, moved, format, 0, y + 2, lower.data());
      return [&](uint32_t block, int half) { return words_of(half == 0 ? texels[block] : lower[block]); };
    });
  }
  for (uint32_t y = 0; y < tile.live_height; y += 2) {
    image.begin_strip(y, kept != 0);
    for (uint32_t s = 0; s < (all_samples ? tile.samples() : 1); ++s) {
      if (!constant) read_depth_stencil(tile, moved, format, s, y, texels.data());
      for_blocks(tile, y, [&](size_t i, uint32_t x, uint32_t) {
        Lanes texel = texels[i];
        if (kept != 0) {
          Lanes old;
          image.get(x, s, &old);
          texel |= old & kept;
        }
        image.put(x, s, &texel);
      });
    }
    image.flush_strip();
  }
}

/// The quads of a tile one after the other, and of each its samples (vc4-graphics.md 4.3): the order of the
/// planes themselves, with those of the samples mixed.
/// @param move  (memory of the quad's sample, buffer of the planes, sample, word offset in the plane)
template <typename Move>
void for_raw_quads(Memory memory, const Tile& tile, const LoadStore& packet, Move&& move) {
  const uint32_t in_a_row = (tile.config.width + tile.config.tile_width - 1) / tile.config.tile_width;
  GpuAddr address = packet.address + kRawTileBytes * (tile.row * in_a_row + tile.column);
  const uint32_t words = tile.config.tile_width * tile.config.tile_height;
  for (uint32_t offset = 0; offset < words; offset += 4)
    for (uint32_t s = 0; s < tile.samples(); ++s, address += sizeof(QuadWords))
      move(memory.host(address), s, offset);
}

/// A 16 KiB tile has 64x64 pixels, or 32x32 of four samples.
bool has_raw_size(const Tile& tile) {
  return tile.config.tile_width * tile.config.tile_height * tile.samples() * sizeof(uint32_t) ==
         kRawTileBytes;
}

std::string find_raw_fault(const Tile& tile, const LoadStore& packet) {
  if (packet.buffer != 0 && packet.buffer != kDepthStencil)
    return absl::StrFormat("buffer %d with raw samples", packet.buffer);
  if (packet.buffer == 0 && !tile.has_target(0)) return "a color buffer, which the frame does not have";
  if (!has_raw_size(tile)) return "raw samples in tiles of another size than 16 KiB";
  return {};
}

void load_raw(Memory memory, Tile& tile, const LoadStore& packet) {
  QuadWords quad;
  if (packet.buffer == 0) {
    tile.fill(Tile::kColors);
    tile.dirty(Tile::kColors);
    return for_raw_quads(memory, tile, packet, [&](const uint8_t* from, uint32_t s, uint32_t offset) {
      std::memcpy(tile.color(0, s, 0) + offset, from, sizeof quad);
    });
  }
  for (const uint32_t buffer : {Tile::kDepth, Tile::kStencil}) {
    tile.fill(buffer);
    tile.dirty(buffer);
  }
  for_raw_quads(memory, tile, packet, [&](const uint8_t* from, uint32_t s, uint32_t offset) {
    std::memcpy(&quad, from, sizeof quad);
    const QuadWords depth = quad >> 8, stencil = quad & 0xffu;
    std::memcpy(tile.depth(s) + offset, &depth, sizeof depth);
    std::memcpy(tile.stencil(s) + offset, &stencil, sizeof stencil);
  });
}

void store_raw(Memory memory, Tile& tile, const LoadStore& packet) {
  if (packet.buffer == 0) {
    tile.fill(Tile::kColors);
    return for_raw_quads(memory, tile, packet, [&](uint8_t* to, uint32_t s, uint32_t offset) {
      std::memcpy(to, tile.color(0, s, 0) + offset, sizeof(QuadWords));
    });
  }
  tile.fill(Tile::kDepth);
  tile.fill(Tile::kStencil);
  for_raw_quads(memory, tile, packet, [&](uint8_t* to, uint32_t s, uint32_t offset) {
    QuadWords depth, stencil;
    std::memcpy(&depth, tile.depth(s) + offset, sizeof depth);
    std::memcpy(&stencil, tile.stencil(s) + offset, sizeof stencil);
    const QuadWords texels = depth << 8 | stencil;
    std::memcpy(to, &texels, sizeof texels);
  });
}

/// @return  as load_tile() and store_tile()
template <bool kLoad>
bool move_raw(Memory memory, Tile& tile, const LoadStore& packet, std::string* error) {
  const std::string fault = tile.fault.empty() ? find_raw_fault(tile, packet) : tile.fault;
  if (!fault.empty()) {
    if (error) *error = absl::StrFormat("TLB %s: %s is not implemented", kLoad ? "load" : "store", fault);
    return false;
  }
  kLoad ? load_raw(memory, tile, packet) : store_raw(memory, tile, packet);
  tile.counts[kLoad ? perf::kTlbWordsRead : perf::kTlbWordsWritten] += perf::bus_words(kRawTileBytes);
  return true;
}

/// Memory words of 16 bytes (compute-and-timing.md 15.1).
uint64_t memory_words(const Tile& tile, const LoadStore& packet, const ImageFormat& format) {
  const uint64_t samples = packet.decimate == kAllSamples ? tile.samples() : 1;
  return perf::bus_words(samples * tile.live_width * tile.live_height * format.bytes);
}

}  // namespace

bool load_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error) {
  if (packet.buffer == kNoBuffer) return true;
  if (packet.raw_samples) return move_raw<true>(memory, tile, packet, error);
  if (!check(tile, packet, true, error)) return false;
  const ImageFormat& format = image_format(packet.format);
  packet.buffer < kNoBuffer ? load_color(memory, tile, packet, format)
                            : load_depth_stencil(memory, tile, packet, format);
  tile.counts[perf::kTlbWordsRead] += memory_words(tile, packet, format);
  return true;
}

bool store_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error) {
  if (packet.buffer == kNoBuffer) return true;
  if (packet.raw_samples) return move_raw<false>(memory, tile, packet, error);
  if (!check(tile, packet, false, error)) return false;
  const ImageFormat& format = image_format(packet.format);
  packet.buffer < kNoBuffer ? store_color(memory, tile, packet, format)
                            : store_depth_stencil(memory, tile, packet, format);
  tile.counts[perf::kTlbWordsWritten] += memory_words(tile, packet, format);
  if (!packet.clear_after) return true;
  if (packet.buffer < kNoBuffer) tile.clear(Tile::kColors + packet.buffer);
  if (packet.buffer == kDepth || packet.buffer == kDepthStencil) tile.clear(Tile::kDepth);
  if (packet.buffer == kStencil || packet.buffer == kDepthStencil) tile.clear(Tile::kStencil);
  return true;
}

}  // namespace v3d::tlb
