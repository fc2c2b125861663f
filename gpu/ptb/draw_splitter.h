/// A DrawSplitter cuts draws into pieces of bounded size: it reads indices, finds equal vertices and
/// assembles primitives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/draw/bin_result.h"
#include "gpu/ptb/primitive_assembler.h"

namespace v3d::ptb {

/// Vertices that all draws of one bin job may read together, instances and indirect records included. A chip
/// needs seconds for so many, and the kernel resets it when one draw keeps it for half a second
/// (drm-abi.md 3.5).
inline constexpr uint64_t kMaxJobVertices = uint64_t{1} << 28;

/// Sizes of one piece.
inline constexpr uint32_t kPieceVertices = 1 << 16;
inline constexpr uint32_t kPiecePrimitives = 1 << 17;

/// Triangles of vertices that follow each other, of which each is one triangle's alone.
struct TriangleList {
  uint32_t first_vertex;  ///< element number
  uint32_t instance;
  uint32_t count;     ///< of triangles
  uint32_t first_id;  ///< primitive_id of the first one
};

class DrawSplitter {
 public:
  explicit DrawSplitter(const JobContext& job);

  /// Called for every piece, in order. It has vertices, and primitives or geometry inputs.
  using Consume = std::function<void(draw::Draw&& piece)>;
  /// Takes a piece that is a list, and so has neither vertices nor primitives.
  using ConsumeList = std::function<void(draw::Draw&& piece, const TriangleList& list)>;

  /// Splits one draw. Ends early when the job is stopped; too many vertices are an error of the job.
  /// @param consume_list  for large triangle lists of one instance; empty: they come as others do
  void split(const draw::DrawState& state, const draw::DrawCall& call,
             std::shared_ptr<const draw::ShaderRecord> record, const Consume& consume,
             const ConsumeList& consume_list = {});

  /// Takes from the job's allowance of vertices. @return  false, with job.error set, when it is used up
  bool spend(uint64_t vertices);

 private:
  struct Known {
    uint32_t index, position, epoch;
  };

  void make_known_table();
  void describe(draw::Draw& piece) const;
  void start_piece();
  void finish_piece(const Consume& consume);
  void run_instance(uint32_t instance, const Consume& consume);
  bool is_triangle_list() const;
  void hand_out_list(const ConsumeList& consume);
  void run_triangle_list(const Consume& consume);
  void run_indexed_triangle_list(const Consume& consume);
  void append_triangle(uint32_t a, uint32_t b, uint32_t c);
  void read_indices(uint32_t first, uint32_t count, uint32_t* out) const;
  uint32_t position_of(uint32_t index);
  void append(const Element* inputs, uint32_t provoking);
  bool piece_full() const;

  const JobContext job_;
  uint64_t vertices_left_ = kMaxJobVertices;

  // The draw being split
  draw::DrawState state_;
  draw::DrawCall call_;
  std::shared_ptr<const draw::ShaderRecord> record_;
  draw::Topology topology_;
  uint32_t real_first_ = 0, real_step_ = 1;  // of a primitive's inputs: those that are not adjacent ones
  uint32_t max_primitives_ = 0;              // of one piece
  uint32_t instance_ = 0, primitive_id_ = 0;
  draw::Draw piece_;

  // Vertices of the instance and piece that are known already, by the low bits of their index: those whose
  // epoch is the current one. A power of two.
  std::vector<Known> known_;
  uint32_t epoch_ = 0;
};

}  // namespace v3d::ptb
