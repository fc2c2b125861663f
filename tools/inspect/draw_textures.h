/// A DrawTextures finds the textures that the programs of a draw look up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/base/job_control.h"
#include "gpu/draw/bin_result.h"
#include "gpu/qpu/run/observer.h"
#include "tools/inspect/thread_steps.h"

namespace v3d::inspect {

struct DrawTexture {
  std::string stage;
  UsedTexture used{};
};

/// Watches threads of a job that runs on one worker, and ends it after those of its fragments that count.
class DrawTextures final : public qpu::ThreadWatch {
 public:
  /// @param control  of the job
  explicit DrawTextures(JobControl& control);
  ~DrawTextures() override;

  void start(const char* stage, qpu::Thread& thread) override;
  void start_vc4(const char* stage, qpu::vc4::Thread& thread) override;
  /// When the job is over; each once, kMostTextures at most.
  std::vector<DrawTexture> take() { return std::move(textures_); }

  /// Threads that are watched, of each stage.
  static constexpr size_t kMostTextures = 64, kMostThreads = 1024;

 private:
  class Observer;
  class Vc4Observer;
  bool is_observed(const char* stage);
  void add(const UsedTexture& used);

  JobControl& control_;
  const char* stage_ = "";
  size_t threads_ = 0;  // of the stage
  std::vector<DrawTexture> textures_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<Vc4Observer> vc4_observer_;
};

/// While it lives, tiles draw a part of one draw alone, whose fragments no test removes: enough to see what
/// its programs look up.
class SampleOfDraw {
 public:
  /// @param draw  one that there is
  SampleOfDraw(draw::BinResult& bin, uint32_t draw);
  ~SampleOfDraw();
  SampleOfDraw(const SampleOfDraw&) = delete;
  SampleOfDraw& operator=(const SampleOfDraw&) = delete;

 private:
  draw::BinResult& bin_;
  const uint32_t draw_;
  draw::CfgBits cfg_;
  std::vector<std::vector<draw::ListEntry>> whole_;
};

}  // namespace v3d::inspect
