/// A PrimitiveBinner is the binner proper: it takes shaded primitives, culls and clips them, and puts what is
/// left on the lists of the tiles it may touch (cle-and-tiles.md 4.1, 4.2).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/counters.h"
#include "gpu/ptb/clipper.h"
#include "gpu/ptb/draw_splitter.h"
#include "gpu/ptb/tile_lists.h"
#include "gpu/ptb/triangle_sorter.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::ptb {

class PrimitiveBinner {
 public:
  /// @param job  is looked at, and its pool takes parts of large draws; null: everything is done by the
  /// caller
  PrimitiveBinner(const draw::DrawState& state, const draw::ShaderRecord& record, const ViewRules& rules,
                  draw::BinResult* result, perf::Counts* counts, const JobContext* job = nullptr);

  /// Bins draw.primitives, whose vertices are those of `shaded`. What reaches no tile leaves draw.primitives;
  /// draw.clipped is filled.
  /// @param draw_number  of the draw, for the list entries
  /// @param max_entries  list entries after which to give up
  /// @return  number of list entries made, more than max_entries if it gave up
  uint64_t bin(draw::Draw* draw, const vpm::ShadedVertices& shaded, uint32_t draw_number,
               uint64_t max_entries);

  /// The same of a list of triangles, solid ones. Vertices are shaded on the way; those of triangles that are
  /// drawn, and no others, become the draw's.
  /// @param stages  have begun with the draw
  /// @param rows    that they give
  uint64_t bin_list(draw::Draw* draw, const TriangleList& list, vpm::VertexStages& stages, uint32_t rows,
                    uint32_t draw_number, uint64_t max_entries);

 private:
  /// How the triangles of the draw are drawn.
  enum class Fill : uint8_t { kSolid, kLines, kPoints };

  /// What all parts of a draw that is binned at one time have in common.
  struct Shared {
    const vpm::ShadedVertices* shaded;
    ScreenVertices vertices;
    draw::Draw* draw;
    uint32_t draw_number;
    uint64_t max_entries;
    std::atomic<uint64_t>& entries;  // that parts have told of
  };
  struct Part;
  /// A list that is binned, and what its parts have in common.
  struct ListJob {
    const TriangleList& list;
    vpm::VertexStages& stages;
    uint32_t rows;
    draw::Draw& draw;
    uint32_t draw_number;
    uint64_t max_entries;
    std::atomic<uint64_t> entries{0};
  };
  struct ListGroup;

  void load_vertices(Shared& to) const;
  void load_group(uint32_t group, Shared& to) const;
  size_t parts_of(const Shared& shared) const;
  size_t parts_of_list(size_t triangles) const;
  void bin_parts(Shared& shared, size_t parts);
  void start(Shared& shared, std::vector<draw::Primitive>* kept, size_t first);
  void bin_range(Shared& shared, size_t begin, size_t end);
  void append(Part& part, const draw::Primitive* primitives);
  void bin_list_range(ListJob& job, size_t begin, size_t end, int slot, std::vector<draw::Primitive>* kept,
                      std::vector<draw::VertexRef>* vertices);
  void give_vertices(uint32_t from, const TriangleList& list, size_t first,
                     std::vector<draw::VertexRef>* vertices);
  static draw::BinResult empty_lists(const draw::BinResult& of);
  bool has_room();
  void bin_primitive(const draw::Primitive& p, uint8_t vertices);
  void bin_triangles(const draw::Primitive* triangles);
  void bin_triangle(const draw::Primitive& p);
  void bin_solid(draw::Primitive p, uint16_t codes);
  void bin_outline(draw::Primitive p);
  void bin_line(draw::Primitive p);
  void bin_point(const draw::Primitive& p);
  bool clip(int count, uint16_t codes, draw::Primitive* p);
  bool cull(int64_t area, bool* back_facing);
  bool are_beside_view(uint32_t a, uint32_t b) const;
  float point_size(uint32_t vertex) const;
  uint32_t layer_of(const draw::Primitive& p) const;
  void keep(const draw::Primitive& p, uint32_t entries);
  draw::ListEntry next_entry() const { return {shared_->draw_number, num_kept_}; }
  const ScreenVertices& vertices() const { return shared_->vertices; }

  const draw::DrawState& state_;
  const draw::ShaderRecord& record_;
  const ViewRules rules_;
  draw::BinResult& result_;
  perf::Counts& counts_;
  const JobContext* const job_;
  const bool clips_;  ///< else only screen positions count
  const bool size_in_vertices_;
  const Fill fill_;
  ScreenTransform screen_;
  Clipper clipper_;
  TileLists lists_;
  TriangleSorter sorter_;

  // The range of a piece that is being binned
  Shared* shared_ = nullptr;
  uint64_t entries_ = 0, told_entries_ = 0;
  uint64_t all_entries_ = 0;  // of all parts, when this one told of its own
  bool was_clipped_ = false;  // the primitive at hand went through the clipper
  /// Primitives that are drawn: num_kept_ from first_kept_ on.
  std::vector<draw::Primitive>* kept_ = nullptr;
  size_t first_kept_ = 0;
  uint32_t num_kept_ = 0;
  std::vector<draw::ClippedPolygon> clipped_;
};

}  // namespace v3d::ptb
