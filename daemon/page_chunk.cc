#include "daemon/page_chunk.h"

#include <zstd.h>

#include <cstring>

#include "absl/strings/str_format.h"

namespace v3d::daemon {

uint32_t pages_of_chunk(std::span<const uint8_t> chunk) {
  uint32_t pages = 0;
  if (chunk.size() > sizeof pages) std::memcpy(&pages, chunk.data(), sizeof pages);
  return pages <= kMostPagesOfChunk ? pages : 0;
}

absl::Status decompress_pages(std::span<const uint8_t> chunk, std::vector<CapturedPage>* pages) {
  const uint32_t count = pages_of_chunk(chunk);
  if (count == 0)
    return absl::InvalidArgumentError(
        absl::StrFormat("a record of compressed pages is not of 1 to %d pages", kMostPagesOfChunk));
  const size_t had = pages->size(), bytes = size_t{count} * sizeof(CapturedPage);
  const auto frame = chunk.subspan(sizeof count);
  pages->resize(had + count);
  // At once and to memory of this size: the decoder asks for none that the frame claims to need.
  const size_t got = ZSTD_decompress((*pages)[had].data(), bytes, frame.data(), frame.size());
  if (got == bytes) return absl::OkStatus();
  pages->resize(had);
  return absl::InvalidArgumentError(ZSTD_isError(got)
                                        ? absl::StrFormat("compressed pages: %s", ZSTD_getErrorName(got))
                                        : "compressed pages are fewer than their record says");
}

}  // namespace v3d::daemon
