/// A page chunk is several pages of a capture, compressed as one: their number, then a frame of zstd.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "gpu/mmu/address_space.h"

namespace v3d::daemon {

using CapturedPage = std::array<uint8_t, mmu::kPageSize>;

/// More are refused: so many are decompressed at once, whatever a file says.
inline constexpr uint32_t kMostPagesOfChunk = 64;

/// How many pages a chunk is said to have. 0: it is none.
uint32_t pages_of_chunk(std::span<const uint8_t> chunk);

/// Appends the pages. InvalidArgument if these are not exactly as many as the chunk says; then nothing is
/// appended. It takes no other memory than theirs and 200 KiB of the decoder's.
absl::Status decompress_pages(std::span<const uint8_t> chunk, std::vector<CapturedPage>* pages);

}  // namespace v3d::daemon
