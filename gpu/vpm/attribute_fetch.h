/// The fetch of attributes reads vertex buffers into the input rows of a batch of 16 vertices
/// (cle-and-tiles.md 3.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/base/work_watch.h"
#include "gpu/draw/state.h"

namespace v3d::vpm {

/// Element numbers of a batch.
struct BatchRefs {
  Lanes index;     ///< after base vertex
  Lanes instance;  ///< zero based
  uint32_t base_instance = 0, base_vertex = 0, draw_index = 0;
  uint32_t max_index = ~0u;  ///< of the draw
};
inline BatchRefs batch_refs(const draw::DrawCall& call, const Lanes& index, const Lanes& instance) {
  return {index,           instance,      call.base_instance, static_cast<uint32_t>(call.base_vertex),
          call.draw_index, call.max_index};
}

/// Which attributes one program reads and how, worked out once per draw.
class AttributeFetcher {
 public:
  /// @param coordinate  the rows of the coordinate program, else those of the vertex program
  AttributeFetcher(const draw::ShaderRecord& record, bool coordinate);

  /// Empty, or the first attribute whose type the hardware does not have.
  const std::string& error() const { return error_; }

  uint32_t rows() const { return rows_; }

  /// Writes rows() rows.
  void fetch(Memory memory, const BatchRefs& refs, Lanes* rows) const;
  /// Tells what fetch() reads for the lanes.
  void show(const BatchRefs& refs, LaneMask lanes, WorkWatch* work) const;

 private:
  /// Reads `words` components of 16 elements and converts them.
  using Load = void (*)(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows);

  struct Source {
    Load load;
    uint32_t loaded;  ///< components taken from memory
    uint32_t words;   ///< rows delivered; those beyond `loaded` are defaults
    uint32_t bytes;   ///< of the components that are loaded
    GpuAddr address;
    uint32_t stride, max_index;
    uint16_t divisor;
    bool read_as_int;
    GpuAddr defaults;  ///< of this attribute in memory, or 0: (0, 0, 0, 1)
  };

  /// An attribute of VideoCore IV: bytes as they are.
  struct RawSource {
    GpuAddr address;
    uint32_t stride, bytes;
    uint32_t first_row;
  };

  void add_raw(uint32_t number, const draw::Attribute& attribute, bool coordinate);
  static Lanes raw_addresses(const RawSource& source, const BatchRefs& refs);
  static void fetch_raw(Memory memory, const RawSource& source, const Lanes& addresses, Lanes* rows);
  static Lanes addresses(const Source& source, const BatchRefs& refs);
  static Load choose_load(const draw::Attribute& attribute);
  void fill_defaults(Memory memory, const Source& source, Lanes* rows) const;

  bool instance_id_, base_instance_, base_vertex_, draw_index_, vertex_id_;
  uint32_t rows_ = 0;
  std::vector<Source> sources_;
  std::vector<RawSource> raw_sources_;
  std::string error_;
};

}  // namespace v3d::vpm
