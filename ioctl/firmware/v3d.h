/// The V3D of a board with VideoCore IV as a program sees it that has its registers mapped: vc4-qpu.md 13.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/csd/user_programs.h"
#include "ioctl/base/gpu.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/link/firmware.h"

namespace v3d::ioctl::firmware {

using wire::kRegisterBytes;

/// Of one client: two do not see each other's. Registers are words of a page that the client maps to read;
/// its stores come here. Thread safe.
class V3d : public csd::UserQueue {
 public:
  /// Null: no memory or no descriptors.
  static std::shared_ptr<V3d> create(const chip::Profile& profile);
  ~V3d() override;
  V3d(const V3d&) = delete;
  V3d& operator=(const V3d&) = delete;

  /// The page of registers.
  int memfd() const { return memfd_.get(); }

  /// SET_ENABLE_QPU counts: the V3D has power until each who wanted it has ceased to.
  void set_power(bool on);
  bool has_power() const;

  enum class After : uint8_t {
    kNothing,
    kRun,      ///< a job is to call run(): programs wait that no job will come to
    kUnknown,  ///< the register does not exist, or what it does is not implemented: nothing has changed
  };
  /// A store to the register at that offset, a multiple of 4 below kRegisterBytes.
  After write(uint32_t offset, uint32_t value);
  /// There is no job for what write() wanted.
  void drop_waiting();

  /// EXECUTE_QPU: puts programs into the queue, beside which those count that stores to SRQPC put there.
  /// @param batch  what ended() wants. False: there is no room for so many
  bool enqueue(std::span<csd::UserProgram> programs, uint64_t* batch);
  /// Whether all of the batch have ended; it is forgotten, and what of it still waits is not started.
  bool finish(uint64_t batch);

  /// Runs what waits.
  /// @param alone  of EXECUTE_QPU: who waits for what has not been started waits for ever
  device::JobResult run(GpuContext& gpu, bool alone, JobControl& control);

  bool take(csd::UserProgram* program) override;
  void executed(uint64_t instructions) override;
  void end(const csd::UserProgram& program, int qpu, bool interrupts) override;
  std::vector<csd::UserProgram> queued() const override;
  uint32_t reserved_qpus() const override { return reserved_.load(std::memory_order_relaxed); }

 private:
  V3d(const chip::Profile& profile, UniqueFd memfd, uint32_t* page);

  void put(uint32_t offset, uint32_t value);
  uint32_t get(uint32_t offset) const;
  void fill(uint32_t value);
  void reset_registers();
  void show_queue();
  bool write_queue(uint32_t offset, uint32_t value, After* after);
  bool write_counters(uint32_t offset, uint32_t value);
  bool write_state(uint32_t offset, uint32_t value);
  void update_reserved();
  bool is_counting() const;
  void count(const perf::Counts& counts);
  void count_rest(const perf::Counts& counts);
  size_t most_waiting() const;

  const chip::Profile& profile_;
  const UniqueFd memfd_;
  uint32_t* const page_;  ///< mapped
  csd::UserQpus qpus_;    ///< of the job that runs
  std::atomic<uint32_t> reserved_{0};
  std::atomic<bool> has_been_off_{false};  ///< the QPUs are to be reset before they run
  mutable std::mutex mutex_;               // protects all below, and stores to the page
  uint32_t powered_ = 0;
  std::deque<csd::UserProgram> waiting_;
  bool has_job_ = false;                ///< one will look at what waits
  std::map<uint64_t, size_t> batches_;  ///< that run: programs that have not ended
  uint64_t last_batch_ = 0;
  uint32_t requests_ = 0, completed_ = 0;
  bool overflowed_ = false;
  uint64_t told_ = 0;  ///< instructions of the job that runs that the registers have counted or passed over
};

}  // namespace v3d::ioctl::firmware
