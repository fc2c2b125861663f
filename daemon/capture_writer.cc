/// @file Captures are written: jobs as the words of records, and memory by the pages that are new.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/capture.h"
#include "daemon/capture_format.h"
#include "daemon/captured_frame.h"
#include "gpu/base/log.h"

namespace v3d::daemon {

using namespace capture_format;

namespace {

/// Pages in a record.
constexpr size_t kMostInRun = 1024;

/// Two sums that tell pages apart.
std::array<uint64_t, 2> page_key(const uint8_t* page) {
  uint64_t low = 0x9e3779b97f4a7c15, high = 0xc2b2ae3d27d4eb4f;
  for (uint32_t i = 0; i < mmu::kPageSize; i += 8) {
    uint64_t word;
    std::memcpy(&word, page + i, 8);
    low = (low ^ word) * 0xff51afd7ed558ccd;
    low ^= low >> 29;
    high = (high + word) * 0xc4ceb9fe1a85ec53;
    high ^= high >> 31;
  }
  return {low, high};
}

/// An empty file to write, never a device or a pipe. Null with errno; 0: it is one of these.
FILE* open_regular(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd < 0) return nullptr;
  struct stat info;
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  FILE* const file = regular && ftruncate(fd, 0) == 0 ? fdopen(fd, "wb") : nullptr;
  if (file) return file;
  const int error = regular ? errno : 0;
  close(fd);
  errno = error;
  return nullptr;
}

bool same_ranges(const std::vector<mmu::AddressSpace::Range>& a,
                 const std::vector<mmu::AddressSpace::Range>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.address == y.address && x.size == y.size; });
}

}  // namespace

CapturedJob CapturedJob::of(const device::ClJob& j, bool render, uint32_t submission) {
  CapturedJob c;
  c.kind = render ? kRender : kBin;
  c.submission = submission;
  c.words = {j.bcl_start, j.bcl_end, j.rcl_start, j.rcl_end, j.qma, j.qms, j.qts};
  if (render) c.surfaces = j.surfaces;
  return c;
}

CapturedJob CapturedJob::of(const device::CsdJob& j) {
  CapturedJob c;
  c.kind = kCsd;
  std::copy(j.cfg.begin(), j.cfg.end(), c.words.begin());
  c.words[7] = j.indirect;
  return c;
}

CapturedJob CapturedJob::of(const device::TfuJob& j) {
  CapturedJob c;
  c.kind = kTfu;
  c.words = {j.icfg, j.iia, j.iis,     j.ica,     j.iua,     j.ioa,
             j.ios,  j.ioc, j.coef[0], j.coef[1], j.coef[2], j.coef[3]};
  return c;
}

CapturedJob CapturedJob::of(CapturedPrograms j) {
  CapturedJob c;
  c.kind = kUser;
  c.programs = std::make_shared<const CapturedPrograms>(std::move(j));
  return c;
}

device::ClJob CapturedJob::cl() const {
  return {words[0], words[1], words[2], words[3], words[4], words[5], words[6], surfaces};
}

device::CsdJob CapturedJob::csd() const {
  device::CsdJob j;
  std::copy_n(words.begin(), j.cfg.size(), j.cfg.begin());
  j.indirect = words[7] != 0;
  return j;
}

device::TfuJob CapturedJob::tfu() const {
  return {words[0], words[1], words[2],
          words[3], words[4], words[5],
          words[6], words[7], {words[8], words[9], words[10], words[11]}};
}

uint64_t page_hash(std::span<const uint8_t, mmu::kPageSize> page) { return page_key(page.data())[0]; }

absl::StatusOr<std::unique_ptr<CaptureWriter>> CaptureWriter::create(const std::string& path,
                                                                     const char* profile) {
  FILE* file = open_regular(path);
  Header header = {};
  std::memcpy(header.magic, kCaptureMagic, sizeof header.magic);
  header.format = kCaptureFormat;
  std::strncpy(header.profile, profile, sizeof header.profile - 1);
  // At once: better no program runs than one whose capture cannot be kept.
  if (!file || std::fwrite(&header, sizeof header, 1, file) != 1 || std::fflush(file) != 0) {
    const int error = errno;
    if (file) std::fclose(file);
    return absl::UnavailableError(absl::StrFormat("cannot write the capture %s: %s", path,
                                                  error ? std::strerror(error) : "it is no regular file"));
  }
  return std::unique_ptr<CaptureWriter>(new CaptureWriter(path, file));
}

CaptureWriter::~CaptureWriter() {
  if (file_) record(kEnd, &jobs_, sizeof jobs_);
  if (file_ && std::fclose(std::exchange(file_, nullptr)) != 0) stop(errno);
}

void CaptureWriter::stop(int error) {
  log_error("the capture %s stops after job %d and stays without its end: cannot write: %s (errno %d)", path_,
            jobs_, std::strerror(error), error);
  if (file_) std::fclose(std::exchange(file_, nullptr));
}

void CaptureWriter::put(const void* data, size_t bytes) {
  if (file_ && std::fwrite(data, 1, bytes, file_) != bytes) stop(errno);
}

void CaptureWriter::record(uint32_t type, const void* payload, size_t bytes) {
  const RecordHeader header{type, static_cast<uint32_t>(bytes)};
  put(&header, sizeof header);
  put(payload, bytes);
}

uint32_t CaptureWriter::page_number(const uint8_t* page) {
  if (std::memcmp(page, kZero.data(), mmu::kPageSize) == 0) return 0;
  const auto [low, high] = page_key(page);
  const Key key{low, high};
  const auto [entry, added] = known_pages_.try_emplace(key, static_cast<uint32_t>(known_pages_.size() + 1));
  const uint32_t number = entry->second;
  if (!added) return number;
  std::memcpy(new_pages_.emplace_back().data(), page, mmu::kPageSize);
  if (new_pages_.size() == kMostInRun) write_pages();
  return number;
}

void CaptureWriter::write_pages() {
  if (!new_pages_.empty()) record(kPages, new_pages_.data(), new_pages_.size() * mmu::kPageSize);
  new_pages_.clear();
}

void CaptureWriter::write_memory(Context& context, const mmu::AddressSpace& space) {
  const std::vector<mmu::AddressSpace::Range> ranges = space.mapped_ranges();
  if (!same_ranges(ranges, context.maps)) {
    std::vector<uint32_t> words = {context.number};
    for (const auto& r : ranges) {
      words.push_back(r.address);
      words.push_back(static_cast<uint32_t>(r.size / mmu::kPageSize));
    }
    record(kMaps, words.data(), words.size() * 4);
    context.maps = ranges;
    context.pages.clear();  // what is newly mapped is zero for the reader
  }
  std::vector<uint32_t> sets = {context.number};
  for (const auto& r : ranges)
    for (uint64_t offset = 0; offset < r.size; offset += mmu::kPageSize) {
      const uint32_t address = static_cast<uint32_t>(r.address + offset);
      const uint32_t number = page_number(space.memory().host(address));
      uint32_t& last = context.pages[address];
      if (last == number) continue;
      last = number;
      sets.push_back(address);
      sets.push_back(number);
    }
  write_pages();
  if (sets.size() > 1) record(kSets, sets.data(), sets.size() * 4);
}

std::unique_lock<std::mutex> CaptureWriter::begin(const mmu::AddressSpace& space, const CapturedJob& job) {
  std::unique_lock lock(mutex_);
  if (!file_) return {};
  const auto [entry, added] = contexts_.try_emplace(&space);
  if (added) entry->second.number = ++last_context_;
  write_memory(entry->second, space);
  if (job.surfaces) {
    const FrameWords frame = words_of(*job.surfaces);
    record(kFrame, frame.data(), sizeof frame);
  }
  if (job.programs) {
    const std::vector<uint32_t> programs = words_of(*job.programs);
    record(kPrograms, programs.data(), programs.size() * sizeof programs[0]);
  }
  const JobRecord written{entry->second.number, job.kind, job.submission, job.words};
  record(kJob, &written, sizeof written);
  if (file_ && std::fflush(file_) != 0) stop(errno);
  if (!file_) {  // it will take nothing more
    contexts_.clear();
    known_pages_.clear();
    return {};
  }
  ++jobs_;
  return lock;
}

void CaptureWriter::forget(const mmu::AddressSpace& space) {
  const std::lock_guard lock(mutex_);
  contexts_.erase(&space);
}

}  // namespace v3d::daemon
