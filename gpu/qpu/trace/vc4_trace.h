/// This ThreadTrace is that of V3D 2.1.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/qpu/trace/trace_selection.h"

namespace v3d::qpu::vc4 {

class ThreadTrace final : public Observer {
 public:
  /// @param selection  outlives the object  @param title  first line
  ThreadTrace(const TraceSelection& selection, const Thread& thread, std::string title);

  void before(const Thread& thread, uint64_t word) override;
  void after(const Thread& thread, uint64_t word, const char* error) override;
  void finished(const Thread& thread, Next next) override;

  /// True when nothing more will come.
  bool complete() const { return complete_; }
  /// What was traced since the last call.
  std::string take_text() { return std::exchange(text_, {}); }

 private:
  const TraceSelection& selection_;
  const GpuAddr entry_;
  const std::unique_ptr<Thread> before_;
  uint64_t executed_ = 0;
  bool shown_ = false, complete_ = false;
  std::string text_;
};

}  // namespace v3d::qpu::vc4
