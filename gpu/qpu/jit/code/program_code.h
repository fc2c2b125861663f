/// A ProgramCode is a compiled program: a function of the host for each part of a block, from the registers
/// of the thread to its registers. What stands between them is here, for all hosts: entries, branches, exits,
/// the budget and the uniform stream.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/code/functions.h"
#include "gpu/qpu/run/compiled.h"

namespace v3d::qpu::jit {

class LookupCompiler;
struct Frame;

/// What a program is compiled from.
struct CodeContent {
  /// Words one after another: words[first] is that of the instruction `index`.
  struct Stretch {
    int32_t index;
    uint32_t first, count;
    bool operator==(const Stretch&) const = default;
  };
  chip::Generation generation{};
  bool final_section = false;    ///< of the threads that run it
  std::optional<GpuAddr> entry;  ///< the only place where it means this: it has absolute branches
  std::vector<Stretch> stretches;
  std::vector<uint64_t> words;
  bool operator==(const CodeContent&) const = default;
};

/// Where a block begins.
struct CodeEntry {
  int32_t index;  ///< of the instruction
  flow::InFlight in_flight;
  uint32_t part;
};

/// A place where code may be left.
struct CodeExit {
  enum class Why : uint8_t {
    kEnd,
    kSwitch,    ///< a thread switch at which the thread stops or may wait
    kHang,      ///< Frame::error
    kBudget,    ///< kBudget to kComputed: the interpreter goes on at the node
    kUniforms,  ///< the uniforms or varyings that follow do not stand in one piece
    kGap,       ///< no code is known (flow::Exit::Gap), or there is none
    kComputed,  ///< a branch to what the program computed
  } why;
  int32_t index;  ///< of the next instruction
  flow::InFlight in_flight;
  // With in_flight.branch_in:
  uint32_t branch_target = 0;  ///< an address, or bytes from the entry
  bool branch_is_relative = false;
  bool branch_moves_uniforms = false;
};

inline constexpr size_t kNumWhys = 7;
const char* name(CodeExit::Why why);
/// How often threads left, for each CodeExit::Why from kBudget on.
using LeaveCounts = std::array<std::atomic<uint64_t>, kNumWhys>;

/// Instructions one after the other, in one block; or a place where code is left.
struct CodePart {
  ThreadFn function = nullptr;                             ///< null: it is left
  size_t begin = 0;                                        ///< of the function, in the code
  uint32_t instructions = 0;                               ///< 0: there is no function
  uint32_t uniforms = 0, varyings = 0;                     ///< that it takes
  CodeExit before{};                                       ///< where code is left that does not go on here
  CodeExit after{};                                        ///< and where the thread `ends`
  uint32_t next = flow::kNowhere, taken = flow::kNowhere;  ///< parts
  bool ends = false;                                       ///< the thread does, behind it
  bool switches = false, may_wait = false;                 ///< a thread switch takes effect behind it
  bool lands = false;                                      ///< a branch that moves the uniform stream does
  bool branches = false;                                   ///< it ends with a branch. Of that:
  std::optional<uint32_t> moves_by{};                      ///< the uniform that moves the stream
  bool moves_relative = false;
  bool sets_link = false;
};

struct CodeTables {
  std::vector<CodeEntry> entries;  ///< in the order of their indices
  std::vector<CodePart> parts;
  HostProgram::Inputs inputs;
};

class ProgramCode : public HostProgram {
 public:
  /// @param leaves   counts; outlives the code
  /// @param lookups  the same; null: they are done by the interpreter's function
  ProgramCode(CodeContent content, CodeMemory memory, CodeTables tables, bool complete, LeaveCounts& leaves,
              LookupCompiler* lookups);

  Leave run(Thread& thread, GpuAddr entry) const override;
  bool matches(Memory memory, GpuAddr entry) const override;
  bool is_known_to(const Program& program) const override;
  void begin(std::unique_ptr<HostSeries>& series, GpuAddr entry) const override;
  const Inputs& inputs() const override { return tables_.inputs; }
  bool complete() const override { return complete_; }
  size_t bytes() const override;
  const CodeMemory& code() const { return memory_; }
  const CodeContent& content() const { return content_; }

 private:
  friend class StartingThreads;

  const CodeEntry* find_start() const;
  const CodeEntry* find_entry(const Thread& thread, GpuAddr entry) const;
  /// The block where a thread is that is to run. @return  null: there is none
  const CodeEntry* entry_of(const Thread& thread, GpuAddr entry) const;
  Leave follow(Thread& thread, Frame& frame, uint32_t number) const;
  Leave leave(const CodeExit& exit, CodeExit::Why why, Thread& thread, const Frame& frame,
              uint32_t needed = 0) const;
  static Leave hang(const CodePart& part, Thread& thread, Frame& frame);

  const CodeContent content_;
  const CodeMemory memory_;
  CodeTables tables_;
  /// By the index of an instruction, from that of the first entry on: the first entry that is not before it.
  /// Empty if that would be long.
  const std::vector<uint16_t> entry_at_;
  const CodeEntry* const start_;  ///< for threads that have executed nothing; may be null
  const bool complete_;
  LeaveCounts& leaves_;
  LookupCompiler* const lookups_;
};

}  // namespace v3d::qpu::jit
