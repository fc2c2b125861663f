/// A WholeProfile is the profile of a capture, as `v3demu profile --json` writes it, made bit by bit while
/// somebody asks for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/capture.h"
#include "tools/cli/profiling/collect.h"

namespace v3d::inspect {

/// Thread safe. While jobs are left it has a replay of its own, beside that of the Inspector.
class WholeProfile {
 public:
  /// Jobs that it takes: what each leaves is kept, and a page would not show more.
  static constexpr size_t kMostJobs = 10'000;

  /// @param jobs  of the capture
  WholeProfile(std::string path, size_t jobs) : path_(std::move(path)), jobs_(jobs) {}

  struct Progress {
    uint32_t done = 0;                        ///< jobs
    std::shared_ptr<const std::string> json;  ///< null: jobs are left
  };
  /// Runs jobs, one at least, for so long.
  absl::StatusOr<Progress> go_on(std::chrono::milliseconds patience);

  size_t jobs() const { return jobs_; }

 private:
  struct Collection {
    explicit Collection(std::unique_ptr<daemon::CaptureReader> opened)
        : reader(std::move(opened)), collector(*reader) {}
    std::unique_ptr<daemon::CaptureReader> reader;
    tools::profiling::Collector collector;
  };
  absl::Status begin();
  void finish();

  const std::string path_;
  const size_t jobs_;
  std::mutex mutex_;
  std::unique_ptr<Collection> collection_;  ///< null: it has not begun, or is over
  absl::Status failed_;
  Progress progress_;
};

}  // namespace v3d::inspect
