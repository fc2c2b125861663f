/// A ProgramCode is a compiled program: host code, where it may be entered, and what it means that it was
/// left.
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

/// A block in the code.
struct CodeEntry {
  int32_t index;  ///< of the instruction
  flow::InFlight in_flight;
  size_t offset;  ///< in the code
};

/// A way out of the code.
struct CodeExit {
  enum class Why : uint8_t {
    kEnd,
    kSwitch,    ///< a thread switch at which the thread stops or may wait
    kHang,      ///< Frame::error
    kBudget,    ///< kBudget to kLoop: the interpreter goes on at the node
    kUniforms,  ///< the uniforms that follow do not stand in one piece
    kGap,       ///< no code is known: flow::Exit::Gap
    kComputed,  ///< a branch to what the program computed
    kQueue,     ///< ldtmu with an empty queue
  } why;
  int32_t index;  ///< of the next instruction; of kHang, of the one that hangs
  flow::InFlight in_flight;
  uint32_t left_back = 0;  ///< instructions that were taken from the budget but not executed
  uint32_t uniform_bytes = 0, unifa_bytes = 0;  ///< that were taken since the streams were brought up to date
  // With in_flight.branch_in:
  uint32_t branch_target = 0;  ///< an address, or bytes from the entry
  bool branch_is_relative = false;
  bool branch_moves_uniforms = false;
};

inline constexpr size_t kNumWhys = 8;
const char* name(CodeExit::Why why);
/// How often threads left, for each CodeExit::Why from kBudget on.
using LeaveCounts = std::array<std::atomic<uint64_t>, kNumWhys>;

/// Where code of a node begins; of kNowhere, code of no node.
struct CodeMark {
  size_t offset;
  uint32_t node;
  bool out_of_the_way = false;  ///< after the blocks
};

/// The same, for the code as it stands.
struct CodePlace {
  static constexpr int32_t kNone = INT32_MIN;
  uint32_t offset;
  int32_t index;  ///< of the instruction; kNone: of none
};

struct CodeTables {
  std::vector<CodeEntry> entries;  ///< in the order of their indices
  std::vector<CodeExit> exits;
  std::vector<CodeMark> marks;    ///< in the order of their offsets; for listing() only
  std::vector<CodePlace> places;  ///< the same
  HostProgram::Inputs inputs;
  size_t start =
      0;  ///< offset of a function for threads that begin and need no registers in the end; 0: none
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
  class Run;

  const CodeEntry* find_start() const;
  const CodeEntry* find_entry(const Thread& thread, GpuAddr entry) const;
  Leave leave(const CodeExit& exit, Thread& thread, Frame& frame) const;
  GpuAddr instruction(const Thread& thread, const Frame& frame, const uint8_t* host_pc) const;
  int32_t index_at(const uint8_t* host_pc) const;
  bool pay(Frame& frame, const void* host_pc, uint64_t instructions, uint64_t* left) const;

  const CodeContent content_;
  const CodeMemory memory_;
  const CodeTables tables_;
  /// By the index of an instruction, from that of the first entry on: the first entry that is not before it.
  /// Empty if that would be long.
  const std::vector<uint16_t> entry_at_;
  const CodeEntry* const start_;  ///< for threads that have executed nothing; may be null
  const bool complete_;
  LeaveCounts& leaves_;
  LookupCompiler* const lookups_;
};

}  // namespace v3d::qpu::jit
