#include "gpu/tfu/tfu.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/tfu/mipmap.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tfu {
namespace {

using tmu::Surface;
using tmu::Tiling;

/// What a memory format code means: a layout, or something that this model lacks.
struct MemoryFormat {
  const char* name;
  bool supported = false;
  Tiling tiling = {};
};
constexpr MemoryFormat kNone = {"unassigned"}, kSand = {"SAND"}, kColour = {"constant colour"};
constexpr MemoryFormat kNoRaster = {"raster"}, kRaster = {"raster", true, Tiling::kRaster};
constexpr MemoryFormat kLt = {"LT", true, Tiling::kLineartile}, kUb1 = {"UB1", true, Tiling::kUblinear1},
                       kUb2 = {"UB2", true, Tiling::kUblinear2}, kUif = {"UIF", true, Tiling::kUif},
                       kUifXor = {"UIF XOR", true, Tiling::kUifXor};

/// Codes of a chip (Mesa v3d_tfu.h).
struct MemoryFormats {
  MemoryFormat input[16], output[8];
};
constexpr MemoryFormats kFormats42 = {
    {kRaster, kSand, kSand, kNone, kNone, kNone, kNone, kNone,  //
     kNone, kNone, kNone, kLt, kUb1, kUb2, kUif, kUifXor},
    {kNoRaster, kNone, kNone, kLt, kUb1, kUb2, kUif, kUifXor},
};
/// Inputs of 7.1 are three bits, as Mesa names them since mid-2026. Older Mesa sends the numbers of 4.2,
/// which are the same bits with another one above them. (Its SAND 256, never sent, has become the constant
/// colour.)
constexpr MemoryFormats kFormats71 = {
    {kRaster, kSand, kColour, kLt, kUb1, kUb2, kUif, kUifXor,  //
     kNone, kNone, kNone, kLt, kUb1, kUb2, kUif, kUifXor},
    {kRaster, kNone, kNone, kLt, kUb1, kUb2, kUif, kUifXor},
};

/// The registers in one form for both chips.
struct Conversion {
  tmu::TextureType type;
  const char* type_name;
  uint32_t input_code, output_code;
  MemoryFormat input_format, output_format;
  GpuAddr input, output;   ///< of any alignment
  uint32_t input_stride;   ///< raster: texels, 0 repeats the first row; UIF: padded height in UIF blocks
  uint32_t output_stride;  ///< the same; UIF with relative_padding: blocks above those of the image
  bool relative_padding;
  uint32_t width, height;  ///< of level 0, in texels
  uint32_t mip_levels;     ///< to make below level 0, 0..15
  bool skip_level_0;       ///< DIMTW: level 0 is not written
};

uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }

/// Fields: Mesa v3d_tfu.h.
Conversion decode(const Registers& r, chip::Generation generation) {
  Conversion c = {};
  c.input = r.iia;
  c.input_stride = r.iis;
  c.width = bits(r.ios, 0, 16);
  c.height = bits(r.ios, 16, 16);
  const MemoryFormats* formats = nullptr;
  switch (generation) {
    case chip::Generation::k21:  // has no TFU
      return c;
    case chip::Generation::k71:
      c.type = tmu::TextureType{bits(r.icfg, 16, 7)};
      c.input_code = bits(r.icfg, 23, 4);
      c.output = r.ioa;
      c.skip_level_0 = bits(r.ioc, 0, 1);
      c.mip_levels = bits(r.ioc, 4, 4);
      c.output_code = bits(r.ioc, 12, 3);
      c.output_stride = bits(r.ioc, 16, 16);
      formats = &kFormats71;
      break;
    case chip::Generation::k42:
      c.mip_levels = bits(r.icfg, 5, 4);
      c.type = tmu::TextureType{bits(r.icfg, 9, 7)};
      c.input_code = bits(r.icfg, 18, 4);
      c.output_stride = bits(r.icfg, 22, 4);
      c.relative_padding = true;
      c.output = r.ioa & ~63u;
      c.skip_level_0 = bits(r.ioa, 0, 1);
      c.output_code = bits(r.ioa, 3, 3);
      formats = &kFormats42;
  }
  c.input_format = formats->input[c.input_code];
  c.output_format = formats->output[c.output_code];
  c.type_name = tmu::format_name(generation, c.type);
  return c;
}

/// Null for a format that the TFU is not given, or that this model lacks.
const tmu::Format* find_convertible(chip::Generation generation, tmu::TextureType type) {
  const tmu::Format* format = tmu::find_format(generation, type);
  return format && format->tfu != tmu::TfuUse::kNothing ? format : nullptr;
}

bool is_uif(Tiling tiling) { return tiling == Tiling::kUif || tiling == Tiling::kUifXor; }

/// What the job's bytes take a chip, whose memory is the limit. The kernel looks once, half a second after
/// the start, and resets what is not done by then (drm-abi.md 3.5).
class TransferTime {
 public:
  explicit TransferTime(const JobContext& job) : job_(job) {}
  /// @return  false, with job.error set, when the job does not end in time
  bool spend(uint64_t read, uint64_t written) {
    constexpr double kTimeout = 0.5;  // of a patience of 1
    const chip::Profile& p = *job_.profile;
    seconds_ += 1e-9 * (static_cast<double>(read) * p.read_ns_per_byte +
                        static_cast<double>(written) * p.write_ns_per_byte);
    if (job_.work) job_.work->transferred(read, written);
    if (seconds_ < kTimeout * job_.patience) return true;
    job_.error->set_hang("the TFU is not done in half a second of its time");
    return false;
  }

 private:
  const JobContext& job_;
  double seconds_ = 0;
};

/// Rows of texels between two raster images. Where they overlap (assumed): from top to bottom, each row read
/// whole before it is written.
void copy_raster(const JobContext& job, TransferTime& time, const Surface& from, const Surface& to,
                 uint32_t width, uint32_t height) {
  const size_t bytes = size_t{width} * from.cpp;
  for (uint32_t y = 0; y < height && !job.stopped() && time.spend(bytes, bytes); ++y)
    std::memmove(job.memory.host(to.address + y * to.stride_or_height),
                 job.memory.host(from.address + y * from.stride_or_height), bytes);
}

/// Copies raw texels from one layout to another in bands, so that no more than a band is buffered.
void copy(const JobContext& job, TransferTime& time, const Surface& from, const Surface& to, uint32_t width,
          uint32_t height) {
  if (from.tiling == Tiling::kRaster && to.tiling == Tiling::kRaster)
    return copy_raster(job, time, from, to, width, height);
  constexpr uint32_t kBand = 8;  // a multiple of every utile height
  const size_t pitch = size_t{width} * from.cpp;
  std::vector<uint8_t> band(pitch * std::min(kBand, height));
  for (uint32_t y = 0; y < height && !job.stopped(); y += kBand) {
    const uint32_t lines = std::min(kBand, height - y);
    if (!time.spend(pitch * lines, pitch * lines)) return;
    load_rectangle(job.memory, from, 0, y, width, lines, band.data(), pitch);
    store_rectangle(job.memory, to, 0, y, width, lines, band.data(), pitch);
  }
}

/// Levels 1 and up, each from the one above. They lie where the layout rules put them for a level 0 of this
/// size at the output address.
void make_mips(const JobContext& job, TransferTime& time, const Conversion& c, const tmu::Format& format,
               const Surface& level_0) {
  tmu::ImageShape shape{.width = c.width, .height = c.height, .depth = 1, .cpp = format.cpp};
  shape.num_levels = c.mip_levels + 1;
  tmu::Level levels[tmu::kMaxLevels];
  tmu::compute_levels(shape, levels);
  Surface source = level_0;
  for (uint32_t i = 1; i <= c.mip_levels; ++i) {
    const Surface target{c.output + static_cast<uint32_t>(levels[i].offset), levels[i].tiling, format.cpp,
                         levels[i].padded_height_ub};
    const auto bytes = [&](const tmu::Level& level) {
      return uint64_t{level.width} * level.height * format.cpp;
    };
    if (!time.spend(bytes(levels[i - 1]), bytes(levels[i]))) return;
    filter_level(job, format, source, levels[i - 1].width, levels[i - 1].height, target, levels[i].width,
                 levels[i].height);
    source = target;
  }
}

/// Largest width and height of a job (Mesa main, v3d_tfu.h, V3D_TFU_MAX_DIM).
constexpr uint32_t kMaxSize = 16384;

/// What this model cannot do of a conversion, or an empty string.
std::string refusal(const Conversion& c, const tmu::Format* format) {
  if (!format)
    return absl::StrFormat("texture type %u (%s) is not supported", static_cast<uint32_t>(c.type),
                           c.type_name);
  if (!c.input_format.supported)
    return absl::StrFormat("input memory format %u (%s) is not supported", c.input_code, c.input_format.name);
  if (!c.output_format.supported)
    return absl::StrFormat("output memory format %u (%s) is not supported", c.output_code,
                           c.output_format.name);
  if (c.width > kMaxSize || c.height > kMaxSize)
    return absl::StrFormat("%u x %u texels, at most %u x %u are possible", c.width, c.height, kMaxSize,
                           kMaxSize);
  if (c.mip_levels == 0) return {};
  if (!can_filter(*format))
    return absl::StrFormat("no mip filter for texture type %u (%s)", static_cast<uint32_t>(c.type),
                           format->name);
  if (c.output_format.tiling == Tiling::kRaster)  // where levels of a raster image would lie is unknown
    return absl::StrFormat("%u mip levels of raster output are not supported", c.mip_levels);
  return {};
}

/// @param stride  as Conversion has it
Surface surface(GpuAddr address, Tiling tiling, uint32_t cpp, uint32_t stride) {
  return {address, tiling, cpp, tiling == Tiling::kRaster ? stride * cpp : is_uif(tiling) ? stride : 0};
}

/// One of the two images. @param stride  as Conversion has it
std::string image_text(GpuAddr address, const MemoryFormat& format, const tmu::Format* texel, uint32_t stride,
                       bool relative_padding) {
  std::string image = absl::StrFormat("%s at 0x%08x", format.name, address);
  if (!format.supported) return image;
  if (format.tiling == Tiling::kRaster) {
    const std::string bytes = texel ? absl::StrFormat(" (%u bytes)", uint64_t{stride} * texel->cpp) : "";
    return absl::StrFormat("%s, rows %u texels%s apart", image, stride, bytes);
  }
  if (!is_uif(format.tiling)) return image;
  return absl::StrFormat("%s, %u UIF blocks %s", image, stride,
                         relative_padding ? "above the image" : "high");
}

}  // namespace

std::string description(const Registers& registers, chip::Generation generation) {
  const Conversion c = decode(registers, generation);
  const tmu::Format* const texel = find_convertible(generation, c.type);
  std::string text = absl::StrFormat(
      "%s %ux%u texels of type %s from %s, to %s", c.skip_level_0 ? "reads" : "copies", c.width, c.height,
      c.type_name, image_text(c.input, c.input_format, texel, c.input_stride, false),
      image_text(c.output, c.output_format, texel, c.output_stride, c.relative_padding));
  if (c.mip_levels != 0) absl::StrAppendFormat(&text, "; makes %u mip levels below it", c.mip_levels);
  return text;
}

void run(const JobContext& job, const Registers& registers) {
  if (!job.profile->pipeline().has_tfu)
    return job.error->set(
        absl::StrFormat("TFU: V3D %s has none", chip::version_text(job.profile->generation)));
  const Conversion c = decode(registers, job.profile->generation);
  if (debug_on(Debug::kTfu))
    log_debug(Debug::kTfu, "TFU: %s", description(registers, job.profile->generation));
  const tmu::Format* format = find_convertible(job.profile->generation, c.type);
  if (const std::string what = refusal(c, format); !what.empty())
    return job.error->set(absl::StrFormat("TFU: %s", what));
  if (c.width == 0 || c.height == 0) return;

  const uint32_t width = (c.width + format->block_width - 1u) / format->block_width;
  const uint32_t height = (c.height + format->block_height - 1u) / format->block_height;
  const uint32_t block_rows = 2 * tmu::utile_height(format->cpp);
  const uint32_t implied_stride = c.relative_padding ? (height + block_rows - 1) / block_rows : 0;
  const Surface from = surface(c.input, c.input_format.tiling, format->cpp, c.input_stride);
  const Surface to = surface(c.output, c.output_format.tiling, format->cpp, c.output_stride + implied_stride);
  TransferTime time(job);
  if (!c.skip_level_0) copy(job, time, from, to, width, height);
  if (c.mip_levels > 0 && !job.stopped()) make_mips(job, time, c, *format, from);
}

}  // namespace v3d::tfu
