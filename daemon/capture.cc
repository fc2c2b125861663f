#include "daemon/capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

/// @param open  receives the file, which the caller closes whatever comes back
absl::StatusOr<Header> open_capture(const std::string& path, FILE** open) {
  *open = std::fopen(path.c_str(), "rbe");
  if (!*open) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  Header header = {};
  if (std::fread(&header, sizeof header, 1, *open) != 1 ||
      std::memcmp(header.magic, kCaptureMagic, sizeof header.magic) != 0)
    return absl::InvalidArgumentError(absl::StrCat(path, " is no capture"));
  if (header.format < kFirstCaptureFormat || header.format > kCaptureFormat)
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is a capture of format %d; this v3demu reads %d to %d", path, header.format,
                        kFirstCaptureFormat, kCaptureFormat));
  header.profile[sizeof header.profile - 1] = 0;
  return header;
}

/// The head of the next record; its type is 0 where the file ends.
absl::StatusOr<RecordHeader> next_record(FILE* file, uint32_t jobs) {
  RecordHeader header = {};
  const size_t got = std::fread(&header, 1, sizeof header, file);
  if (got == 0) return RecordHeader{};
  if (got != sizeof header) return cut("it ends inside a record", jobs);
  if (header.type < kPage || header.type > kAfterHashes)
    return absl::InvalidArgumentError(absl::StrFormat("unknown record type %d", header.type));
  if (header.size > kMaxRecord)
    return absl::InvalidArgumentError("a record is longer than any that is written");
  return header;
}

/// Where the records end: NotFound if all are there. @param jobs  that were read
absl::Status check_end(FILE* file, const RecordHeader& header, int format, uint32_t jobs) {
  if (header.type != kEnd)
    return format < 2 ? absl::NotFoundError("no more jobs") : cut("it has no end record", jobs);
  uint32_t written = 0;
  if (header.size != sizeof written) return absl::InvalidArgumentError("an end record of the wrong size");
  if (std::fread(&written, sizeof written, 1, file) != 1) return cut("it ends inside a record", jobs);
  if (written != jobs)
    return absl::InvalidArgumentError(
        absl::StrFormat("the end record counts %d jobs; %d were read", written, jobs));
  if (std::fgetc(file) != EOF) return absl::InvalidArgumentError("something follows the end record");
  return absl::NotFoundError("no more jobs");
}

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

}  // namespace

absl::StatusOr<uint32_t> count_captured_jobs(const std::string& path) {
  FILE* opened;
  const absl::StatusOr<Header> capture = open_capture(path, &opened);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(opened, [](FILE* f) { return f ? std::fclose(f) : 0; });
  if (!capture.ok()) return capture.status();
  uint32_t jobs = 0;
  while (true) {
    const auto header = next_record(file.get(), jobs);
    if (!header.ok()) return header.status();
    if (header->type == 0 || header->type == kEnd) {
      const absl::Status end = check_end(file.get(), *header, capture->format, jobs);
      if (absl::IsNotFound(end)) return jobs;
      return end;
    }
    // Seeking would go beyond the end of a file that is cut.
    std::vector<uint32_t> words;
    if (!read_payload(file.get(), header->size, &words)) return cut("it ends inside a record", jobs);
    jobs += header->type == kJob;
  }
}

absl::StatusOr<std::unique_ptr<CaptureReader>> CaptureReader::open(const std::string& path,
                                                                   qpu::Compiler* compiler, uint64_t limit) {
  auto reader = std::unique_ptr<CaptureReader>(new CaptureReader(limit));
  reader->compiler_ = compiler;
  const absl::StatusOr<Header> header = open_capture(path, &reader->file_);
  if (!header.ok()) return header.status();
  reader->format_ = header->format;
  reader->profile_ = chip::find_profile(header->profile);
  if (!reader->profile_)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no device profile \"", absl::CHexEscape(header->profile), "\""));
  return reader;
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

CaptureReader::~CaptureReader() {
  if (file_) std::fclose(file_);
}

device::Context& CaptureReader::context(uint32_t number) { return *contexts_.at(number).context; }

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
      if (!file) file.reset(memfd_create("v3demu-capture", MFD_CLOEXEC));
      if (!file || ftruncate(file.get(), static_cast<off_t>(range.size)) != 0)
        return absl::ResourceExhaustedError("no memory for what programs of the capture had");
      status = space.map(range.address, range.size, [&file](void* at, uint64_t bytes) {
        return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED;
      });
    }
    if (!status.ok()) return status;
    mapped.ranges.push_back(range);
  }
  return absl::OkStatus();
}

absl::Status CaptureReader::apply_maps(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  for (const auto& range : mapped.ranges) mapped.context->space().unmap(range.address, range.size);
  mapped.ranges.clear();
  mapped.filled.clear();
  mapped.numbers.clear();
  mapped.copy.clear();
  memory_ -= std::exchange(mapped.bytes, 0);
  std::vector<mmu::AddressSpace::Range> ranges;
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const mmu::AddressSpace::Range range{words[i], uint64_t{words[i + 1]} * mmu::kPageSize};
    absl::Status status = mmu::AddressSpace::check_range(range.address, range.size);
    if (status.ok()) status = take_memory(&mapped.bytes, range.size / mmu::kPageSize * sizeof(uint32_t));
    if (!status.ok()) return status;
    ranges.push_back(range);
  }
  return map_ranges(mapped, ranges);
}

absl::Status CaptureReader::apply_sets(const std::vector<uint32_t>& words) {
  auto found = find(words[0]);
  if (!found.ok()) return found.status();
  Mapped& mapped = **found;
  mmu::AddressSpace& space = mapped.context->space();
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    const uint32_t address = words[i], number = words[i + 1];
    if (address % mmu::kPageSize || !space.is_mapped(address) || number > pages_.size())
      return absl::InvalidArgumentError(absl::StrFormat("page %d cannot be set at %#x", number, address));
    uint8_t* const page = space.memory().host(address);
    if (number == 0) {
      mapped.numbers.erase(address);
      if (std::memcmp(page, kZero.data(), kZero.size()) != 0) std::memset(page, 0, kZero.size());
      continue;
    }
    if (mapped.filled.empty()) mapped.filled.resize(mmu::kSpaceSize / mmu::kPageSize);
    if (!mapped.filled[address / mmu::kPageSize]) {
      if (absl::Status status = take_memory(&mapped.bytes, mmu::kPageSize); !status.ok()) return status;
      mapped.filled[address / mmu::kPageSize] = true;
    }
    mapped.numbers[address] = number;
    space.memory().write(address, pages_[number - 1].data(), mmu::kPageSize);
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
  if (found == contexts_.end()) return;
  const Mapped& mapped = found->second;
  const Memory memory = mapped.context->space().memory();
  for (const auto& range : mapped.ranges)
    for (uint64_t offset = 0; offset < range.size; offset += mmu::kPageSize) {
      const auto address = static_cast<uint32_t>(range.address + offset);
      const auto was = page_before(mapped, address);
      uint8_t* const page = memory.host(address);
      if (std::memcmp(page, was.data(), was.size()) != 0) std::memcpy(page, was.data(), was.size());
    }
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

absl::Status CaptureReader::take_page(const std::vector<uint32_t>& words, uint32_t bytes) {
  if (bytes != mmu::kPageSize) return absl::InvalidArgumentError("a page record is not a page");
  std::memcpy(pages_.emplace_back().data(), words.data(), mmu::kPageSize);
  return absl::OkStatus();
}

absl::Status CaptureReader::take_chunk(const std::vector<uint32_t>& words, uint32_t bytes) {
  const std::span<const uint8_t> chunk(reinterpret_cast<const uint8_t*>(words.data()), bytes);
  const absl::Status status = take_memory(&decompressed_, uint64_t{pages_of_chunk(chunk)} * mmu::kPageSize);
  return status.ok() ? decompress_pages(chunk, &pages_) : status;
}

/// What the kernel's checks make of it lies in memory that the client had not.
absl::Status CaptureReader::place_copy(Mapped& mapped, const std::vector<uint8_t>& bytes) {
  mmu::AddressSpace& space = mapped.context->space();
  const auto is_copy = [](const mmu::AddressSpace::Range& range) { return range.address == kCopyAddress; };
  if (!mapped.copy.empty()) {
    space.unmap(kCopyAddress, mapped.copy.size() * mmu::kPageSize);
    std::erase_if(mapped.ranges, is_copy);
    memory_ -= mapped.copy.size() * mmu::kPageSize;
    mapped.bytes -= mapped.copy.size() * mmu::kPageSize;
    mapped.copy.clear();
  }
  if (bytes.empty()) return absl::OkStatus();
  const uint64_t size = (bytes.size() + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
  for (uint64_t at = 0; at < size; at += mmu::kPageSize)
    if (space.is_mapped(static_cast<GpuAddr>(kCopyAddress + at)))
      return absl::InvalidArgumentError("a submission whose client had the memory that is its copy's");
  if (absl::Status status = take_memory(&mapped.bytes, size); !status.ok()) return status;
  mapped.copy.resize(size / mmu::kPageSize);
  std::memcpy(mapped.copy.data(), bytes.data(), bytes.size());
  absl::Status status = map_ranges(mapped, {{kCopyAddress, size}});
  if (status.ok()) space.memory().write(kCopyAddress, mapped.copy.data(), size);
  return status;
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
        (type == kAfter && words[i + 1] > pages_.size()))
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
    const auto header = next_record(file_, jobs_);
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
    const bool has_pages = *type == kPage || *type == kChunk;
    if (!has_pages && *type != kAfter && *type != kAfterHashes) return std::nullopt;
    head_.reset();
    std::vector<uint32_t> words;
    if (!read_payload(file_, bytes, &words)) return cut("it ends inside a record", jobs_);
    if (!has_pages) return after_of(*type, words, bytes);
    const absl::Status status = *type == kPage ? take_page(words, bytes) : take_chunk(words, bytes);
    if (!status.ok()) return status;
  }
}

CaptureReader::Page CaptureReader::page(uint32_t number) const {
  return number == 0 ? kZero : pages_[number - 1];
}

CaptureReader::Page CaptureReader::page_before(const Mapped& mapped, GpuAddr address) const {
  const uint64_t place = (uint64_t{address} - kCopyAddress) / mmu::kPageSize;
  if (address >= kCopyAddress && place < mapped.copy.size()) return mapped.copy[place];
  const auto number = mapped.numbers.find(address);
  return page(number == mapped.numbers.end() ? 0 : number->second);
}

CaptureReader::Page CaptureReader::page_after(const CapturedAfter& after, GpuAddr address) const {
  const auto changed = after.changed.find(address);
  return changed != after.changed.end() ? page(changed->second)
                                        : page_before(contexts_.at(after.context), address);
}

absl::StatusOr<CapturedJob> CaptureReader::next() {
  while (true) {
    uint32_t bytes = 0;
    const auto type = next_head(&bytes);
    if (!type.ok()) return type.status();
    if (*type == 0 || *type == kEnd) return check_end(file_, {*type, bytes}, format_, jobs_);
    head_.reset();
    std::vector<uint32_t> words;
    if (!read_payload(file_, bytes, &words)) return cut("it ends inside a record", jobs_);
    absl::Status status;
    switch (*type) {
      case kJob:
        return take_job(words, bytes);
      case kPage:
        status = take_page(words, bytes);
        break;
      case kFrame:
        status = take_frame(words, bytes);
        break;
      case kPrograms:
        status = take_programs(words, bytes);
        break;
      case kChunk:
        status = take_chunk(words, bytes);
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
