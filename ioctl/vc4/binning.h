/// The binning list of a submit, with its shader records and uniforms, is checked, copied and relocated
/// (vc4-abi.md 3; Linux vc4_validate.c). The GPU reads nothing but the copy.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/device/surface_job.h"
#include "ioctl/vc4/job_bo.h"

namespace v3d::ioctl::vc4 {

/// What a client brings.
struct BinningSource {
  std::span<const uint8_t> list, records, uniforms;
  uint32_t num_records = 0;  ///< SUBMIT_CL's shader_rec_count
};

/// Where the parts of the copy lie in it, all three together at most 4 GiB.
struct BinningLayout {
  uint64_t records, uniforms, size;
};
/// Records lie at multiples of 16, as the low bits of their addresses are flags.
constexpr BinningLayout layout_of(uint64_t list, uint64_t records, uint64_t uniforms) {
  const uint64_t first = (list + 15) & ~uint64_t{15};
  return {first, first + records, first + records + uniforms};
}

/// Of a list with its records and uniforms; the kernel has as much as its memory.
inline constexpr uint64_t kMaxCopyBytes = 64 << 20;

struct Binning {
  std::vector<uint8_t> bytes;  ///< what the GPU reads, at the address that was given
  uint32_t list_bytes = 0;     ///< of the list, at the front; less than the client's
  uint8_t tiles_x = 0, tiles_y = 0;
  /// BOs that binning reads: indices, attributes, textures of coordinate shaders. The renders before that
  /// write them are to end first.
  std::set<uint32_t> reads;
};

/// Tiles that a slot of the kernel's binner memory has room for, which some versions check: 48 bytes for
/// each, rounded up to pages, are less than 512 KiB.
inline constexpr uint32_t kMaxTilesOfSlot = 10837;

/// @param source  of sizes that do not wrap (layout_of)
/// @param address  GPU virtual, of the copy; a multiple of 16
/// @param refuse_too_many_tiles  more than kMaxTilesOfSlot
/// @return InvalidArgument where the kernel returns EINVAL
///
/// Where the kernel's own checks have holes this is stricter: uniforms are counted down, and what shader
/// records name as programs are shader BOs of the list.
absl::StatusOr<Binning> check_binning(const BinningSource& source, JobBos bos, uint32_t address,
                                      bool refuse_too_many_tiles);

/// The job draws what was binned. @param address  of the copy
void place_list(const Binning& binning, uint32_t address, device::SurfaceJob* job);

}  // namespace v3d::ioctl::vc4
