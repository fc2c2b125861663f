#include "tools/inspect/whole_profile.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/cli/captures/clif.h"
#include "tools/cli/profiling/profile.h"
#include "tools/cli/profiling/schedule.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::inspect {

absl::Status WholeProfile::begin() {
  if (jobs_ > kMostJobs)
    return absl::ResourceExhaustedError(absl::StrCat("the page shows profiles of ", kMostJobs,
                                                     " jobs at most, and the capture has ", jobs_,
                                                     "; v3demu profile tells of all of them"));
  auto reader = tools::open_capture(path_);
  if (!reader.ok()) return reader.status();
  collection_ = std::make_unique<Collection>(*std::move(reader));
  return absl::OkStatus();
}

void WholeProfile::finish() {
  tools::profiling::Profile profile = collection_->collector.take();
  collection_.reset();
  group_frames(tools::profiling::FramesBy::kTargets, &profile);
  schedule(&profile);
  progress_.json = std::make_shared<const std::string>(to_json(profile));
}

absl::StatusOr<WholeProfile::Progress> WholeProfile::go_on(std::chrono::milliseconds patience) {
  const std::scoped_lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + patience;
  if (!progress_.json && !collection_ && failed_.ok()) failed_ = begin();
  while (failed_.ok() && !progress_.json) {
    const absl::Status ran = collection_->collector.run_next();
    if (absl::IsNotFound(ran)) {
      finish();
      break;
    }
    failed_ = ran;
    if (ran.ok()) ++progress_.done;
    if (std::chrono::steady_clock::now() >= until) break;
  }
  if (failed_.ok()) return progress_;
  collection_.reset();
  return failed_;
}

}  // namespace v3d::inspect
