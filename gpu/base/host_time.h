/// These scopes tell where the time of jobs goes on this host: by block, by QPU program and by draw.
///
/// Threads say with scopes in which block they are; a scope's time is what passes on its thread outside of
/// the scopes within it, so the blocks of all threads add up to the time that threads spent on jobs. What a
/// thread gathers is its own until its outermost scope ends. Off, a scope costs a test of one variable:
/// scopes stand around tiles, batches and draws, never around pixels. On, each costs two looks at the clock.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace v3d::host_time {

enum class Block : uint8_t {
  kLists,             ///< reading control lists, and all of bin and render jobs that no other block has
  kVertices,          ///< attribute fetch, feeding vertex programs, their results
  kVertexPrograms,    ///< coordinate, vertex and geometry programs
  kBinning,           ///< assembly, clipping, lists of tiles
  kTiles,             ///< beginning and clearing tiles
  kSetUp,             ///< set-up of primitives, coverage, tests before programs, payload and varyings
  kFragmentPrograms,  ///< with what they write to the tile buffer
  kLookups,     ///< texture lookups by functions: of interpreted programs, and those without generated code
  kLoads,       ///< of tiles
  kStores,      ///< of tiles
  kDispatches,  ///< compute: batches and supergroups
  kComputePrograms,
  kTransfers,  ///< TFU jobs
  kCompiling,  ///< QPU programs into code of this host
  kWaiting,    ///< threads of a job for each other, and for their turn
};
inline constexpr size_t kNumBlocks = 15;
const char* name(Block block);

enum class Job : uint8_t { kBin, kRender, kCompute, kTransfer };
inline constexpr size_t kNumJobs = 4;
const char* name(Job job);

/// What was gathered, in nanoseconds.
struct Program {
  uint64_t ns = 0;       ///< with lookups
  uint64_t batches = 0;  ///< runs of 16 lanes
  uint64_t instructions = 0, interpreted = 0;
};
struct Draw {
  uint64_t bin_ns = 0, render_ns = 0;  ///< of all threads
  uint64_t times = 0;                  ///< that it was binned
};
/// A program is told by its stage, a literal, and its address.
using ProgramKey = std::tuple<std::string, uint32_t>;
/// Draws are told by their vertex and fragment program and the number of their vertices.
struct DrawKey {
  uint32_t vertex_program, fragment_program;
  uint64_t vertices;
  auto operator<=>(const DrawKey&) const = default;
};
struct Totals {
  std::array<uint64_t, kNumBlocks> blocks{};
  std::array<uint64_t, kNumJobs> jobs{}, job_ns{};  ///< how many; from begin to end of each
  std::map<ProgramKey, Program> programs;
  std::map<DrawKey, Draw> draws;
  std::map<uint32_t, std::string> not_compiled;  ///< why, by address
  uint64_t left_out = 0;                         ///< programs and draws beyond kMostRows

  uint64_t thread_ns() const;
};
/// Programs, and draws, that are told apart.
inline constexpr size_t kMostRows = 4096;

/// Before the first job, by who runs the model.
void start();
/// What has ended so far: jobs that run are in it when they have ended. Thread safe.
Totals totals();

// ---- For blocks

inline bool g_on = false;

/// The thread is in a block as long as this lives.
class Scope {
 public:
  explicit Scope(Block block) {
    if (g_on) [[unlikely]]
      enter(block);
  }
  ~Scope() {
    if (entered_) [[unlikely]]
      leave();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  void enter(Block block);
  void leave();

  bool entered_ = false;
  uint8_t before_ = 0;
};

/// A job runs on this thread as long as this lives.
class JobScope {
 public:
  JobScope(Job job, Block block) : scope_(block), job_(job), begin_(g_on ? now() : 0) {}
  ~JobScope() {
    if (begin_) [[unlikely]]
      end();
  }
  JobScope(const JobScope&) = delete;
  JobScope& operator=(const JobScope&) = delete;

 private:
  static uint64_t now();
  void end();

  const Scope scope_;
  const Job job_;
  const uint64_t begin_;
};

/// A QPU thread runs in it.
class ProgramScope {
 public:
  /// @param stage  a literal
  ProgramScope(Block block, const char* stage, uint32_t address) : scope_(block) {
    if (g_on) [[unlikely]]
      begin(stage, address);
  }
  ~ProgramScope() {
    if (program_) [[unlikely]]
      end();
  }
  ProgramScope(const ProgramScope&) = delete;
  ProgramScope& operator=(const ProgramScope&) = delete;
  /// What it executed.
  void executed(uint64_t instructions) {
    if (program_) [[unlikely]]
      program_->instructions += instructions;
  }
  /// It ran so often, not once.
  void ran(uint64_t times) {
    if (program_) [[unlikely]]
      program_->batches += times - 1;
  }

 private:
  void begin(const char* stage, uint32_t address);
  void end();

  const Scope scope_;
  Program* program_ = nullptr;
  uint64_t begin_ = 0;
};

/// The thread works for a draw. Within the scope of a draw another one says nothing.
class DrawScope {
 public:
  enum class Phase : uint8_t { kBin, kRender };
  /// @param begins  a draw that is binned begins here: counts
  DrawScope(Phase phase, const DrawKey& key, bool begins = false) {
    if (g_on) [[unlikely]]
      begin(phase, key, begins);
  }
  ~DrawScope() {
    if (ns_) [[unlikely]]
      end();
  }
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

 private:
  void begin(Phase phase, const DrawKey& key, bool begins);
  void end();

  uint64_t* ns_ = nullptr;
  uint64_t begin_ = 0;
};

/// The program in whose scope the thread is executed instructions without code of this host.
void add_interpreted(uint64_t instructions);
/// Why a program has none.
void set_not_compiled(uint32_t address, const char* why);

}  // namespace v3d::host_time
