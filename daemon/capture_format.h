/// The parts of a capture's file (capture.h), for those who write and read it.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/mmu/address_space.h"

namespace v3d::daemon::capture_format {

enum RecordType : uint32_t {
  kPage = 1,
  kMaps = 2,
  kSets = 3,
  kJob = 4,
  kEnd = 5,
  kFrame = 6,
  kPrograms = 7,
  kAfter = 8,
  kPages = 9,
  kChunk = 10,
  kSubmission = 11,
  kAfterHashes = 12
};

struct Header {
  char magic[7];
  uint8_t format;
  char profile[24];
};

struct RecordHeader {
  uint32_t type, size;
};

struct JobRecord {
  uint32_t context, kind, submission;
  std::array<uint32_t, 16> words;
};

/// Bytes of a record; longer ones are refused.
inline constexpr uint32_t kMaxRecord = 1u << 28;

inline constexpr std::array<uint8_t, mmu::kPageSize> kZero = {};

}  // namespace v3d::daemon::capture_format
