/// User programs of VideoCore IV (vc4-qpu.md 4.12, 13): what hand-written code starts on the QPUs through the
/// firmware or by registers of the V3D, and not through a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/qpu/run/vc4_program.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/qpu/run/vc4_vpm.h"

namespace v3d::csd {

struct UserProgram {
  GpuAddr code = 0, uniforms = 0;
  uint64_t most_instructions = 0;  ///< that it may execute; what executes more counts as hung
  uint64_t batch = 0;              ///< a number of its queue's
};

/// Programs that wait for a QPU, and what becomes of them. The thread that runs the job calls it.
class UserQueue {
 public:
  virtual ~UserQueue() = default;
  /// Takes the next one. False: there is none now.
  virtual bool take(UserProgram* program) = 0;
  /// QPUs have executed instructions, about which is told in pieces: before the end of the program of which
  /// they are.
  virtual void executed(uint64_t instructions) = 0;
  /// It came to its end.
  /// @param interrupts  whether it asked for an interrupt of the host
  virtual void end(const UserProgram& program, int qpu, bool interrupts) = 0;
  /// Bit n: QPU n is kept from user programs (V3D_SQRSV0, 1).
  virtual uint32_t reserved_qpus() const = 0;
  /// What take() gives next, in that order.
  virtual std::vector<UserProgram> queued() const = 0;
};

/// The QPUs as user programs find them. What these leave stays for the next: registers, semaphores, the VPM,
/// and programs that wait for one which is not there yet. One job at a time.
class UserQpus {
 public:
  explicit UserQpus(int qpus);
  ~UserQpus();

  /// Runs what is in the queue, and goes on with what waited, until nothing can go on. What cannot end is a
  /// hang of the job, behind which all QPUs are as after reset().
  /// @param alone  nothing comes to the queue that could let a waiting program go on: that is a hang
  /// @param same_watch  `job.watch` is that of the job before, and has seen the programs that waited; another
  ///                    one is told about them as if they began
  void run(const JobContext& job, UserQueue& queue, bool alone, bool same_watch = false);
  /// Whether a program waits that run() is to go on with.
  bool has_waiting() const;
  /// Whether nothing has run since these were made or reset.
  bool is_fresh() const { return fresh_; }
  const uint8_t (&semaphores() const)[16] { return shared_.semaphores; }
  /// As after power-on.
  void reset();

 private:
  struct Qpu {
    qpu::vc4::Thread thread;
    UserProgram program;
    std::shared_ptr<const qpu::vc4::Program> code;
    uint64_t left = 0;  ///< instructions
    bool busy = false;
  };
  enum class Turn : uint8_t { kIdle, kMoved, kFailed };

  void start(const JobContext& job, Qpu& qpu, const UserProgram& program);
  void show(const JobContext& job, Qpu& qpu);
  bool fill(const JobContext& job, UserQueue& queue);
  Turn run_turn(const JobContext& job, UserQueue& queue, size_t number);
  void fail(const JobContext& job, const Qpu& qpu, const std::string& why);

  std::vector<std::unique_ptr<Qpu>> qpus_;
  qpu::vc4::Shared shared_;
  AlignedLanes vpm_[qpu::vc4::kVpmRows] = {};
  uint64_t instructions_ = 0;  ///< of the job that runs
  bool fresh_ = true;
};

}  // namespace v3d::csd
