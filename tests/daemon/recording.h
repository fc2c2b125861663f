/// A Recording is a file as libv3drec.so writes it, for tests that change a part of it.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/capture.h"

namespace v3d::daemon::test {

class Recording {
 public:
  enum Type : uint32_t {
    kPage = 1,
    kMaps,
    kSets,
    kJob,
    kEnd,
    kAfter = 8,
    kChunk = 10,
    kSubmission,
    kAfterHashes,
  };

  explicit Recording(const char* profile) {
    char header[32] = {};
    std::memcpy(header, kCaptureMagic, sizeof kCaptureMagic);
    std::strncpy(header + 8, profile, 23);
    data_.assign(header, sizeof header);
  }

  Recording& record(Type type, const std::string& payload) {
    const uint32_t head[2] = {type, static_cast<uint32_t>(payload.size())};
    data_.append(reinterpret_cast<const char*>(head), sizeof head);
    data_ += payload;
    jobs_ += type == kJob;
    return *this;
  }
  Recording& words(Type type, const std::vector<uint32_t>& words) { return record(type, bytes_of(words)); }
  /// Of client 1. @param kind  of CapturedJob
  Recording& job(uint32_t kind, uint32_t submission = 0) {
    std::vector<uint32_t> job = {1, kind, submission};
    job.resize(3 + 16);
    return words(kJob, job);
  }
  /// Whole pages, compressed, which are said to be so many.
  Recording& chunk(uint32_t said, const std::string& pages) {
    std::string frame(ZSTD_compressBound(pages.size()), 0);
    frame.resize(ZSTD_compress(frame.data(), frame.size(), pages.data(), pages.size(), 1));
    return record(kChunk, bytes_of({said}) + frame);
  }
  Recording& end() { return words(kEnd, {jobs_}); }

  const std::string& data() const { return data_; }
  void save(const std::string& path) const { std::ofstream(path, std::ios::binary) << data_; }

  static std::string bytes_of(const std::vector<uint32_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
  }

 private:
  std::string data_;
  uint32_t jobs_ = 0;
};

}  // namespace v3d::daemon::test
