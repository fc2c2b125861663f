/// A StepCursor takes a thread through the decoded steps of its program and counts what that costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace v3d::qpu {

/// Why a thread hangs for which StepCursor::enter() finds nothing.
inline constexpr const char* kProgramTooLarge =
    "program of more than 64 Ki instructions, or jobs of its client with more than 512 Ki";

/// Lives during one call of run(). The thread's pc is true after set_pc() only, and its budget and count of
/// instructions after stop().
///
/// What Program::chunk() gives has an address, and steps that know their index; the last step is no
/// instruction but the chunk's end.
template <typename Program, typename Chunk, typename Thread>
class StepCursor {
 public:
  using Step = std::remove_extent_t<decltype(Chunk::steps)>;

  [[gnu::always_inline]] StepCursor(const Program& program, Thread& thread)
      : program_(program), thread_(thread), budget_(thread.budget), left_(budget_) {}

  /// Goes to the step at the thread's pc. False if the program would become too large.
  [[gnu::always_inline]] bool enter() {
    chunk_ = program_.chunk(thread_.memory, thread_.pc);
    if (chunk_) step_ = &chunk_->steps[thread_.pc % Chunk::kBytes / sizeof(uint64_t)];
    return chunk_ != nullptr;
  }
  [[gnu::always_inline]] void advance(uint32_t steps = 1) { step_ += steps; }
  const Chunk& chunk() const { return *chunk_; }
  const Step& step() const { return *step_; }
  [[gnu::always_inline]] void set_pc() { thread_.pc = chunk_->address + step_->index * 8u; }

  bool spent() const { return left_ == 0; }
  bool affords(uint64_t instructions) const { return left_ >= instructions; }
  /// For instructions that are afforded.
  [[gnu::always_inline]] void charge(uint64_t instructions = 1) { left_ -= instructions; }
  /// For what costs as much as so many instructions more. @return  those that were left
  [[gnu::always_inline]] uint64_t charge_more(uint64_t instructions) {
    const uint64_t charged = std::min(left_, instructions);
    left_ -= charged;
    return charged;
  }

  /// For what costs as much as so many instructions, but is none.
  void pay(uint64_t instructions) { budget_ -= charge_more(instructions); }

  /// What the call returns: the thread learns what it has spent.
  template <typename Why>
  [[gnu::always_inline]] Why stop(Why why) {
    thread_.budget = left_;
    thread_.instructions += budget_ - left_;
    return why;
  }

 private:
  const Program& program_;
  Thread& thread_;
  uint64_t budget_;
  uint64_t left_;
  const Chunk* chunk_ = nullptr;
  const Step* step_ = nullptr;
};

}  // namespace v3d::qpu
