/// A Watch is what a device does when QPU programs are to be watched.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/part_compiler.h"
#include "gpu/qpu/trace/trace.h"

namespace v3d::qpu {

struct WatchOptions {
  std::optional<TraceSelection> trace;
  TraceSink trace_sink;
  /// Rules that programs break go here, one line per call, each once per program; null: nothing is checked.
  TraceSink hazard_sink;
  HazardKinds hazards = kAllHazardKinds;  ///< those that are reported
  /// Every thread is checked and gets poison (poison.h), each job reports what it breaks, and
  /// ThreadWatch::take_broken_rules() has it.
  bool strict = false;
  /// Makes code of what was checked, for long threads; null: they are interpreted all along. Outlives the
  /// watch.
  PartCompiler* compiler = nullptr;
};

/// Of a device; makes the watches of its jobs. Thread safe; outlives them.
class Watch {
 public:
  Watch(chip::Generation generation, WatchOptions options);
  ~Watch();

  /// @param job  number of the job, from 1
  std::unique_ptr<ThreadWatch> begin_job(uint64_t job);
  /// Instructions with what led there that were checked and are kept.
  size_t places() const;
  /// Lets go of them, but for those of threads under way: programs are checked anew, what was told is not
  /// told again.
  void forget_places();

 private:
  class JobWatch;
  class Check;
  class WatchedThread;
  class Vc4Thread;
  struct Reported;
  /// A hazard, under the mutex. @param is_wrong  a program that has it is
  void tell(const std::string& text, bool is_wrong, Reported& reported);

  const chip::Generation generation_;
  const WatchOptions options_;
  const HazardSet reported_;
  std::mutex mutex_;  // of the sinks and of checked_
  struct Checked;
  std::unique_ptr<Checked> checked_;
};

}  // namespace v3d::qpu
