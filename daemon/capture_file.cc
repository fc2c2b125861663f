#include "daemon/capture_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/capture_format.h"

namespace v3d::daemon {

bool PageIndex::add(uint64_t offset, uint32_t count, uint32_t distance) {
  if (count > std::numeric_limits<uint32_t>::max() - count_) return false;
  const bool follows = !runs_.empty() && runs_.back().distance == distance &&
                       runs_.back().offset + uint64_t{runs_.back().count} * distance == offset;
  if (follows)
    runs_.back().count += count;
  else
    runs_.push_back({.first = count_ + 1, .count = count, .distance = distance, .offset = offset});
  count_ += count;
  return true;
}

PageIndex::Place PageIndex::find(uint32_t number) const {
  const auto behind = std::upper_bound(runs_.begin(), runs_.end(), number,
                                       [](uint32_t wanted, const Run& run) { return wanted < run.first; });
  const Run& run = *std::prev(behind);
  return {run.offset + uint64_t{number - run.first} * run.distance, run.distance != kDecompressed};
}

absl::StatusOr<std::unique_ptr<CaptureFile>> CaptureFile::open(const std::string& path) {
  // Opening a pipe would wait for somebody who writes.
  ioctl::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0)
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is no regular file"));
  return std::unique_ptr<CaptureFile>(new CaptureFile(std::move(fd), static_cast<uint64_t>(info.st_size)));
}

size_t CaptureFile::read_at(uint64_t offset, void* data, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(fd_.get(), static_cast<uint8_t*>(data) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

size_t CaptureFile::read(void* data, size_t bytes) {
  const size_t got = read_at(position_, data, bytes);
  position_ += got;
  return got;
}

bool CaptureFile::skip(uint64_t bytes) {
  if (position_ > size_ || bytes > size_ - position_) return false;
  position_ += bytes;
  return true;
}

bool CaptureFile::read_payload(uint32_t size, std::vector<uint32_t>* words) {
  constexpr uint32_t kChunk = 1 << 20;
  for (uint32_t done = 0; done < size;) {
    const uint32_t part = std::min(size - done, kChunk);
    words->resize((done + part + 3) / 4);
    if (read(reinterpret_cast<uint8_t*>(words->data()) + done, part) != part) return false;
    done += part;
  }
  return true;
}

bool CaptureFile::take_pages(uint32_t count, uint32_t distance) {
  const uint64_t first = position_;
  return skip(uint64_t{count} * mmu::kPageSize) && index_.add(first, count, distance);
}

absl::Status CaptureFile::take_chunk(std::span<const uint8_t> chunk) {
  const size_t had = decompressed_.size();
  if (absl::Status status = decompress_pages(chunk, &decompressed_); !status.ok()) return status;
  if (index_.add(had, static_cast<uint32_t>(decompressed_.size() - had), PageIndex::kDecompressed))
    return absl::OkStatus();
  return absl::InvalidArgumentError("there are more pages than numbers for them");
}

void CaptureFile::forget_pages() {
  index_ = {};
  decompressed_.clear();
  loaded_.clear();
}

CaptureFile::Page CaptureFile::page(uint32_t number) {
  if (number == 0) return capture_format::kZero;
  const PageIndex::Place place = index_.find(number);
  if (!place.in_file) return decompressed_[place.offset];
  auto& page = loaded_[number];
  if (page) return *page;
  page = std::make_unique<CapturedPage>();
  const size_t got = read_at(place.offset, page->data(), page->size());
  std::fill(page->begin() + static_cast<std::ptrdiff_t>(got), page->end(), uint8_t{0});
  return *page;
}

}  // namespace v3d::daemon
