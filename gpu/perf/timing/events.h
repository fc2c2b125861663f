/// Events and records say what the batches and the fixed-function units of a job did, in as few words as
/// their times need (compute-and-timing.md 18).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace v3d::timing {

/// Bytes of a line of the TMU's and the slices' caches, and of a sector of the L2T.
inline constexpr uint32_t kLineBytes = 64;
/// Lines of the pages whose entries of the page table, of 4 bytes each, share a line.
inline constexpr uint32_t kWalkLines = kLineBytes / 4 * 4096 / kLineBytes;

/// 4 bits of kind, 28 of value. All but kIssue belong to the last instruction issued before them.
class Event {
 public:
  enum class Kind : uint8_t {
    kIssue,     ///< count() instructions from number first() of the program
    kLookup,    ///< started a lookup: number of its Shape; lines follow in Batch::lines
    kRead,      ///< took a word of the TMU, value() of the two of VideoCore IV
    kWait,      ///< waits for the thread's stores
    kSfu,       ///< used the result of the SFU operation before it
    kRep,       ///< used what the instruction before it spread from lane 0
    kUniforms,  ///< value(): a UniformStep of the uniform streams
    kSwitch,
    kBarrier,  ///< a thread switch after which it waits for its supergroup
    kTlb,      ///< its first access to the tile buffer, which takes Batch::tlb_quads
    kEnd,
    // Of VideoCore IV:
    kVarying,    ///< took a vector of the varyings
    kTransfer,   ///< started one of the VPM of value() lines of Batch::lines; kStores: to memory
    kVpmWait,    ///< waits for its last transfer, value() 1: to memory
    kMutex,      ///< value() 1: takes it; 0: gives it back
    kSemaphore,  ///< value() as in the instruction: number, and 16 to wait for it and lower it
  };
  static constexpr uint32_t kStores = 1u << 27;
  /// What an instruction takes of a uniform stream.
  enum UniformStep : uint32_t {
    kLine,      ///< of another line, the next of Batch::lines
    kNextLine,  ///< the same, one that was to be foreseen
    kWord,      ///< of the same line
  };
  static constexpr uint32_t kMaxCount = 0xfff, kMaxValue = 0xfffffff;

  constexpr Event(Kind kind, uint32_t value = 0) : word_(static_cast<uint32_t>(kind) << 28 | value) {}
  /// @param first  below 64 Ki  @param count  1..kMaxCount
  static constexpr Event issue(uint32_t first, uint32_t count) { return {Kind::kIssue, first << 12 | count}; }
  Kind kind() const { return static_cast<Kind>(word_ >> 28); }
  uint32_t value() const { return word_ & kMaxValue; }
  uint32_t first() const { return value() >> 12; }
  uint32_t count() const { return value() & kMaxCount; }
  uint32_t word() const { return word_; }
  bool operator==(const Event&) const = default;

 private:
  uint32_t word_;
};

/// A lookup without the place where it went.
struct Shape {
  enum class Access : uint8_t { kLoad, kStore, kAtomic, kNothing } access = Access::kLoad;
  uint8_t results = 0;         ///< words for ldtmu
  uint8_t inputs = 1;          ///< words of the input queue, 1..16
  uint16_t quad_words = 0;     ///< sum over live quads of max(words of a lane, lines of the quad)
  uint16_t quads = 0;          ///< sum over live quads of their lines
  uint16_t texels = 0;         ///< of textures: sum over live quads of what the filter takes, see shape.h
  uint8_t unit = 0;            ///< of the slice's TMUs; kNoSwap: as the program says, of any QPU
  bool one_line = false;       ///< all live lanes are in one line
  bool lines_follow = false;   ///< Batch::lines has each of the lines, else the first
  uint16_t num_lines = 0;      ///< different ones, or on VideoCore IV as often as lanes come to them
  std::vector<int32_t> lines;  ///< relative to the first; none if lines_follow
  static constexpr uint8_t kNoSwap = 2;
  bool operator==(const Shape&) const = default;
  /// A new one, in the memory of this.
  void clear() {
    std::vector<int32_t> empty = std::move(lines);
    empty.clear();
    *this = {};
    lines = std::move(empty);
  }
};

/// Code that batches run.
struct Program {
  const char* stage = "";        ///< as of qpu::ThreadWatch::start(); a literal
  uint32_t code = 0;             ///< address of instruction 0
  uint32_t threads_per_qpu = 4;  ///< 1, 2 or 4
  bool operator==(const Program&) const = default;
};

inline constexpr uint32_t kNoDraw = ~0u;

/// Line addresses in units of kLineBytes.
struct Batch {
  size_t path = 0;                ///< index in Trace::paths
  std::vector<uint32_t> lines;    ///< of lookups and uniforms, in order
  uint32_t program = 0;           ///< index in Trace::programs
  uint32_t draw = kNoDraw;        ///< index in the draws of a bin or render job
  std::vector<uint32_t> fetched;  ///< lines of vertex buffers
  uint16_t fetched_words = 0;     ///< of attributes, of a lane
  uint16_t tlb_quads = 0;         ///< that it writes: of all colours, with their samples, in units of 32 bits
};

/// The batches of a job.
struct Trace {
  std::vector<Program> programs;
  std::vector<Shape> shapes;              ///< of lookups
  std::vector<std::vector<Event>> paths;  ///< of batches, that may share them; each ends with kEnd
  std::vector<Batch> batches;             ///< in the order of their start
  uint64_t uniform_words = 0;             ///< taken from both streams
};

/// A compute job.
struct Dispatch {
  Trace trace;
  uint64_t batches = 0, instructions = 0;  ///< recorded or not
  uint32_t batches_per_supergroup = 1;
};

/// A draw of a bin or render job, or the piece of one that was split.
struct DrawRecord {
  uint32_t vertices = 0;  ///< that are shaded
  uint32_t primitives = 0;
  uint32_t first_batch = 0, num_batches = 0;  ///< of its vertices, in Trace::batches
  uint64_t entries = 0;                       ///< of tile lists, made by a bin job
  uint64_t outside = 0;                       ///< primitives in no tile, which a bin job throws away
};

struct BinJob {
  Trace trace;
  std::vector<DrawRecord> draws;
  uint64_t packets = 0;        ///< of the control list
  uint64_t written_bytes = 0;  ///< by the PTB
};

struct RenderJob {
  /// What one draw has in a tile.
  struct Segment {
    uint32_t draw = 0;
    uint32_t primitives = 0;                    ///< entries of the tile's list
    uint32_t quads = 0;                         ///< rasterised
    uint32_t live_quads = 0;                    ///< of those, that fragments are shaded for
    uint64_t instructions = 0;                  ///< of its fragments
    uint32_t first_batch = 0, num_batches = 0;  ///< of fragments, in Trace::batches; none if not recorded
    std::vector<uint32_t> vertex_batches;       ///< in Trace::batches: what its vertices are shaded by
  };
  struct Tile {
    uint16_t column = 0, row = 0;
    bool recorded = true;
    uint64_t list_bytes = 0;
    uint32_t loaded = 0, stored = 0, stored_depth = 0;  ///< bytes; stored: of colours
    std::vector<Segment> segments;
  };
  Trace trace;
  std::vector<DrawRecord> draws;
  std::vector<Tile> tiles;
  uint64_t packets = 0;
};

/// User programs of VideoCore IV, one batch each.
struct UserPrograms {
  Trace trace;
  std::array<uint8_t, 16> semaphores{};  ///< as they find them
  bool by_mailbox = false;               ///< started by the firmware, or by registers
};

/// A job of the TFU.
struct Transfer {
  uint64_t read_bytes = 0, written_bytes = 0;
};

}  // namespace v3d::timing
