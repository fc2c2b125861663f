#include "daemon/capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/capture_format.h"
#include "daemon/captured_frame.h"
#include "daemon/captured_submission.h"
#include "daemon/limits.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

using namespace capture_format;

namespace {

absl::Status cut(const char* how, uint32_t jobs) {
  return absl::DataLossError(absl::StrFormat("the capture is cut: %s; %d jobs are whole", how, jobs));
}

struct OpenedCapture {
  std::unique_ptr<CaptureFile> file;
  Header header;
};

absl::StatusOr<OpenedCapture> open_capture(const std::string& path) {
  auto file = CaptureFile::open(path);
  if (!file.ok()) return file.status();
  Header header = {};
  if ((*file)->read(&header, sizeof header) != sizeof header ||
      std::memcmp(header.magic, kCaptureMagic, sizeof header.magic) != 0)
    return absl::InvalidArgumentError(absl::StrCat(path, " is no capture"));
  if (header.format < kFirstCaptureFormat || header.format > kCaptureFormat)
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is a capture of format %d; this v3demu reads %d to %d", path, header.format,
                        kFirstCaptureFormat, kCaptureFormat));
  header.profile[sizeof header.profile - 1] = 0;
  return OpenedCapture{*std::move(file), header};
}

/// The head of the next record; its type is 0 where the file ends.
absl::StatusOr<RecordHeader> next_record(CaptureFile& file, uint32_t jobs) {
  RecordHeader header = {};
  const size_t got = file.read(&header, sizeof header);
  if (got == 0) return RecordHeader{};
  if (got != sizeof header) return cut("it ends inside a record", jobs);
  if (header.type < kPage || header.type > kAfterHashes)
    return absl::InvalidArgumentError(absl::StrFormat("unknown record type %d", header.type));
  if (header.size > kMaxRecord)
    return absl::InvalidArgumentError("a record is longer than any that is written");
  return header;
}

/// Where the records end: NotFound if all are there. @param jobs  that were read
absl::Status check_end(CaptureFile& file, const RecordHeader& header, int format, uint32_t jobs) {
  if (header.type != kEnd)
    return format < 2 ? absl::NotFoundError("no more jobs") : cut("it has no end record", jobs);
  uint32_t written = 0;
  if (header.size != sizeof written) return absl::InvalidArgumentError("an end record of the wrong size");
  if (file.read(&written, sizeof written) != sizeof written) return cut("it ends inside a record", jobs);
  if (written != jobs)
    return absl::InvalidArgumentError(
        absl::StrFormat("the end record counts %d jobs; %d were read", written, jobs));
  if (!file.at_end()) return absl::InvalidArgumentError("something follows the end record");
  return absl::NotFoundError("no more jobs");
}

bool is_pages(uint32_t type) { return type == kPage || type == kPages || type == kChunk; }

/// Zeros take no memory that was not there.
void set_page(uint8_t* page, CaptureReader::Page wanted) {
  if (std::memcmp(page, wanted.data(), wanted.size()) != 0) std::memcpy(page, wanted.data(), wanted.size());
}

/// Ascending, and none overlaps another.
bool are_apart(const std::vector<mmu::AddressSpace::Range>& ranges) {
  return std::adjacent_find(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
           return a.address + a.size > b.address;
         }) == ranges.end();
}

}  // namespace

absl::StatusOr<uint32_t> count_captured_jobs(const std::string& path) {
  absl::StatusOr<OpenedCapture> capture = open_capture(path);
  if (!capture.ok()) return capture.status();
  CaptureFile& file = *capture->file;
  uint32_t jobs = 0;
  while (true) {
    const auto header = next_record(file, jobs);
    if (!header.ok()) return header.status();
    if (header->type == 0 || header->type == kEnd) {
      const absl::Status end = check_end(file, *header, capture->header.format, jobs);
      if (absl::IsNotFound(end)) return jobs;
      return end;
    }
    if (!file.skip(header->size)) return cut("it ends inside a record", jobs);
    jobs += header->type == kJob;
  }
}

absl::StatusOr<std::unique_ptr<CaptureReader>> CaptureReader::open(const std::string& path,
                                                                   qpu::Compiler* compiler, uint64_t limit) {
  auto reader = std::unique_ptr<CaptureReader>(new CaptureReader(limit));
  reader->compiler_ = compiler;
  absl::StatusOr<OpenedCapture> capture = open_capture(path);
  if (!capture.ok()) return capture.status();
  reader->file_ = std::move(capture->file);
  reader->format_ = capture->header.format;
  reader->profile_ = chip::find_profile(capture->header.profile);
  if (!reader->profile_)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no device profile \"", absl::CHexEscape(capture->header.profile), "\""));
  return reader;
}

void CaptureReader::rewind() {
  file_->seek(sizeof(Header));
  file_->forget_pages();
  memory_ -= std::exchange(decompressed_, 0);
  jobs_ = context_of_job_ = binned_ = 0;
  follows_bin_ = false;
  head_.reset();
  frame_.reset();
  programs_.reset();
  submitted_.reset();
  for (auto& [number, mapped] : contexts_) forget_memory(mapped);  // most of it comes again
}

void CaptureReader::forget_memory(Mapped& mapped) {
  drop_copy(mapped);
  mapped.filled.clear();
  mapped.numbers.clear();
  mapped.changed.clear();
  mapped.all_changed = true;
  memory_ -= std::exchange(mapped.bytes, 0);
}

uint64_t CaptureReader::most_memory() { return read_host_room().memory / 2; }

absl::Status CaptureReader::take_memory(uint64_t* of, uint64_t bytes) {
  if (bytes > limit_ - memory_)
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the programs of the capture had more memory than %d MiB, which is half of what there is here",
        limit_ >> 20));
  memory_ += bytes;
  *of += bytes;
  return absl::OkStatus();
}

device::Context& CaptureReader::context(uint32_t number) {
  Mapped& mapped = contexts_.at(number);
  fill(mapped);
  return *mapped.context;
}

Memory CaptureReader::part(uint32_t number, GpuAddr address, uint64_t bytes) {
  Mapped& mapped = contexts_.at(number);
  mmu::AddressSpace& space = mapped.context->space();
  const uint64_t end = std::min(uint64_t{address} + bytes, mmu::kSpaceSize);
  for (uint64_t at = address & ~(mmu::kPageSize - 1); at < end; at += mmu::kPageSize) {
    const auto address_of_page = static_cast<GpuAddr>(at);
    if (space.is_mapped(address_of_page))
      set_page(space.memory().host(address_of_page), page_before(mapped, address_of_page));
  }
  return space.memory();
}

std::optional<CaptureReader::Page> CaptureReader::found(GpuAddr address) {
  const auto mapped = contexts_.find(context_of_job_);
  if (mapped == contexts_.end() || !mapped->second.context->space().is_mapped(address)) return std::nullopt;
  return page_before(mapped->second, address & ~(mmu::kPageSize - 1));
}

/// Has memory hold the pages that were set since then.
void CaptureReader::fill(Mapped& mapped) {
  if (mapped.all_changed) return set_all(mapped);
  const Memory memory = mapped.context->space().memory();
  for (const uint32_t address : mapped.changed) set_page(memory.host(address), page_before(mapped, address));
  mapped.changed.clear();
  forget_pages();
}

/// Has all of its memory hold what it should, whatever jobs left there.
void CaptureReader::set_all(Mapped& mapped) {
  const Memory memory = mapped.context->space().memory();
  for (const auto& range : mapped.ranges)
    for (uint64_t offset = 0; offset < range.size; offset += mmu::kPageSize) {
      const auto address = static_cast<uint32_t>(range.address + offset);
      set_page(memory.host(address), page_before(mapped, address));
    }
  mapped.changed.clear();
  mapped.all_changed = false;
  forget_pages();
}

void CaptureReader::forget_pages() {
  size_t needed = 0;
  for (const auto& [number, one] : contexts_) needed += one.numbers.size();
  file_->keep_pages(needed, [this](const auto& keep) {
    for (const auto& [context, one] : contexts_)
      for (const auto& [address, number] : one.numbers) keep(number);
  });
}

absl::StatusOr<CaptureReader::Mapped*> CaptureReader::find(uint32_t number) {
  Mapped& mapped = contexts_[number];
  if (!mapped.context) {
    if (contexts_.size() > 256) return absl::InvalidArgumentError("more than 256 contexts");
    auto created = device::Context::create(*profile_, compiler_);
    if (!created.ok()) return created.status();
    mapped.context = std::move(*created);
  }
  return &mapped;
}

/// Maps ranges as zeros. Where the chip sees memory at several addresses (vc4-qpu.md 13: the firmware's), all
/// of these are the same memory here, too.
absl::Status CaptureReader::map_ranges(Mapped& mapped, const std::vector<mmu::AddressSpace::Range>& ranges) {
  constexpr uint32_t kAlias = 1u << 30;
  mmu::AddressSpace& space = mapped.context->space();
  const auto key_of = [](const mmu::AddressSpace::Range& range) {
    return std::pair(range.address % kAlias, range.size);
  };
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> times;
  std::map<std::pair<uint32_t, uint64_t>, ioctl::UniqueFd> shared;
  if (brings_surfaces(*profile_))
    for (const auto& range : ranges) ++times[key_of(range)];
  for (const auto& range : ranges) {
    const auto key = key_of(range);
    const auto found = times.find(key);
    absl::Status status;
    if (found == times.end() || found->second < 2) {
      status = space.map_zeros(range.address, range.size);
    } else {
      ioctl::UniqueFd& file = shared[key];
      if (!file) {  // of a file zeros that are only read take memory, too
        if (absl::Status taken = take_memory(&mapped.bytes, range.size); !taken.ok()) return taken;
        file.reset(memfd_create("v3demu-capture", MFD_CLOEXEC));
      }
      if (!file || ftruncate(file.get(), static_cast<off_t>(range.size)) != 0)
        return absl::ResourceExhaustedError("no memory for what programs of the capture had");
      status = space.map(range.address, range.size, [&file](void* at, uint64_t bytes) {
        return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED;
      });
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CaptureReader::apply_maps(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  forget_memory(mapped);
  std::vector<mmu::AddressSpace::Range> ranges;
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const mmu::AddressSpace::Range range{words[i], uint64_t{words[i + 1]} * mmu::kPageSize};
    absl::Status status = mmu::AddressSpace::check_range(range.address, range.size);
    if (status.ok()) status = take_memory(&mapped.bytes, range.size / mmu::kPageSize * sizeof(uint32_t));
    if (!status.ok()) return status;
    ranges.push_back(range);
  }
  return change_ranges(mapped, std::move(ranges));
}

/// Those that stay are not mapped anew, since most of them do.
absl::Status CaptureReader::change_ranges(Mapped& mapped, std::vector<mmu::AddressSpace::Range> ranges) {
  const auto before = [](const auto& a, const auto& b) {
    return std::pair(a.address, a.size) < std::pair(b.address, b.size);
  };
  std::vector<mmu::AddressSpace::Range> gone, added, old = std::exchange(mapped.ranges, {});
  if (are_apart(old) && are_apart(ranges) && !brings_surfaces(*profile_)) {
    std::set_difference(old.begin(), old.end(), ranges.begin(), ranges.end(), std::back_inserter(gone),
                        before);
    std::set_difference(ranges.begin(), ranges.end(), old.begin(), old.end(), std::back_inserter(added),
                        before);
  } else {
    gone = std::move(old);
    added = ranges;
  }
  for (const auto& range : gone) mapped.context->space().unmap(range.address, range.size);
  absl::Status status = map_ranges(mapped, added);
  mapped.ranges = std::move(ranges);
  return status;
}

absl::Status CaptureReader::apply_sets(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  mmu::AddressSpace& space = mapped.context->space();
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const uint32_t address = words[i], number = words[i + 1];
    if (address % mmu::kPageSize || !space.is_mapped(address) || number > file_->pages())
      return absl::InvalidArgumentError(absl::StrFormat("page %d cannot be set at %#x", number, address));
    if (!mapped.all_changed) mapped.changed.push_back(address);
    if (number == 0) {
      mapped.numbers.erase(address);
      continue;
    }
    if (mapped.filled.empty()) mapped.filled.resize(mmu::kSpaceSize / mmu::kPageSize);
    if (!mapped.filled[address / mmu::kPageSize]) {
      if (absl::Status status = take_memory(&mapped.bytes, mmu::kPageSize); !status.ok()) return status;
      mapped.filled[address / mmu::kPageSize] = true;
    }
    mapped.numbers[address] = number;
  }
  // Who only goes from job to job never takes them.
  constexpr size_t kManyChanges = 65536;
  if (mapped.changed.size() > mapped.numbers.size() + kManyChanges) {
    mapped.changed = {};
    mapped.all_changed = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<CapturedJob> CaptureReader::take_job(const std::vector<uint32_t>& words, uint32_t bytes) {
  JobRecord record;
  if (bytes != sizeof record) return absl::InvalidArgumentError("a job record of the wrong size");
  std::memcpy(&record, words.data(), sizeof record);
  if (record.kind > CapturedJob::kUser) return absl::InvalidArgumentError("a job of unknown kind");
  CapturedJob job{record.context, record.kind,       record.submission,
                  record.words,   std::move(frame_), std::move(programs_)};
  if (absl::Status status = use_submission(&job); !status.ok()) return status;
  const bool needs_frame = job.kind == CapturedJob::kRender && brings_surfaces(*profile_);
  if (needs_frame != (job.surfaces != nullptr))
    return absl::InvalidArgumentError(needs_frame ? "a render job without its surfaces"
                                                  : "surfaces of a job that has none");
  if ((job.kind == CapturedJob::kUser) != (job.programs != nullptr))
    return absl::InvalidArgumentError(job.programs ? "user programs of a job that has none"
                                                   : "a job of user programs without these");
  auto found = find(job.context);
  if (!found.ok()) return found.status();
  follows_bin_ = job.kind == CapturedJob::kRender && binned_ != 0 && job.context == context_of_job_ &&
                 job.submission == binned_;
  binned_ = job.kind == CapturedJob::kBin ? job.submission : 0;
  context_of_job_ = job.context;
  ++jobs_;
  return job;
}

void CaptureReader::restore_found() {
  if (!follows_bin_) restore();
}

void CaptureReader::restore() {
  const auto found = contexts_.find(context_of_job_);
  if (found != contexts_.end()) set_all(found->second);
}

absl::Status CaptureReader::take_frame(const std::vector<uint32_t>& words, uint32_t bytes) {
  FrameWords frame;
  if (bytes != sizeof frame) return absl::InvalidArgumentError("a frame record of the wrong size");
  std::copy_n(words.begin(), frame.size(), frame.begin());
  frame_ = frame_of(frame);
  return frame_ ? absl::OkStatus() : absl::InvalidArgumentError("a frame with flags that there are not");
}

absl::Status CaptureReader::take_programs(const std::vector<uint32_t>& words, uint32_t bytes) {
  programs_ = bytes % sizeof words[0] || !brings_surfaces(*profile_) ? nullptr : programs_of(words);
  return programs_ ? absl::OkStatus()
                   : absl::InvalidArgumentError("a record of user programs that cannot be");
}

absl::Status CaptureReader::take_pages(uint32_t type, uint32_t bytes) {
  if (type == kChunk) return take_chunk(bytes);
  const bool is_run = type == kPages;
  if (bytes % mmu::kPageSize != 0 || bytes == 0 || (!is_run && bytes != mmu::kPageSize))
    return absl::InvalidArgumentError("a page record is not a page");
  const uint32_t distance = is_run ? mmu::kPageSize : mmu::kPageSize + sizeof(RecordHeader);
  if (file_->take_pages(bytes / mmu::kPageSize, distance)) return absl::OkStatus();
  return cut("it ends inside a record", jobs_);
}

absl::Status CaptureReader::take_chunk(uint32_t bytes) {
  std::vector<uint32_t> words;
  if (!file_->read_payload(bytes, &words)) return cut("it ends inside a record", jobs_);
  const std::span<const uint8_t> chunk(reinterpret_cast<const uint8_t*>(words.data()), bytes);
  const absl::Status status = take_memory(&decompressed_, uint64_t{pages_of_chunk(chunk)} * mmu::kPageSize);
  return status.ok() ? file_->take_chunk(chunk) : status;
}

void CaptureReader::drop_copy(Mapped& mapped) {
  if (mapped.copy.empty()) return;
  const uint64_t size = mapped.copy.size() * mmu::kPageSize;
  mapped.context->space().unmap(kCopyAddress, size);
  std::erase_if(mapped.ranges, [](const auto& range) { return range.address == kCopyAddress; });
  memory_ -= size;
  mapped.bytes -= size;
  mapped.copy.clear();
}

/// What the kernel's checks make of it lies in memory that the client had not.
absl::Status CaptureReader::place_copy(Mapped& mapped, const std::vector<uint8_t>& bytes) {
  mmu::AddressSpace& space = mapped.context->space();
  drop_copy(mapped);
  if (bytes.empty()) return absl::OkStatus();
  const uint64_t size = (bytes.size() + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
  for (uint64_t at = 0; at < size; at += mmu::kPageSize)
    if (space.is_mapped(static_cast<GpuAddr>(kCopyAddress + at)))
      return absl::InvalidArgumentError("a submission whose client had the memory that is its copy's");
  if (absl::Status status = take_memory(&mapped.bytes, size); !status.ok()) return status;
  mapped.copy.resize(size / mmu::kPageSize);
  std::memcpy(mapped.copy.data(), bytes.data(), bytes.size());
  absl::Status status = map_ranges(mapped, {{kCopyAddress, size}});
  if (!status.ok()) return status;
  mapped.ranges.push_back({kCopyAddress, size});
  space.memory().write(kCopyAddress, mapped.copy.data(), size);
  return absl::OkStatus();
}

absl::Status CaptureReader::take_submission(const std::vector<uint32_t>& words, uint32_t bytes) {
  if (words.empty() || !brings_surfaces(*profile_))
    return absl::InvalidArgumentError("a submission of VideoCore IV that cannot be");
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  auto frame = frame_of_submission(words, bytes, mapped.context->space(),
                                   [&](uint32_t address) { return page_before(mapped, address); });
  if (!frame.ok()) return frame.status();
  submitted_ = std::move(frame->job);
  submitter_ = words[0];
  return place_copy(mapped, frame->copy);
}

/// The first of a submission's jobs bins, if there are two.
absl::Status CaptureReader::use_submission(CapturedJob* job) {
  if (!submitted_) return absl::OkStatus();
  const bool bins = job->kind == CapturedJob::kBin;
  if (job->context != submitter_ || job->surfaces || (!bins && job->kind != CapturedJob::kRender) ||
      (bins && submitted_->list_start == submitted_->list_end))
    return absl::InvalidArgumentError("a submission that is not of the job behind it");
  job->words = {submitted_->list_start, submitted_->list_end};
  if (!bins) job->surfaces = std::exchange(submitted_, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<CapturedAfter> CaptureReader::after_of(uint32_t type, const std::vector<uint32_t>& words,
                                                      uint32_t bytes) {
  const uint32_t page_words = type == kAfter ? 2 : 3;
  const bool has_ranges = words.size() >= 2 && words[1] <= (words.size() - 2) / 2;
  const size_t pages = has_ranges ? 2 + 2 * size_t{words[1]} : 0;
  if (bytes % sizeof words[0] || !has_ranges || (words.size() - pages) % page_words)
    return absl::InvalidArgumentError("a record of memory after jobs of the wrong size");
  const auto found = contexts_.find(words[0]);
  if (found == contexts_.end())
    return absl::InvalidArgumentError(
        absl::StrFormat("memory after jobs of client %d, which has none", words[0]));
  CapturedAfter after{.context = words[0]};
  if (absl::Status status = take_after_ranges(words, &after); !status.ok()) return status;
  const mmu::AddressSpace& space = found->second.context->space();
  for (size_t i = pages; i < words.size(); i += page_words) {
    const bool ascends = i == pages || words[i] > words[i - page_words];
    if (words[i] % mmu::kPageSize || !ascends || !space.is_mapped(words[i]) ||
        (type == kAfter && words[i + 1] > file_->pages()))
      return absl::InvalidArgumentError(
          absl::StrFormat("page %d cannot be after jobs at %#x", words[i + 1], words[i]));
    if (type == kAfter)
      after.changed[words[i]] = words[i + 1];
    else
      after.hashes[words[i]] = words[i + 1] | uint64_t{words[i + 2]} << 32;
  }
  return after;
}

absl::Status CaptureReader::take_after_ranges(const std::vector<uint32_t>& words,
                                              CapturedAfter* after) const {
  const mmu::AddressSpace& space = contexts_.at(after->context).context->space();
  uint64_t end = 0;
  for (size_t i = 2; i < 2 + 2 * size_t{words[1]}; i += 2) {
    const mmu::AddressSpace::Range range{words[i], uint64_t{words[i + 1]} * mmu::kPageSize};
    absl::Status status = mmu::AddressSpace::check_range(range.address, range.size);
    if (!status.ok()) return status;
    bool good = range.address >= end;
    end = range.address + range.size;
    for (uint64_t at = range.address; good && at < end; at += mmu::kPageSize)
      good = space.is_mapped(static_cast<GpuAddr>(at));
    if (!good)
      return absl::InvalidArgumentError(
          absl::StrFormat("memory after jobs of %#x, which is not mapped or named twice", range.address));
    after->ranges.push_back(range);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> CaptureReader::next_head(uint32_t* bytes) {
  if (!head_) {
    const auto header = next_record(*file_, jobs_);
    if (!header.ok()) return header.status();
    head_ = {header->type, header->size};
  }
  *bytes = head_->second;
  return head_->first;
}

absl::StatusOr<std::optional<CapturedAfter>> CaptureReader::take_after() {
  while (true) {
    uint32_t bytes = 0;
    const auto type = next_head(&bytes);
    if (!type.ok()) return type.status();
    const bool has_pages = is_pages(*type);
    if (!has_pages && *type != kAfter && *type != kAfterHashes) return std::nullopt;
    head_.reset();
    if (has_pages) {
      if (absl::Status status = take_pages(*type, bytes); !status.ok()) return status;
      continue;
    }
    std::vector<uint32_t> words;
    if (!file_->read_payload(bytes, &words)) return cut("it ends inside a record", jobs_);
    return after_of(*type, words, bytes);
  }
}

CaptureReader::Page CaptureReader::page_before(const Mapped& mapped, GpuAddr address) const {
  const uint64_t place = (uint64_t{address} - kCopyAddress) / mmu::kPageSize;
  if (address >= kCopyAddress && place < mapped.copy.size()) return mapped.copy[place];
  const auto number = mapped.numbers.find(address);
  return file_->page(number == mapped.numbers.end() ? 0 : number->second);
}

CaptureReader::Page CaptureReader::page_after(const CapturedAfter& after, GpuAddr address) const {
  const auto changed = after.changed.find(address);
  return changed != after.changed.end() ? file_->page(changed->second)
                                        : page_before(contexts_.at(after.context), address);
}

absl::StatusOr<CapturedJob> CaptureReader::next() {
  forget_pages();
  while (true) {
    uint32_t bytes = 0;
    const auto type = next_head(&bytes);
    if (!type.ok()) return type.status();
    if (*type == 0 || *type == kEnd) return check_end(*file_, {*type, bytes}, format_, jobs_);
    head_.reset();
    if (is_pages(*type)) {
      if (absl::Status status = take_pages(*type, bytes); !status.ok()) return status;
      continue;
    }
    std::vector<uint32_t> words;
    if (!file_->read_payload(bytes, &words)) return cut("it ends inside a record", jobs_);
    absl::Status status;
    switch (*type) {
      case kJob:
        return take_job(words, bytes);
      case kFrame:
        status = take_frame(words, bytes);
        break;
      case kPrograms:
        status = take_programs(words, bytes);
        break;
      case kSubmission:
        binned_ = 0;
        status = take_submission(words, bytes);
        break;
      case kAfter:
      case kAfterHashes:
        status = after_of(*type, words, bytes).status();
        break;
      default:
        if (bytes % 8 != 4) return absl::InvalidArgumentError("a memory record of half a pair");
        binned_ = 0;
        submitted_ = nullptr;
        status = *type == kMaps ? apply_maps(words) : apply_sets(words);
    }
    if (!status.ok()) return status;
  }
}

}  // namespace v3d::daemon
