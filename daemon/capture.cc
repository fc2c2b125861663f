#include "daemon/capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace v3d::daemon {
namespace {

enum RecordType : uint32_t { kPage = 1, kMaps = 2, kSets = 3, kJob = 4 };

struct Header {
  char magic[8];
  char profile[24];
};

struct RecordHeader {
  uint32_t type, size;
};

constexpr uint32_t kMaxRecord = 1u << 28;

/// Reads a payload; its size is only a claim: memory is taken as bytes arrive. False when the file ends
/// before.
bool read_payload(FILE* file, uint32_t size, std::vector<uint32_t>* words) {
  constexpr uint32_t kChunk = 1 << 20;
  for (uint32_t done = 0; done < size;) {
    const uint32_t part = std::min(size - done, kChunk);
    words->resize((done + part + 3) / 4);
    if (std::fread(reinterpret_cast<uint8_t*>(words->data()) + done, 1, part, file) != part) return false;
    done += part;
  }
  return true;
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

device::ClJob CapturedJob::cl() const {
  return {words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
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

absl::StatusOr<std::unique_ptr<CaptureWriter>> CaptureWriter::create(const std::string& path,
                                                                     const char* profile) {
  FILE* file = std::fopen(path.c_str(), "wbe");
  if (!file) return absl::PermissionDeniedError(absl::StrCat("cannot write the capture ", path));
  Header header = {};
  std::memcpy(header.magic, kCaptureMagic, sizeof header.magic);
  std::strncpy(header.profile, profile, sizeof header.profile - 1);
  std::fwrite(&header, sizeof header, 1, file);
  return std::unique_ptr<CaptureWriter>(new CaptureWriter(file));
}

CaptureWriter::~CaptureWriter() { std::fclose(file_); }

void CaptureWriter::record(uint32_t type, const void* payload, size_t bytes) {
  const RecordHeader header{type, static_cast<uint32_t>(bytes)};
  std::fwrite(&header, sizeof header, 1, file_);
  std::fwrite(payload, 1, bytes, file_);
}

uint32_t CaptureWriter::page_number(const uint8_t* page) {
  static constexpr std::array<uint8_t, mmu::kPageSize> kZero = {};
  if (std::memcmp(page, kZero.data(), mmu::kPageSize) == 0) return 0;
  Key key{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
  for (uint32_t i = 0; i < mmu::kPageSize; i += 8) {
    uint64_t word;
    std::memcpy(&word, page + i, 8);
    key.low = (key.low ^ word) * 0xff51afd7ed558ccd;
    key.low ^= key.low >> 29;
    key.high = (key.high + word) * 0xc4ceb9fe1a85ec53;
    key.high ^= key.high >> 31;
  }
  const auto [entry, added] = known_pages_.try_emplace(key, static_cast<uint32_t>(known_pages_.size() + 1));
  if (added) record(kPage, page, mmu::kPageSize);
  return entry->second;
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
  if (sets.size() > 1) record(kSets, sets.data(), sets.size() * 4);
}

std::unique_lock<std::mutex> CaptureWriter::begin(const mmu::AddressSpace& space, CapturedJob job) {
  std::unique_lock lock(mutex_);
  const auto [entry, added] = contexts_.try_emplace(&space);
  if (added) entry->second.number = ++last_context_;
  write_memory(entry->second, space);
  job.context = entry->second.number;
  record(kJob, &job, sizeof job);
  std::fflush(file_);
  return lock;
}

void CaptureWriter::forget(const mmu::AddressSpace& space) {
  const std::lock_guard lock(mutex_);
  contexts_.erase(&space);
}

absl::StatusOr<std::unique_ptr<CaptureReader>> CaptureReader::open(const std::string& path) {
  auto reader = std::unique_ptr<CaptureReader>(new CaptureReader);
  reader->file_ = std::fopen(path.c_str(), "rbe");
  if (!reader->file_) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  Header header = {};
  if (std::fread(&header, sizeof header, 1, reader->file_) != 1 ||
      std::memcmp(header.magic, kCaptureMagic, sizeof header.magic) != 0)
    return absl::InvalidArgumentError(absl::StrCat(path, " is no capture of this version of v3demu"));
  header.profile[sizeof header.profile - 1] = 0;
  reader->profile_ = device::find_profile(header.profile);
  if (!reader->profile_)
    return absl::InvalidArgumentError(absl::StrCat(path, ": no device profile \"", header.profile, "\""));
  return reader;
}

CaptureReader::~CaptureReader() {
  if (file_) std::fclose(file_);
  for (auto& [number, mapped] : contexts_)
    for (auto& [range, fd] : mapped.ranges) close(fd);
}

device::Context& CaptureReader::context(uint32_t number) { return *contexts_.at(number).context; }

absl::StatusOr<CaptureReader::Mapped*> CaptureReader::find(uint32_t number) {
  Mapped& mapped = contexts_[number];
  if (!mapped.context) {
    if (contexts_.size() > 256) return absl::InvalidArgumentError("more than 256 contexts");
    auto created = device::Context::create(*profile_);
    if (!created.ok()) return created.status();
    mapped.context = std::move(*created);
  }
  return &mapped;
}

absl::Status CaptureReader::apply_maps(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  for (auto& [range, fd] : mapped.ranges) {
    mapped.context->space().unmap(range.address, range.size);
    close(fd);
  }
  mapped.ranges.clear();
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const mmu::AddressSpace::Range range{words[i], uint64_t{words[i + 1]} * mmu::kPageSize};
    const int fd = memfd_create("v3demu-replay", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(range.size)) != 0) {
      if (fd >= 0) close(fd);
      return absl::ResourceExhaustedError("no memory for a captured range");
    }
    mapped.ranges.emplace_back(range, fd);
    absl::Status status = mapped.context->space().map(range.address, fd, 0, range.size);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CaptureReader::apply_sets(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  mmu::AddressSpace& space = (*found)->context->space();
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const uint32_t address = words[i], number = words[i + 1];
    if (address % mmu::kPageSize || !space.is_mapped(address) || number > pages_.size())
      return absl::InvalidArgumentError(absl::StrFormat("page %d cannot be set at %#x", number, address));
    if (number == 0)
      std::memset(space.memory().host(address), 0, mmu::kPageSize);
    else
      space.memory().write(address, pages_[number - 1].data(), mmu::kPageSize);
  }
  return absl::OkStatus();
}

absl::StatusOr<CapturedJob> CaptureReader::next() {
  RecordHeader header;
  while (const size_t got = std::fread(&header, 1, sizeof header, file_)) {
    if (got == sizeof header && header.size > kMaxRecord)
      return absl::InvalidArgumentError("a record is longer than any that is written");
    std::vector<uint32_t> words;
    if (got != sizeof header || !read_payload(file_, header.size, &words))
      return absl::InvalidArgumentError("the capture ends inside a record");
    absl::Status status;
    switch (header.type) {
      case kPage:
        if (header.size != mmu::kPageSize) return absl::InvalidArgumentError("a page record is not a page");
        std::memcpy(pages_.emplace_back().data(), words.data(), mmu::kPageSize);
        break;
      case kMaps:
      case kSets:
        if (header.size % 8 != 4) return absl::InvalidArgumentError("a memory record of half a pair");
        status = header.type == kMaps ? apply_maps(words) : apply_sets(words);
        break;
      case kJob: {
        CapturedJob job;
        if (header.size != sizeof job) return absl::InvalidArgumentError("a job record of the wrong size");
        std::memcpy(static_cast<void*>(&job), words.data(), sizeof job);
        if (job.kind > CapturedJob::kTfu) return absl::InvalidArgumentError("a job of unknown kind");
        auto found = find(job.context);
        if (!found.ok()) return found.status();
        return job;
      }
      default:
        return absl::InvalidArgumentError(absl::StrFormat("unknown record type %d", header.type));
    }
    if (!status.ok()) return status;
  }
  return absl::NotFoundError("no more jobs");
}

}  // namespace v3d::daemon
