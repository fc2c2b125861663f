#include "ioctl/vc4/surfaces.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "ioctl/vc4/layout.h"

namespace v3d::ioctl::vc4 {
namespace {

using Surface = device::SurfaceJob::Surface;

constexpr uint32_t field(uint32_t word, int high, int low) {
  return word >> low & ((2u << (high - low)) - 1);
}

/// Bits of TILE_RENDERING_MODE_CONFIG: format 3:2, memory format 7:6.
constexpr uint16_t kRenderConfigBits = 0xdd;
/// Bytes of a pixel by its format: 565 with dithering, 8888, 565.
constexpr std::array<uint8_t, 4> kRenderConfigBytes = {2, 4, 2, 0};

/// Bits of LOAD_ and STORE_TILE_BUFFER_GENERAL: buffer 2:0, tiling 5:4, format 9:8.
constexpr uint16_t kLoadStoreBits = 0x337;
constexpr uint32_t kColorBuffer = 1, kDepthStencilBuffer = 2;
/// Bytes of a pixel by its format: 8888, 565 with dithering, 565.
constexpr std::array<uint8_t, 4> kLoadStoreBytes = {4, 2, 2, 0};

constexpr uint32_t kRawTileBytes = 16384, kRawTileSide = 32;
constexpr uint32_t kAddressFlags = 15;  // low bits of addresses in packets

/// Checks the surfaces of one submit, one after the other in the kernel's order.
class Check {
 public:
  Check(const drm::vc4::SubmitCl& args, JobBos bos) : args_(args), bos_(bos) {}

  absl::Status color_write(Surface* out) {
    const drm::vc4::Surface& in = args_.color_write;
    if (in.flags) return refuse("flags of a rendering mode");
    if (in.bits & ~kRenderConfigBits) return refuse("unknown bits of a rendering mode");
    out->bits = in.bits;
    if (in.hindex == drm::vc4::kNoSurface) return absl::OkStatus();
    if (auto status = use(in, out); !status.ok()) return status;
    return check_size(in, field(in.bits, 7, 6), kRenderConfigBytes[field(in.bits, 3, 2)]);
  }

  absl::Status general(const drm::vc4::Surface& in, bool is_written, Surface* out) {
    if (in.flags & ~drm::vc4::kReadIsFullRes) return refuse("unknown flags");
    if (in.hindex == drm::vc4::kNoSurface) return absl::OkStatus();
    if (auto status = use(in, out); !status.ok()) return status;
    out->bits = in.bits;
    if (in.flags & drm::vc4::kReadIsFullRes) {
      if (is_written) return refuse("raw samples are to be written without MSAA");
      return raw_samples(in, out);
    }
    if (in.bits & ~kLoadStoreBits) return refuse("unknown bits of a load or store");
    if (field(in.bits, 5, 4) >= kNumTilings) return refuse("an unknown tiling");
    const uint32_t buffer = field(in.bits, 2, 0), format = field(in.bits, 9, 8);
    if (buffer != kColorBuffer && buffer != kDepthStencilBuffer) return refuse("an unknown buffer");
    if (buffer == kDepthStencilBuffer && format != 0) return refuse("depth and stencil with a color format");
    if (!kLoadStoreBytes[format]) return refuse("an unknown format");
    if (in.offset & kAddressFlags) return refuse("an offset that is no multiple of 16");
    return check_size(in, field(in.bits, 5, 4), kLoadStoreBytes[format]);
  }

  absl::Status msaa_write(const drm::vc4::Surface& in, Surface* out) {
    if (in.flags || in.bits) return refuse("flags or bits of an MSAA surface");
    if (in.hindex == drm::vc4::kNoSurface) return absl::OkStatus();
    if (auto status = use(in, out); !status.ok()) return status;
    if (in.offset & kAddressFlags) return refuse("an offset that is no multiple of 16");
    return raw_samples(in, out);
  }

 private:
  static absl::Status refuse(const char* rule) { return absl::InvalidArgumentError(rule); }

  absl::Status use(const drm::vc4::Surface& in, Surface* out) {
    const auto bo = use_bo(bos_, in.hindex);
    if (!bo.ok()) return bo.status();
    bo_ = *bo;
    out->present = true;
    out->address = bo_->address + in.offset;
    out->bytes = bo_->size - std::min<uint64_t>(bo_->size, in.offset);
    return absl::OkStatus();
  }

  absl::Status check_size(const drm::vc4::Surface& in, uint32_t tiling, uint32_t bytes) const {
    if (tiling >= kNumTilings) return refuse("an unknown tiling");
    if (!bytes) return refuse("an unknown format");
    if (args_.width > kMaxImageSide || args_.height > kMaxImageSide) return refuse("too wide or too high");
    if (in.offset + image_bytes(static_cast<Tiling>(tiling), args_.width, args_.height, bytes) > bo_->size)
      return refuse("it reaches beyond its BO");
    return absl::OkStatus();
  }

  /// One tile after the other, in rows of those of the frame.
  absl::Status raw_samples(const drm::vc4::Surface& in, Surface* out) const {
    if (in.bits) return refuse("raw samples with bits of a load or store");
    const uint64_t in_a_row = (args_.width + kRawTileSide - 1) / kRawTileSide;
    const uint64_t tiles = in_a_row * args_.max_y_tile + args_.max_x_tile + 1;
    if (in.offset > bo_->size || (bo_->size - in.offset) / kRawTileBytes < tiles)
      return refuse("raw samples reach beyond their BO");
    out->raw_samples = true;
    return absl::OkStatus();
  }

  const drm::vc4::SubmitCl& args_;
  const JobBos bos_;
  const JobBo* bo_ = nullptr;  // of the surface
};

absl::Status named(const char* surface, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", surface, status.message()));
}

absl::Status check_tiles(const drm::vc4::SubmitCl& args, uint8_t tiles_x, uint8_t tiles_y) {
  if (args.min_x_tile > args.max_x_tile || args.min_y_tile > args.max_y_tile)
    return absl::InvalidArgumentError("the last tile lies before the first");
  // A row and a column after what is binned are let through; their lists are empty.
  if (tiles_x && (args.max_x_tile > tiles_x || args.max_y_tile > tiles_y))
    return absl::InvalidArgumentError("tiles are rendered that are not binned");
  return absl::OkStatus();
}

void describe_frame(const drm::vc4::SubmitCl& args, device::SurfaceJob* job) {
  job->width = args.width;
  job->height = args.height;
  job->min_x = args.min_x_tile;
  job->min_y = args.min_y_tile;
  job->max_x = args.max_x_tile;
  job->max_y = args.max_y_tile;
  job->fixed_order = args.flags & drm::vc4::kFixedRclOrder;
  job->increasing_x = !job->fixed_order || (args.flags & drm::vc4::kRclOrderIncreasingX);
  job->increasing_y = !job->fixed_order || (args.flags & drm::vc4::kRclOrderIncreasingY);
  job->sets_clear_values = args.flags & drm::vc4::kUseClearColor;
  job->clear_color = {args.clear_color[0], args.clear_color[1]};
  job->clear_z = args.clear_z & 0xffffff;
  job->clear_s = args.clear_s;
}

}  // namespace

absl::StatusOr<Surfaces> check_surfaces(const drm::vc4::SubmitCl& args, JobBos bos, uint8_t tiles_x,
                                        uint8_t tiles_y) {
  if (auto status = check_tiles(args, tiles_x, tiles_y); !status.ok()) return status;
  Surfaces surfaces;
  device::SurfaceJob& job = surfaces.job;
  Check check(args, bos);
  absl::Status status = named("color_write", check.color_write(&job.color_write));
  if (status.ok()) status = named("color_read", check.general(args.color_read, false, &job.color_read));
  if (status.ok()) status = named("zs_read", check.general(args.zs_read, false, &job.zs_read));
  if (status.ok()) status = named("zs_write", check.general(args.zs_write, true, &job.zs_write));
  if (status.ok())
    status = named("msaa_color_write", check.msaa_write(args.msaa_color_write, &job.msaa_color_write));
  if (status.ok()) status = named("msaa_zs_write", check.msaa_write(args.msaa_zs_write, &job.msaa_zs_write));
  if (!status.ok()) return status;

  const struct {
    const Surface& surface;
    uint32_t bo;
  } stores[] = {{job.color_write, args.color_write.hindex},
                {job.zs_write, args.zs_write.hindex},
                {job.msaa_color_write, args.msaa_color_write.hindex},
                {job.msaa_zs_write, args.msaa_zs_write.hindex}};
  for (const auto& [surface, bo] : stores)
    if (surface.present) surfaces.written.push_back(bo);
  if (surfaces.written.empty()) return absl::InvalidArgumentError("nothing is stored");
  describe_frame(args, &job);
  return surfaces;
}

}  // namespace v3d::ioctl::vc4
