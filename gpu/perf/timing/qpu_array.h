/// A QpuArray is the QPUs of the board with their threads, TMUs and queues: it runs batches of a trace, with
/// clocks.
///
/// One QPU after the other goes on by an event, always the one whose time is the earliest; of equals the
/// first. So a job has one prediction, on whatever host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/memory_system.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::timing {

class QpuArray {
 public:
  /// What it counts goes to *result. All references outlive the array.
  QpuArray(const Trace& trace, const chip::Profile& profile, const Parameters& parameters,
           MemorySystem& memory, Prediction* result);

  /// Batches wait at barriers for the others of their group. @param live  batches of each
  void set_groups(const std::vector<uint32_t>& live);

  /// What user programs share, as they find it.
  void set_semaphores(const std::array<uint8_t, 16>& semaphores) { sync_.semaphores = semaphores; }

  /// Whether a batch finds a place now.
  bool has_room(const Batch& batch) const { return fewest(units_of(batch)) != nullptr; }
  /// Places a batch, for which there is room, on the QPU with the fewest threads.
  /// @param tag  comes back when it ends  @param group  of set_groups(); any without
  void start(const Batch& batch, uint64_t clock, size_t tag, size_t group = 0);

  struct Ended {
    size_t tag;
    uint64_t clock;  ///< when it ended
    uint64_t done;   ///< when its stores are done, too
  };
  /// Goes on until a batch ends. Nothing: none runs.
  std::optional<Ended> run();

  /// Clocks in which the tile buffer is written.
  uint64_t tlb_free() const { return tlb_free_; }
  uint64_t tlb_busy() const { return tlb_busy_; }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  static constexpr size_t kMaxThreads = 4;
  static constexpr size_t kMaxTmus = 2;  // of a slice

  /// A place for a batch.
  struct Thread {
    const std::vector<Event>* path = nullptr;  // null: it is free
    const Batch* batch = nullptr;
    const Program* program = nullptr;
    Prediction::ProgramTime* time = nullptr;
    size_t event = 0, line = 0;  // next ones
    uint32_t issued = 0;         // instructions of the event
    size_t tag = 0, group = 0;
    uint32_t units = 1;  // of the kMaxThreads of a QPU
    uint64_t launched = 0;
    uint64_t wake = 0;                       // kNever: at a barrier
    uint64_t clocks = 0;                     // that it had the QPU
    std::deque<uint64_t> results[kMaxTmus];  // when they can be taken
    uint64_t stores_done = 0;
    uint64_t transfers_done[2] = {};  // of the VPM: from memory, to it
    uint64_t next_uniform = 0;        // when the stream has it
    InFlight lookups{1};
  };
  struct Input {
    uint64_t leaves = 0;
    uint32_t words = 0;
  };
  struct Qpu {
    size_t number = 0;
    int slice = 0;
    bool is_in_second_half = false;  // of the slice
    std::array<Thread, kMaxThreads> threads;
    size_t current = kMaxThreads;  // none
    size_t last = kMaxThreads - 1;
    uint64_t now = 0;
    uint32_t code_line = ~0u;
    uint32_t last_instruction = 0;
    std::deque<Input> inputs[kMaxTmus];  // waiting
    bool parked = false;                 // the current thread waits for others, to try again then
    uint64_t woken = 0;                  // when it may
    uint32_t occupied = 0;               // units
  };
  struct Group {
    uint32_t live = 0, waiting = 0;
    uint64_t last_arrival = 0;
  };

  uint32_t units_of(const Batch& batch) const {
    return static_cast<uint32_t>(kMaxThreads) / trace_.programs[batch.program].threads_per_qpu;
  }
  const Qpu* fewest(uint32_t units) const;
  bool is_before(size_t first, size_t second) const;
  void set_key(Qpu& qpu);
  void choose(Qpu& qpu);
  void yield(Qpu& qpu, Thread& t, uint64_t wake);
  void park(Qpu& qpu, Thread& t);
  void wake_parked(uint64_t clock);
  void arrive(Qpu& qpu, Thread& t);
  void release(size_t number);
  bool release_all();
  void end(Qpu& qpu, Thread& t);
  void step(Qpu& qpu);

  void stall(Qpu& qpu, Stall why, uint64_t clocks);
  void stall_until(Qpu& qpu, Stall why, uint64_t ready);
  Prediction::Instruction& instruction(Thread& t, uint32_t number);
  bool issue(Qpu& qpu, Thread& t, Event event);
  uint64_t first_result(const Thread& t) const;
  size_t tmu_of(const Qpu& qpu, const Shape& shape) const;
  void enter_queues(Qpu& qpu, const Thread& t, const Shape& shape, size_t tmu);
  void lookup(Qpu& qpu, Thread& t, const Shape& shape);
  void take_uniform(Qpu& qpu, Thread& t, Event::UniformStep step);
  void take_varying(Qpu& qpu);
  void transfer(Qpu& qpu, Thread& t, uint32_t value);
  void pass_gate(Qpu& qpu);
  bool take_mutex(Qpu& qpu, const Thread& t, bool takes);
  bool pass_semaphore(Qpu& qpu, uint32_t value);
  uint64_t access(int tmu, Shape::Access access, uint32_t line, uint64_t* clock);
  void access_tlb(Qpu& qpu, const Thread& t);

  const Trace& trace_;
  const Parameters& p_;
  MemorySystem& memory_;
  Prediction& result_;
  std::vector<Qpu> qpus_;
  std::vector<uint64_t> keys_;           // by QPU: when it has something to do
  std::vector<size_t> order_;            // in which QPUs get batches
  std::vector<uint64_t> tmu_free_;       // by slice, and by TMU in it
  std::vector<uint64_t> varyings_free_;  // by slice
  /// The VPM's way to and from memory: until when it has a transfer, and whose.
  struct Engine {
    uint64_t free = 0;
    const Qpu* owner = nullptr;
  } engines_[2];
  struct Sync {
    std::array<uint8_t, 16> semaphores{};
    const Thread* mutex = nullptr;  // its owner
    bool forced = false;            // who waits goes on whatever it waits for
  } sync_;
  std::vector<Group> groups_;
  uint64_t tlb_free_ = 0, tlb_busy_ = 0;
  bool disturbed_ = false;  // keys of other QPUs changed
  std::optional<Ended> ended_;
};

}  // namespace v3d::timing
