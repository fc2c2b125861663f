/// A VertexTable is what the vertex programs of a draw are given, and what they make of it, vertex by vertex.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/bin_result.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::inspect {

struct VertexTable {
  /// Vertices in one table.
  static constexpr uint32_t kMostVertices = 64;

  struct Attribute {
    uint32_t number = 0;
    std::string format;  ///< "3 floats", "4 unsigned bytes from 0 to 1"
    GpuAddr address = 0;
    uint32_t stride = 0, divisor = 0, max_index = 0;
    bool is_integer = false, is_signed = false;     ///< its words; else they are floats
    bool of_coordinate = false, of_vertex = false;  ///< programs that read it
  };
  struct Varying {
    bool flat = false, noperspective = false, centroid = false;
  };
  struct Vertex {
    draw::VertexRef element{};
    /// Of each attribute the words that registers get, as the model's own fetch has them.
    std::vector<std::vector<uint32_t>> attributes;
    std::array<float, 4> clip{};        ///< Xc, Yc, Zc, Wc of the coordinate program
    std::array<double, 2> screen{};     ///< pixels, from the first row of the frame
    float depth = 0, reciprocal_w = 0;  ///< Zs and 1/Wc of the vertex program
    std::optional<float> point_size;
    std::vector<uint32_t> varyings;
  };

  uint32_t count = 0;         ///< of the draw: vertices that no visible primitive uses are none of it
  uint32_t first = 0;         ///< of `vertices`, a multiple of 16: a thread has as many
  uint64_t thread = 0;        ///< of the vertex stage in the job, that shades vertex `first`
  bool has_geometry = false;  ///< positions and varyings come from a geometry program, and are not shown
  std::vector<Attribute> attributes;
  std::vector<Varying> varyings;
  std::vector<Vertex> vertices;
  std::string problem;  ///< why programs gave nothing
};

/// Threads of the vertex stage that shade the draws before one, up to all: they come draw by draw, of those
/// that are in some list, and 16 vertices at a time.
uint64_t vertex_threads(const draw::BinResult& bin, uint32_t draw);

/// Runs a vertex stage over the draw.
using ShadeDraw =
    std::function<absl::StatusOr<vpm::ShadedVertices>(const draw::Draw& draw, vpm::Phase phase)>;

/// @param first, count  limited to what the draw has, and to kMostVertices
absl::StatusOr<VertexTable> read_vertices(Memory memory, const chip::Profile& profile,
                                          const draw::BinResult& bin, uint32_t draw, uint32_t first,
                                          uint32_t count, const ShadeDraw& shade);

}  // namespace v3d::inspect
