#include "daemon/capture_records.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/capture.h"

namespace v3d::daemon {
namespace {

constexpr uint32_t kMaxRecord = 1u << 28;

}  // namespace

absl::Status cut_capture(const char* how, uint32_t jobs) {
  return absl::DataLossError(absl::StrFormat("the capture is cut: %s; %d jobs are whole", how, jobs));
}

absl::StatusOr<OpenedCapture> open_capture(const std::string& path) {
  auto file = CaptureFile::open(path);
  if (!file.ok()) return file.status();
  CaptureHeader header = {};
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

absl::StatusOr<RecordHeader> next_record(CaptureFile& file, uint32_t jobs) {
  RecordHeader header = {};
  const size_t got = file.read(&header, sizeof header);
  if (got == 0) return RecordHeader{};
  if (got != sizeof header) return cut_capture("it ends inside a record", jobs);
  if (header.type < kPage || header.type > kPages)
    return absl::InvalidArgumentError(absl::StrFormat("unknown record type %d", header.type));
  if (header.size > kMaxRecord)
    return absl::InvalidArgumentError("a record is longer than any that is written");
  return header;
}

absl::Status check_end(CaptureFile& file, const RecordHeader& header, int format, uint32_t jobs) {
  if (header.type != kEnd)
    return format < 2 ? absl::NotFoundError("no more jobs") : cut_capture("it has no end record", jobs);
  uint32_t written = 0;
  if (header.size != sizeof written) return absl::InvalidArgumentError("an end record of the wrong size");
  if (file.read(&written, sizeof written) != sizeof written)
    return cut_capture("it ends inside a record", jobs);
  if (written != jobs)
    return absl::InvalidArgumentError(
        absl::StrFormat("the end record counts %d jobs; %d were read", written, jobs));
  if (!file.at_end()) return absl::InvalidArgumentError("something follows the end record");
  return absl::NotFoundError("no more jobs");
}

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
    if (!file.skip(header->size)) return cut_capture("it ends inside a record", jobs);
    jobs += header->type == kJob;
  }
}

}  // namespace v3d::daemon
