/// A WorkWatch is told what the fixed-function units of a job do (gpu/perf/record).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/base/lanes.h"

namespace v3d {

namespace cle {
struct TileCommand;
}
namespace draw {
struct BinResult;
struct ListEntry;
}  // namespace draw
namespace perf {
struct Counts;
}
namespace pse {
class FragmentWatch;
}
namespace qpu {
class ThreadWatch;
}
namespace tlb {
class TileBuffer;
}

/// Who is told what one tile does, by the worker that has it.
class TileWatch {
 public:
  virtual ~TileWatch() = default;
  /// Who watches the threads of its fragments; null: nobody does.
  virtual qpu::ThreadWatch* threads() = 0;
  /// TLB: the tile is loaded, or stored. @param depth  depth or stencil, or both
  virtual void moved(bool stored, bool depth, uint64_t bytes) = 0;
  /// PSE: the list of the tile.
  virtual void list(const std::vector<draw::ListEntry>& list, const draw::BinResult& bin) = 0;
  /// FEP: a draw begins in the tile, and ends. @param counts  of the worker, up to now
  virtual void begin_draw(uint32_t draw, const perf::Counts& counts) = 0;
  virtual void end_draw(const perf::Counts& counts) = 0;
  /// FEP: who is told of the fragments of the draws to come; null: nobody is. Asked when a draw begins.
  virtual pse::FragmentWatch* fragments() { return nullptr; }
  /// CLE: around each command of the tile.
  virtual void before(const cle::TileCommand& /*command*/, tlb::TileBuffer& /*tile*/) {}
  virtual void after(const cle::TileCommand& /*command*/, tlb::TileBuffer& /*tile*/) {}
};

/// All calls but those of begin_tile() come one after the other: vertices are shaded on one worker.
class WorkWatch {
 public:
  virtual ~WorkWatch() = default;

  /// CLE: a packet is taken.
  virtual void packet() = 0;
  /// VCD: the vertices of a draw are about to be shaded, batch by batch.
  /// @param draw  its index; of render jobs that in the BinResult
  virtual void begin_vertices(uint32_t draw, uint32_t vertices, uint32_t primitives) = 0;
  /// VCD: a batch takes so many bytes at the addresses.
  virtual void fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes) = 0;
  /// PTB: the draw is in so many tiles, summed over its primitives. @param outside  primitives that are in
  /// none
  virtual void binned(uint64_t entries, uint64_t outside) = 0;
  /// PTB: bytes that it wrote, of all draws.
  virtual void lists_written(uint64_t bytes) = 0;

  /// TLB: a frame begins. @param words  of 32 bits that a pixel has in all of its colours and samples
  virtual void begin_frame(uint32_t words) = 0;
  /// TLB: tiles follow, on so many workers. @param entries  of the lists of each
  virtual void add_tiles(const std::vector<uint32_t>& entries, size_t workers) = 0;
  /// TLB: the tile begins, of those that were added last. Calls of different workers may overlap.
  /// @return  who is told of it, up to the next tile of the worker
  virtual TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) = 0;
  /// TFU: bytes that it read and wrote.
  virtual void transferred(uint64_t read, uint64_t written) = 0;
};

}  // namespace v3d
