#include "gpu/cle/surfaces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::cle {
namespace {

using Surface = SurfaceJob::Surface;

constexpr uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }

constexpr uint32_t kTileSize = 64, kMultisampleTileSize = 32;
constexpr uint32_t kRowAlign = 16, kTiledRowAlign = 128;  // bytes
constexpr uint32_t kAddressFlags = 15;                    // low bits, which say other things in packets

/// Buffers and modes of tlb::LoadStore.
constexpr uint8_t kColor = 0, kDepthStencil = 11, kSample0 = 0, kAverage = 1;
/// Image formats of the same.
constexpr uint8_t kBgr565 = 7, kRgba8 = 27, kD24S8 = 43;

/// How the pixels of a surface lie, and what its packet says beside.
struct Form {
  const char* name;
  bool is_color;
  uint32_t memory_format;  ///< 0 raster, 1 T, 2 LT
  uint32_t bytes;          ///< of a pixel; 0: there is no such format
  uint32_t decimate;       ///< 0 sample 0, 1 the average of four
};

/// Bytes of a pixel by the number of its format in LOAD_ and STORE_TILE_BUFFER_GENERAL: 8888, 565 with
/// dithering (which no driver asks for and is not done), 565. TILE_RENDERING_MODE_CONFIG numbers them in
/// another way.
constexpr uint8_t kTransferBytes[4] = {4, 2, 2, 0}, kFrameBytes[4] = {2, 4, 2, 0};

constexpr uint32_t kTransferColor = 1, kTransferDepthStencil = 2;

Form transfer_form(const char* name, bool is_color, const Surface& surface) {
  return {name, is_color, bits(surface.bits, 4, 2), is_color ? kTransferBytes[bits(surface.bits, 8, 2)] : 4u,
          bits(surface.bits, 6, 2)};
}

Form frame_form(const Surface& surface) {
  return {"color_write", true, bits(surface.bits, 6, 2), kFrameBytes[bits(surface.bits, 2, 2)],
          bits(surface.bits, 4, 2)};
}

bool is_multisample(const SurfaceJob& job) { return bits(job.color_write.bits, 0, 1) != 0; }

constexpr tmu::Tiling kTilings[] = {tmu::Tiling::kRaster, tmu::Tiling::kT, tmu::Tiling::kLineartileRows};

/// Bytes from row to row of pixels, which the hardware takes from the width of the frame.
uint32_t stride_of(const SurfaceJob& job, const Form& form) {
  const uint32_t align = kTilings[form.memory_format] == tmu::Tiling::kT ? kTiledRowAlign : kRowAlign;
  return (job.width * form.bytes + align - 1) / align * align;
}

std::string find_fault(const Surface& surface, const Form& form) {
  if (form.memory_format >= std::size(kTilings))
    return absl::StrFormat("memory format %u", form.memory_format);
  if (form.bytes == 0) return "pixel format 3";
  if (form.decimate > kAverage) return absl::StrFormat("decimate mode %u", form.decimate);
  if (surface.bits & ~0x3ffu) return absl::StrFormat("bits %#x", surface.bits);
  return {};
}

/// Makes the commands of a tile, one surface after the other.
class Maker {
 public:
  Maker(const SurfaceJob& job, TileProgram* program, std::string* error)
      : job_(job), program_(program), error_(error) {}

  bool make();

 private:
  using Kind = TileCommand::Kind;

  bool add(Kind kind, const Surface& surface, const Form& form) {
    if (!surface.present) return true;
    TileCommand command{.kind = kind};
    tlb::LoadStore& transfer = command.transfer;
    transfer.buffer = form.is_color ? kColor : kDepthStencil;
    transfer.address = surface.address & ~kAddressFlags;
    if (surface.raw_samples) {
      transfer.raw_samples = true;
    } else {
      if (std::string fault = find_fault(surface, form); !fault.empty()) return fail(form.name, fault);
      transfer.memory_format = static_cast<uint8_t>(kTilings[form.memory_format]);
      transfer.stride_or_height = stride_of(job_, form);
      transfer.format = !form.is_color ? kD24S8 : form.bytes == 2 ? kBgr565 : kRgba8;
      transfer.decimate = form.decimate == kAverage ? kAverage : kSample0;
      transfer.cuts = true;
    }
    program_->transfers = true;
    program_->commands.push_back(command);
    return true;
  }
  bool add_transfer(Kind kind, const Surface& surface, const char* name, bool is_color) {
    const Form form = transfer_form(name, is_color, surface);
    const uint32_t buffer = bits(surface.bits, 0, 3);
    if (surface.present && !surface.raw_samples &&
        buffer != (is_color ? kTransferColor : kTransferDepthStencil))
      return fail(name, absl::StrFormat("buffer %u", buffer));
    if (surface.present && kind == Kind::kLoad && form.decimate != kSample0)
      return fail(name, absl::StrFormat("decimate mode %u", form.decimate));
    return add(kind, surface, form);
  }
  bool fail(const char* surface, const std::string& what) {
    *error_ = absl::StrFormat("%s: %s is not implemented", surface, what);
    return false;
  }

  const SurfaceJob& job_;
  TileProgram* const program_;
  std::string* const error_;
};

bool Maker::make() {
  if (bits(job_.color_write.bits, 1, 1) != 0) return fail("color_write", "a tile buffer of 64-bit colors");
  if (!add_transfer(Kind::kLoad, job_.color_read, "color_read", true) ||
      !add_transfer(Kind::kLoad, job_.zs_read, "zs_read", false))
    return false;
  if (job_.list_start != job_.list_end) {
    program_->commands.push_back({.kind = Kind::kDrawList});
    program_->draws = true;
  }
  // All contents are cleared after the last store of a tile, and those that are still to be stored by none
  // before.
  const Form raw_color{"msaa_color_write", true, 0, 4, 0}, raw_zs{"msaa_zs_write", false, 0, 4, 0};
  return add(Kind::kStore, job_.msaa_color_write, raw_color) &&
         add(Kind::kStore, job_.msaa_zs_write, raw_zs) &&
         add_transfer(Kind::kStore, job_.zs_write, "zs_write", false) &&
         add(Kind::kStore, job_.color_write, frame_form(job_.color_write));
}

/// Bytes of a surface that tiles touch, from its address on.
uint64_t extent_of(const SurfaceJob& job, const Surface& surface, const Form& form) {
  if (surface.raw_samples) {
    const uint64_t size = is_multisample(job) ? kMultisampleTileSize : kTileSize;
    return tlb::kRawTileBytes * ((job.width + size - 1) / size) * ((job.height + size - 1) / size);
  }
  constexpr uint64_t kMostRows = 32;  // of a tile in T
  return uint64_t{stride_of(job, form)} * ((job.height + kMostRows - 1) / kMostRows * kMostRows);
}

/// Whether tiles may read what others have written: a copy inside of one image.
bool overlaps(const SurfaceJob& job, const Surface& read, const Form& from, const Surface& written,
              const Form& to) {
  if (!read.present || !written.present || read.address == written.address) return false;
  const uint64_t r = read.address, w = written.address;
  return r < w + extent_of(job, written, to) && w < r + extent_of(job, read, from);
}

void add_tile_range(int first, int last, bool increasing, std::vector<uint8_t>* range) {
  for (int i = first; i <= last; ++i) range->push_back(static_cast<uint8_t>(i));
  if (!increasing) std::reverse(range->begin(), range->end());
}

}  // namespace

void ClearValues::take(const SurfaceJob& job) {
  if (!job.sets_clear_values) return;
  color = job.clear_color[0];
  z = job.clear_z & 0xffffff;
  stencil = job.clear_s;
}

tlb::Config surface_config(const SurfaceJob& job, const ClearValues& clear) {
  tlb::Config config;
  config.width = job.width;
  config.height = job.height;
  config.multisample = is_multisample(job);
  config.tile_width = config.tile_height = config.multisample ? kMultisampleTileSize : kTileSize;
  config.num_render_targets = 1;
  config.targets[0] = {.used = true, .type = tlb::ColorType::k8, .clamp = tlb::Clamp::kNone, .bpp = 0};
  config.targets[0].clear[0] = clear.color;
  config.depth_type = tlb::DepthType::k24;
  config.clear_z = static_cast<float>(clear.z) * 0x1p-24f;
  config.clear_stencil = clear.stencil;
  config.auto_clear_zs = true;
  return config;
}

bool surface_program(const SurfaceJob& job, TileProgram* program, std::string* error) {
  *program = {};
  if (!Maker(job, program, error).make()) return false;
  program->writes = true;
  const Form color = transfer_form("color_read", true, job.color_read), target = frame_form(job.color_write);
  const Form zs = transfer_form("zs_read", false, job.zs_read),
             zs_target = transfer_form("zs_write", false, job.zs_write);
  const Form raw{"", true, 0, 4, 0};
  program->in_order = job.fixed_order || overlaps(job, job.color_read, color, job.color_write, target) ||
                      overlaps(job, job.color_read, color, job.msaa_color_write, raw) ||
                      overlaps(job, job.zs_read, zs, job.zs_write, zs_target) ||
                      overlaps(job, job.zs_read, zs, job.msaa_zs_write, raw);
  return true;
}

std::vector<SurfaceTile> surface_tiles(const SurfaceJob& job) {
  std::vector<uint8_t> columns, rows;
  add_tile_range(job.min_x, job.max_x, job.increasing_x, &columns);
  add_tile_range(job.min_y, job.max_y, job.increasing_y, &rows);
  std::vector<SurfaceTile> tiles;
  tiles.reserve(columns.size() * rows.size());
  for (const uint8_t row : rows)
    for (const uint8_t column : columns) tiles.push_back({column, row});
  return tiles;
}

std::vector<std::string> describe_surfaces(const SurfaceJob& job) {
  static constexpr const char* kFormats[] = {"raster", "T", "LT", "memory format 3"};
  std::vector<std::string> lines;
  lines.push_back(absl::StrFormat("frame of %u x %u pixels, %s, tiles %u,%u to %u,%u%s", job.width,
                                  job.height, is_multisample(job) ? "4 samples" : "1 sample", job.min_x,
                                  job.min_y, job.max_x, job.max_y, job.fixed_order ? ", in order" : ""));
  if (job.sets_clear_values)
    lines.push_back(absl::StrFormat("clear values: color 0x%08x, z 0x%06x, stencil 0x%02x",
                                    job.clear_color[0], job.clear_z, job.clear_s));
  const auto add = [&](const char* verb, const Surface& surface, const Form& form) {
    if (!surface.present) return;
    std::string line =
        absl::StrFormat("%s %s at 0x%08x: ", verb, form.name, surface.address & ~kAddressFlags);
    line += surface.raw_samples ? "raw samples"
                                : absl::StrFormat("%s, %u bytes a pixel%s", kFormats[form.memory_format],
                                                  form.bytes, form.decimate ? ", average of samples" : "");
    lines.push_back(std::move(line));
  };
  add("load", job.color_read, transfer_form("color_read", true, job.color_read));
  add("load", job.zs_read, transfer_form("zs_read", false, job.zs_read));
  add("store", job.msaa_color_write, {"msaa_color_write", true, 0, 4, 0});
  add("store", job.msaa_zs_write, {"msaa_zs_write", false, 0, 4, 0});
  add("store", job.zs_write, transfer_form("zs_write", false, job.zs_write));
  add("store", job.color_write, frame_form(job.color_write));
  return lines;
}

}  // namespace v3d::cle
