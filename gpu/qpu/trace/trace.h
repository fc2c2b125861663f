/// A trace is the execution of one thread as text: a paragraph per instruction with what it read, computed
/// and wrote.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/chip/generation.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/trace/trace_selection.h"

namespace v3d::qpu {

/// Takes one text of whole lines. Called by any thread, by one at a time.
using TraceSink = std::function<void(std::string_view text)>;

class ThreadTrace final : public Observer {
 public:
  /// @param selection  which instructions and lanes, and how values are written; outlives the object
  /// @param title      first line
  ThreadTrace(chip::Generation generation, const TraceSelection& selection, const Thread& thread,
              std::string title);

  void before(const Thread& thread, uint64_t word, const Instruction* instruction) override;
  void after(const Thread& thread, const char* error) override;
  void finished(const Thread& thread, Next next) override;

  /// True when nothing more will come.
  bool complete() const { return complete_; }
  /// What was traced since the last call.
  std::string take_text() { return std::exchange(text_, {}); }

 private:
  struct Paragraph;

  const chip::Generation generation_;
  const TraceSelection& selection_;
  const GpuAddr entry_;
  const std::unique_ptr<Thread> before_;
  const Instruction* instruction_ = nullptr;
  uint64_t word_ = 0;
  uint64_t executed_ = 0;
  bool shown_ = false, complete_ = false;
  std::string text_;
};

}  // namespace v3d::qpu
