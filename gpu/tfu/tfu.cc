#include "gpu/tfu/tfu.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "gpu/device/profile.h"
#include "gpu/tfu/mipmap.h"
#include "gpu/tmu/format.h"
#include "gpu/tmu/layout.h"

namespace v3d::tfu {
namespace {

using tmu::Surface;
using tmu::Tiling;

/// The registers in one form for both chips.
struct Conversion {
  uint32_t type;           ///< texture data format
  uint32_t input_format;   ///< 0 raster, 1 and 2 SAND, 11..15 tiled
  uint32_t output_format;  ///< 3..7 tiled
  GpuAddr input, output;
  uint32_t input_stride;   ///< raster: texels; UIF: padded height in UIF blocks
  uint32_t padded_height;  ///< output, in UIF blocks: absolute, or with relative_padding above the image's
  bool relative_padding;
  uint32_t width, height;  ///< of level 0, in texels
  uint32_t mip_levels;     ///< to make below level 0, 0..15
  bool skip_level_0;       ///< DIMTW: level 0 is not written
};

uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }

/// Fields: Mesa v3d_tfu.h.
Conversion decode(const Registers& r, int version) {
  Conversion c = {};
  c.input = r.iia;
  c.input_stride = r.iis;
  c.width = bits(r.ios, 0, 16);
  c.height = bits(r.ios, 16, 16);
  if (version >= 71) {
    c.type = bits(r.icfg, 16, 7);
    c.input_format = bits(r.icfg, 23, 4);
    c.output = r.ioa;
    c.skip_level_0 = bits(r.ioc, 0, 1);
    c.mip_levels = bits(r.ioc, 4, 4);
    c.output_format = bits(r.ioc, 12, 3);
    c.padded_height = bits(r.ioc, 16, 16);
  } else {
    c.mip_levels = bits(r.icfg, 5, 4);
    c.type = bits(r.icfg, 9, 7);
    c.input_format = bits(r.icfg, 18, 4);
    c.padded_height = bits(r.icfg, 22, 4);
    c.relative_padding = true;
    c.output = r.ioa & ~63u;
    c.skip_level_0 = bits(r.ioa, 0, 1);
    c.output_format = bits(r.ioa, 3, 3);
  }
  return c;
}

/// Formats the TFU takes (Mesa v3dvx_formats.c, tfu_supports_tex_format); null if it or this model does not.
const tmu::Format* find_format(uint32_t type) {
  const bool supported = type <= 20 || (type >= 29 && type <= 38);
  return supported ? tmu::find_format(type) : nullptr;
}

/// Tiling of an input format code, kRaster for 0.
Tiling input_tiling(uint32_t format) { return static_cast<Tiling>(format == 0 ? 0 : format - 10); }
Tiling output_tiling(uint32_t format) { return static_cast<Tiling>(format - 2); }

bool is_uif(Tiling tiling) { return tiling == Tiling::kUif || tiling == Tiling::kUifXor; }

/// Copies raw texels from one layout to another in bands, so that no more than a band is buffered.
void copy(const Job& job, const Surface& from, const Surface& to, uint32_t width, uint32_t height) {
  constexpr uint32_t kBand = 8;  // a multiple of every utile height
  const size_t pitch = size_t{width} * from.cpp;
  std::vector<uint8_t> band(pitch * std::min(kBand, height));
  for (uint32_t y = 0; y < height && !job.stopped(); y += kBand) {
    const uint32_t lines = std::min(kBand, height - y);
    load_rectangle(job.memory, from, 0, y, width, lines, band.data(), pitch);
    store_rectangle(job.memory, to, 0, y, width, lines, band.data(), pitch);
  }
}

/// Levels 1 and up, each from the one above. They lie where the layout rules put them for a level 0 of this
/// size at the output address.
void make_mips(const Job& job, const Conversion& c, const tmu::Format& format, const Surface& level_0) {
  tmu::ImageShape shape{.width = c.width, .height = c.height, .depth = 1, .cpp = format.cpp};
  shape.num_levels = c.mip_levels + 1;
  tmu::Level levels[tmu::kMaxLevels];
  tmu::compute_levels(shape, levels);
  Surface source = level_0;
  for (uint32_t i = 1; i <= c.mip_levels; ++i) {
    const Surface target{c.output + static_cast<uint32_t>(levels[i].offset), levels[i].tiling, format.cpp,
                         levels[i].padded_height_ub};
    filter_level(job, format, source, levels[i - 1].width, levels[i - 1].height, target, levels[i].width,
                 levels[i].height);
    source = target;
  }
}

}  // namespace

void run(const Job& job, const Registers& registers) {
  const Conversion c = decode(registers, job.profile->version);
  log_debug(Debug::kTfu, "TFU: %ux%u type %s from %#x format %u to %#x format %u, %u mips%s", c.width,
            c.height, tmu::format_name(c.type), c.input, c.input_format, c.output, c.output_format,
            c.mip_levels, c.skip_level_0 ? ", level 0 kept" : "");
  const tmu::Format* format = find_format(c.type);
  if (!format)
    return job.error->set(
        absl::StrFormat("TFU: texture type %u (%s) is not supported", c.type, tmu::format_name(c.type)));
  if (c.input_format != 0 && (c.input_format < 11 || c.input_format > 15))
    return job.error->set(absl::StrFormat("TFU: input memory format %u%s is not supported", c.input_format,
                                          c.input_format == 1   ? " (SAND 128)"
                                          : c.input_format == 2 ? " (SAND 256)"
                                                                : ""));
  if (c.output_format < 3)
    return job.error->set(absl::StrFormat("TFU: output memory format %u is not tiled", c.output_format));
  if (c.mip_levels > 0 && !can_filter(*format))
    return job.error->set(
        absl::StrFormat("TFU: no mip filter for texture type %u (%s)", c.type, format->name));
  if (c.width == 0 || c.height == 0) return;

  const uint32_t width = (c.width + format->block_width - 1u) / format->block_width;
  const uint32_t height = (c.height + format->block_height - 1u) / format->block_height;
  const Tiling from_tiling = input_tiling(c.input_format), to_tiling = output_tiling(c.output_format);
  const uint32_t block_rows = 2 * tmu::utile_height(format->cpp);
  const uint32_t padded_height =
      c.padded_height + (c.relative_padding ? (height + block_rows - 1) / block_rows : 0);
  const Surface from{c.input, from_tiling, format->cpp,
                     from_tiling == Tiling::kRaster ? c.input_stride * format->cpp : c.input_stride};
  const Surface to{c.output, to_tiling, format->cpp, is_uif(to_tiling) ? padded_height : 0};
  if (!c.skip_level_0) copy(job, from, to, width, height);
  if (c.mip_levels > 0) make_mips(job, c, *format, from);
}

}  // namespace v3d::tfu
