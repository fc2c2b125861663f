/// A ThreadSteps records what one QPU thread of a job does, instruction by instruction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/base/job_control.h"
#include "gpu/base/lanes.h"
#include "gpu/chip/generation.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/trace/trace_selection.h"

namespace v3d::tmu {
struct TextureLookup;
}
namespace v3d::qpu::vc4 {
struct Lookup;
}

namespace v3d::inspect {

/// Which thread, and which of its instructions.
struct StepsWanted {
  std::string stage;    ///< "coordinate", "vertex", "geometry", "fragment", "compute"
  uint64_t thread = 0;  ///< in the order in which threads of that stage start
  uint64_t first = 0;   ///< instruction, in the order of execution
  uint64_t count = 0;
};

struct Step {
  GpuAddr address = 0;
  uint32_t index = 0;  ///< in the program
  std::string text;    ///< the instruction
  std::string detail;  ///< what `v3demu replay --trace-qpu` says of it
  /// Registers that it changed, by number in Steps::registers, with what they hold after it.
  std::vector<std::pair<uint32_t, Lanes>> changed;
  std::vector<LaneMask> flags;  ///< after it, as Steps::flags
};

/// A texture that the thread asked for: the words of the lookup; of V3D the first two, and by how many
/// coordinates it is looked up.
using UsedTexture = std::array<uint32_t, 4>;
UsedTexture used_texture(const tmu::TextureLookup& lookup);
UsedTexture used_texture(const qpu::vc4::Lookup& lookup);

struct Steps {
  bool found = false;  ///< there is such a thread
  GpuAddr program = 0;
  uint32_t tidx = 0;
  uint64_t executed = 0;                      ///< instructions of the thread
  std::optional<uint64_t> threads;            ///< of the stage in the job; nothing: they were not counted
  std::string error;                          ///< why it hangs
  std::vector<std::string> registers, flags;  ///< names
  std::vector<Lanes> initial;                 ///< registers before the first step
  std::vector<LaneMask> initial_flags;
  std::vector<Step> steps;
  std::vector<UsedTexture> textures;
};

class ThreadSteps final : public qpu::ThreadWatch {
 public:
  /// @param control  of the job, which ends with the thread; null: it goes on
  ThreadSteps(chip::Generation generation, StepsWanted wanted, JobControl* control);
  ~ThreadSteps() override;

  void start(const char* stage, qpu::Thread& thread) override;
  void start_vc4(const char* stage, qpu::vc4::Thread& thread) override;
  /// When the job is over. Its threads are counted if it went on to its end.
  Steps take();

 private:
  class Recorder;
  class Vc4Recorder;
  bool is_wanted(const char* stage);
  void end_job() const;

  const chip::Generation generation_;
  const StepsWanted wanted_;
  JobControl* const control_;
  uint64_t started_ = 0;  // threads of the stage
  qpu::TraceSelection selection_;
  std::mutex mutex_;
  Steps steps_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Vc4Recorder> vc4_recorder_;
};

}  // namespace v3d::inspect
