/// A JitCompiler compiles QPU programs to code for hosts with AVX-512 or AVX2, and for 64-bit Arm. Its
/// results are those of the interpreter, bit for bit; what it does not compile, the interpreter runs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/batch_compiler.h"
#include "gpu/qpu/jit/beside.h"
#include "gpu/qpu/jit/block_compiler.h"
#include "gpu/qpu/jit/code/code_cache.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/lookup_functions.h"
#include "gpu/qpu/jit/run_compiler.h"
#include "gpu/qpu/jit/target.h"
#include "gpu/qpu/jit/vertex_compiler.h"
#include "gpu/qpu/run/compiled.h"
#include "gpu/qpu/run/part_compiler.h"

namespace v3d::qpu::jit {

/// Whether the processor has what the code needs.
bool can_compile(Target target);
/// The first that it has; empty: programs are interpreted.
std::optional<Target> best_target();
/// Why best_target() is empty.
const char* why_no_target();
const char* name(Target target);

/// How QPU programs run: what V3DEMU_JIT says.
enum class Engine : uint8_t {
  kAuto,    ///< compiled when it is worth it, if the host can
  kOff,     ///< interpreted
  kAvx512,  ///< compiled for this from their first run on
  kAvx2,
  kNeon,
};
/// "auto" or nothing, "off", "avx512", "avx2", "neon". Empty: there is no such engine, or the host has not
/// what it needs; `why` says it.
std::optional<Engine> find_engine(std::string_view name, std::string* why);
/// null: programs are interpreted.
class JitCompiler;
std::unique_ptr<JitCompiler> make_compiler(Engine engine);

/// What became of the programs that were to be compiled.
enum class Outcome : uint8_t {
  kCompiled,
  kTooLarge,  ///< more than kMaxNodes
  kNoMemory,  ///< the host gives no memory for code, or none that may be executed
};
inline constexpr int kNumOutcomes = 3;
const char* name(Outcome outcome);

struct Statistics {
  std::array<uint64_t, kNumOutcomes> programs{};
  uint64_t instructions = 0;  ///< of QPUs, that were compiled
  uint64_t code_bytes = 0;
  std::array<uint64_t, kNumWhys> leaves{};  ///< see LeaveCounts
  CodeCache::Figures cache;
  Executions::Counts executed;  ///< instructions of QPUs
  double seconds = 0;
  GraphCompiler::Statistics vc4;
  ProgramFunctions::Statistics blocks, vertices, batches;
  LookupFunctions::Statistics lookups;
};
/// One line: what was compiled, what not and why, and why compiled programs were left to the interpreter.
std::string to_string(const Statistics& statistics);

/// When the interpreter has gone so far a compilation has paid for itself soon.
inline constexpr uint64_t kWorthIt = 4096;
/// The same of a run of VideoCore IV's instructions, which has tens of them.
inline constexpr uint64_t kInstructionsOfRun = 64;
/// The same of a function for blocks of fragments or batches of vertices or dispatches, which is to pay in
/// batches that run compiled already.
inline constexpr uint64_t kInstructionsOfBatch = 4;

class JitCompiler : public Compiler, public PartCompiler {
 public:
  /// Of a program; those after are interpreted.
  static constexpr size_t kMaxWords = 4096;
  /// Executions of instructions in different contexts (flow::Node) that a program may have.
  static constexpr size_t kMaxNodes = 16384;
  /// The same of what the thread compiles that is about to run it; larger programs are compiled beside,
  /// and interpreted until then. Without a warm-up there is no such limit.
  static constexpr size_t kMaxWordsAtOnce = 1024, kMaxNodesAtOnce = 2048;

  /// Only where can_compile(target). @param warm_up  see Compiler
  explicit JitCompiler(Target target, uint64_t warm_up = kWorthIt);
  ~JitCompiler() override;

  /// Is told of all code that is made from now on, by any thread; before the first compilation.
  /// @param name  what the code is of
  using Listener = std::function<void(const CodeMemory& code, const std::string& name)>;
  void set_listener(Listener listener) {
    listener_ = std::move(listener);
    vc4_.set_listener(listener_);
    blocks_.set_listener(listener_);
    vertices_.set_listener(listener_);
    batches_.set_listener(listener_);
    lookups_.set_listener(listener_);
  }
  /// Gets all code as text (listing()), in the same way.
  using Lister = std::function<void(const std::string& text)>;
  void set_lister(Lister lister) {
    lister_ = std::move(lister);
    vc4_.set_lister(lister_);
    blocks_.set_lister(lister_);
    vertices_.set_lister(lister_);
    batches_.set_lister(lister_);
    lookups_.set_lister(lister_);
  }

  uint64_t warm_up() const override { return warm_up_; }
  std::shared_ptr<const HostProgram> find(const Program& program, Memory memory, bool final_section) override;
  std::shared_ptr<const HostProgram> compile(const Program& program, Memory memory, bool final_section,
                                             bool* later) override;
  std::shared_ptr<const HostProgram> compile_part(const Program& program, bool final_section, Words words,
                                                  Receiver later) override;
  vc4::RunCompiler* vc4_compiler() override { return &vc4_; }
  BlockCompiler* block_compiler() override { return &blocks_; }
  VertexCompiler* vertex_compiler() override { return &vertices_; }
  BatchCompiler* batch_compiler() override { return &batches_; }
  Statistics statistics() const;
  /// Waits for what is compiled beside.
  void finish() { beside_.finish(); }

 private:
  struct Counters;
  struct Source;
  std::shared_ptr<const HostProgram> compile_flow(const Source& source, const flow::Flow& flow,
                                                  CodeContent content,
                                                  std::chrono::steady_clock::time_point begin);
  /// The word of an instruction, if it is part of what is to be compiled.
  using Reader = std::function<std::optional<uint64_t>(GpuAddr address)>;
  std::shared_ptr<const HostProgram> compile_now(const Program& program, bool final_section,
                                                 const Reader& words, absl::FunctionRef<void()> beside);
  void compile_beside(const Program& program, bool final_section, Reader words, Receiver receiver);
  const Target target_;
  const uint64_t warm_up_;
  Listener listener_;
  Lister lister_;
  LookupFunctions lookups_;  // before programs, which refer to it
  const std::unique_ptr<Counters> counters_;
  GraphCompiler vc4_;
  FragmentCompiler blocks_;
  VertexFunctions vertices_;
  BatchFunctions batches_;
  CompilerThread beside_;  // last: it uses all others
};

}  // namespace v3d::qpu::jit
