/// An Inspector answers what the page of `v3demu inspect` asks of a capture.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/perf/timing/prediction.h"
#include "tools/cli/explain/explanation.h"
#include "tools/inspect/captured_position.h"
#include "tools/inspect/draw_textures.h"
#include "tools/inspect/heat_map.h"
#include "tools/inspect/memory_view.h"
#include "tools/inspect/pixel_history.h"
#include "tools/inspect/texture_picture.h"
#include "tools/inspect/thread_steps.h"
#include "tools/inspect/tile_pictures.h"
#include "tools/inspect/vertex_table.h"

namespace v3d::inspect {

/// A pixel of a layer of a render job.
struct PixelPlace {
  uint32_t job = 0, layer = 0, x = 0, y = 0, sample = 0;
};

struct History {
  std::vector<PixelEvent> events;
  bool is_cut = false;
  tlb::Config config;
  std::string message;  ///< why the job did not end well
};

/// Thread safe: one question is answered after the other.
class Inspector {
 public:
  /// @param compiler  of QPU programs, which outlives the object; null: they are interpreted
  static absl::StatusOr<std::unique_ptr<Inspector>> open(const std::string& path, qpu::Compiler* compiler);

  const chip::Profile& profile() const { return position_->profile(); }
  const std::vector<daemon::CapturedJob>& jobs() const { return position_->jobs(); }

  const std::vector<std::string>& summaries() const { return position_->summaries(); }

  /// While it lives, whoever else wants that waits, and questions are answered as if these words were in the
  /// programs.
  /// @param yields  what time() computes for it ends when somebody comes who does not yield
  std::unique_lock<std::mutex> begin_question(std::vector<PatchedWord> patches, bool yields = false);

  /// Calls see(what a bin job makes, or what a render job draws), which may be null, while nothing else is
  /// answered.
  absl::Status with_draws(uint32_t job, const std::function<void(const draw::BinResult* bin)>& see);
  /// The buffer after so many draws, or after all. @param buffer, sample  as for TilePictures
  absl::StatusOr<BufferPicture> picture(uint32_t job, uint64_t draws, uint32_t layer, uint8_t buffer,
                                        uint32_t sample);
  /// What was done at each pixel by these draws.
  absl::StatusOr<HeatPicture> heat(uint32_t job, uint64_t draws, uint32_t layer, Heat heat);
  /// Vertices of a draw of a render job. @param count  VertexTable::kMostVertices at most
  absl::StatusOr<VertexTable> vertices(uint32_t job, uint32_t draw, uint32_t first, uint32_t count);
  /// Textures that the programs of a draw of a render job look up.
  absl::StatusOr<std::vector<DrawTexture>> textures(uint32_t job, uint32_t draw);
  absl::StatusOr<History> history(const PixelPlace& place);
  /// Of a thread of the job.
  absl::StatusOr<Steps> steps(uint32_t job, const StepsWanted& wanted);
  /// Of a fragment thread of the tile that the pixel is in, as PixelEvent::Run::thread has it.
  absl::StatusOr<Steps> fragment_steps(const PixelPlace& place, const StepsWanted& wanted);
  struct Time {
    std::shared_ptr<const timing::Prediction> prediction;  ///< null: there is none
    std::string end, why_not;
  };
  /// Unavailable: others came first, and it is to be asked again.
  absl::StatusOr<Time> time(uint32_t job);
  /// Predictions that are kept.
  size_t kept_times() const { return times_.size(); }
  /// As `v3demu decode` prints it, kMostLines at most.
  static constexpr size_t kMostLines = 200'000;
  absl::StatusOr<std::vector<std::string>> listing(uint32_t job);
  /// What the program at an address that the job runs costs, as `v3demu asm --explain` has it.
  absl::StatusOr<tools::explain::Explanation> explain(uint32_t job, uint32_t code);
  absl::StatusOr<TexturePicture> texture(uint32_t job, const UsedTexture& used, uint32_t level);
  absl::StatusOr<MemoryView> memory(uint32_t job, uint32_t address);

 private:
  explicit Inspector(std::unique_ptr<CapturedPosition> position) : position_(std::move(position)) {}
  absl::Status seek_render(uint32_t job);
  bool set_predicted(JobControl* control);
  Time predict(JobControl& control);
  absl::Status seek_with_draw(uint32_t job, uint32_t draw);
  absl::Status seek_with_draws(uint32_t job);
  std::string follow(const PixelPlace& place, PixelHistory& history, JobControl* control);

  std::mutex questions_;
  std::mutex turns_;                 // of the next two
  uint32_t hurried_ = 0;             // who waits and does not yield
  JobControl* predicted_ = nullptr;  // of the job whose time is computed
  std::mutex mutex_;
  std::unique_ptr<CapturedPosition> position_;
  /// Those that were asked for last, the oldest first.
  static constexpr size_t kMostTimes = 64;
  std::deque<std::pair<uint32_t, Time>> times_;
};

}  // namespace v3d::inspect
