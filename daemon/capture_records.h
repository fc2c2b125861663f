/// The records of a capture's file, as CaptureWriter writes them and CaptureReader takes them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/capture_file.h"

namespace v3d::daemon {

enum RecordType : uint32_t {
  kPage = 1,
  kMaps = 2,
  kSets = 3,
  kJob = 4,
  kEnd = 5,
  kFrame = 6,
  kPrograms = 7,
  kAfter = 8,
  kPages = 9
};

struct CaptureHeader {
  char magic[7];
  uint8_t format;
  char profile[24];
};

struct JobRecord {
  uint32_t context, kind, submission;
  std::array<uint32_t, 16> words;
};

/// DataLoss. @param jobs  that are whole
absl::Status cut_capture(const char* how, uint32_t jobs);

struct OpenedCapture {
  std::unique_ptr<CaptureFile> file;  ///< behind the header
  CaptureHeader header;
};
absl::StatusOr<OpenedCapture> open_capture(const std::string& path);

/// The head of the next record; its type is 0 where the file ends.
absl::StatusOr<RecordHeader> next_record(CaptureFile& file, uint32_t jobs);
/// Where the records end: NotFound if all are there. @param jobs  that were read
absl::Status check_end(CaptureFile& file, const RecordHeader& header, int format, uint32_t jobs);

}  // namespace v3d::daemon
