/// A PreparedDraw is a draw made ready for rasterisation: vertices in the order in which set-up reads them,
/// program, varyings.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/raw_vector.h"
#include "gpu/pse/tile_renderer.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::pse {

/// Varying components of a draw, implicit ones first.
inline constexpr uint32_t kMaxVaryings = 64;  ///< from vertices (Mesa V3D_MAX_FS_INPUTS)
inline constexpr uint32_t kMaxImplicit = 3;   ///< primitive id, point x and y
inline constexpr uint32_t kMaxComponents = kMaxVaryings + kMaxImplicit;
using qpu::kComponentRoom;

struct PreparedDraw {
  const draw::Draw* draw = nullptr;
  const draw::DrawState& state() const { return draw->state; }
  const draw::ShaderRecord& record() const { return *draw->record; }

  std::shared_ptr<const qpu::Program> program;           ///< null: one of VideoCore IV
  std::shared_ptr<const qpu::vc4::Program> vc4_program;  ///< null: one of V3D

  /// Word 0, 1: screen x, y in 1/64 px, absolute; 2: z; 3: 1/W; then, 1 word if
  /// the record says so, the point size; then the varyings.
  uint32_t num_vertices = 0;
  uint32_t stride = 0;           ///< words of a vertex
  RawVector<uint32_t> vertices;  ///< with 16 words of slack at the end
  const uint32_t* vertex(uint32_t index) const { return vertices.data() + size_t{index} * stride; }
  /// A geometry program may emit fewer vertices than it did when it was binned.
  /// @param count  of p.vertex
  bool has_vertices(const draw::Primitive& p, int count) const {
    uint32_t last = p.provoking;
    for (int i = 0; i < count; ++i) last = std::max(last, p.vertex[i]);
    return last < num_vertices;
  }
  uint32_t first_varying = 4;  ///< word of a vertex

  uint32_t num_varyings = 0;
  bool primitive_id = false;       ///< first component
  uint32_t implicit_position = 0;  ///< 2: point x and y, 1: line coordinate, 0: none
  uint32_t num_implicit() const { return (primitive_id ? 1 : 0) + implicit_position; }
  uint32_t num_components() const { return num_implicit() + num_varyings; }
  /// Bit i % 16 of entry i / 16 belongs to varying i (implicit ones not counted).
  std::array<LaneMask, kMaxVaryings / 16> flat{}, noperspective{};
  /// Per component, implicit ones counted.
  std::array<bool, kMaxComponents> is_flat{}, is_centroid{};
  bool any_centroid = false;

  /// Lines or points that are the edges or vertices of triangles: vertex[0..2] of their primitives are valid.
  bool outlines = false;
  bool early_test = true;  ///< depth and stencil before the program
  bool sample_shading = false;
  bool four_samples = false;  ///< coverage of four samples; else of the centre
  bool multisample = false;   ///< the frame is
};

class HiddenEntries;

struct PreparedDraws::State {
  State();
  ~State();
  /// One per draw of the bin result; those that no tile lists are empty.
  std::vector<PreparedDraw> draws;
  tlb::Config config;
  std::unique_ptr<const HiddenEntries> hidden;  ///< of the lists; null: nothing is
  uint64_t bytes = 0;                           ///< of their vertices
};

}  // namespace v3d::pse
