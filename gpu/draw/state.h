/// State is what packets set and draws snapshot, as plain structs (cle-and-tiles.md 1.3, 1.5). The blocks
/// downstream of the CLE include it. Values are those of the hardware fields after decoding; enums as in
/// cle-and-tiles.md 1.6.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/memory.h"
#include "gpu/draw/modes.h"

namespace v3d::draw {

struct CfgBits {
  bool draw_front = false, draw_back = false, clockwise = false, depth_offset = false;
  uint8_t line_mode = 0;  ///< 0 diamond exit, 1 perpendicular end caps
  bool depth_bounds = false;
  uint8_t oversample = 0;  ///< 0 centre, 1 four samples
  bool z_clamp = false, wireframe = false;
  Compare depth_func = Compare::kAlways;
  bool z_write = false, stencil = false, blend = false, point_fill = false, provoking_first = false;
  static constexpr uint8_t kZClipRange = 3;
  uint8_t z_clip_mode =
      0;  ///< 0 none, 1 -1..1, 2 0..1; kZClipRange: [z_min_clip, z_max_clip] (4.2 has no field)
};

struct StencilConfig {
  uint8_t ref = 0, test_mask = 0xff, write_mask = 0xff;
  Compare func = Compare::kAlways;
  StencilOp fail = StencilOp::kKeep, depth_fail = StencilOp::kKeep, pass = StencilOp::kKeep;
};

/// 64 varyings and some: bit v of word v / 24, as the packets number them.
struct VaryingFlags {
  std::array<uint32_t, 3> words{};
  bool test(uint32_t varying) const {
    return varying < 72 && ((words[varying / 24] >> (varying % 24)) & 1) != 0;
  }
};

struct ShaderCode {
  GpuAddr code = 0, uniforms = 0;
  bool four_threads = false, final_section = false;
  bool two_threads = false;  ///< VideoCore IV: two threads share a QPU and its registers
};

struct Attribute {
  GpuAddr address = 0;
  uint8_t vec_size = 4;  ///< 1..4
  uint8_t type = 2;      ///< 1 half, 2 float, 3 fixed, 4 byte, 5 short, 6 int, 7 2_10_10_10
  bool is_signed = false, normalized = false, read_as_int = false;
  uint8_t cs_words = 0, vs_words = 0;
  uint16_t divisor = 0;
  uint32_t stride = 0, max_index = 0;
  /// VideoCore IV: so many bytes as they are, from that byte of the rows of each stage on; 0 bytes: the stage
  /// does not read it. The members above, but for address and stride, do not count then.
  uint16_t cs_bytes = 0, vs_bytes = 0;
  uint8_t cs_offset = 0, vs_offset = 0;
};

/// GL shader state record with the attribute records and, with a geometry shader, its records.
struct ShaderRecord {
  bool point_size_in_vertices = false, clipping = false;
  bool cs_vertex_id = false, cs_instance_id = false, cs_base_instance = false;
  bool vs_vertex_id = false, vs_instance_id = false, vs_base_instance = false;
  bool cs_base_vertex = false, cs_draw_index = false;  ///< records with draw index only, as the next two
  bool vs_base_vertex = false, vs_draw_index = false;
  bool fs_writes_z = false, early_z_off = false, pixel_center_w = false, sample_shading = false;
  bool reads_primitive_id = false, primitive_id_varying = false, no_implicit_varyings = false;
  uint8_t num_varyings = 0;
  uint8_t cs_output_sectors = 0, vs_output_sectors = 0;
  ShaderCode fs, vs, cs;
  bool has_gs = false;
  ShaderCode gs_bin, gs_render;
  uint8_t gs_output = 0;       ///< 0 points, 1 line strip, 2 triangle strip
  uint8_t gs_invocations = 1;  ///< 1..32
  /// Rows of one lane's output: sectors of 8 rows, times 16 / SIMD width of the pack mode (a narrower batch
  /// has the whole segment to itself; Mesa vir.c, v3d_gs_set_prog_data).
  uint16_t gs_bin_rows = 0, gs_render_rows = 0;
  GpuAddr default_attributes = 0;  ///< 4.2: four words per attribute; 0 on 7.1, which has (0, 0, 0, 1)
  uint8_t num_attributes = 0;
  bool raw_attributes = false;    ///< VideoCore IV, as the next
  bool packed_positions = false;  ///< Xs and Ys of shaded vertices are halves of one row
  std::array<Attribute, 32> attributes;
};

/// Everything a draw packet snapshots.
struct DrawState {
  CfgBits cfg;
  StencilConfig front, back;
  uint8_t blend_enables = 0;
  std::array<BlendConfig, 8> blend{};
  std::array<float, 4> blend_color{};    ///< exact values of the packet's halves
  std::array<uint8_t, 8> color_masks{};  ///< per RT, bit set = channel is NOT written (R bit 0)
  uint8_t sample_mask = 0xf;
  VaryingFlags flat, noperspective, centroid;
  float point_size = 1.0f, line_width = 1.0f;
  float offset_factor = 0, offset_units = 0, offset_limit = 0;
  uint16_t clip_left = 0, clip_bottom = 0, clip_width = 0, clip_height = 0;
  int32_t viewport_x = 0, viewport_y = 0;       ///< centre, 1/256 px, fine and coarse joined
  float z_min_clip = 0, z_max_clip = 1;         ///< packet 109
  float xy_half_width = 0, xy_half_height = 0;  ///< packet 110, in the unit of coord_fraction_bits()
  float z_scale = 0, z_offset = 0;              ///< packets 111, 112
  float depth_bounds_min = 0, depth_bounds_max = 1;
  GpuAddr occlusion_counter = 0;  ///< 0 = off
  GpuAddr shader_record = 0;
  uint8_t num_attributes = 0;
  bool with_gs = false;
  bool extended_record = false;  ///< VideoCore IV: strides stand after the attributes
};

/// A draw packet, any of 32, 33, 34, 36, 37, 38 (indirect ones resolved record by record).
struct DrawCall {
  Mode mode = Mode::kPoints;
  bool indexed = false;
  uint8_t index_size = 0;  ///< bytes: 1, 2, 4
  bool restart = false;
  uint32_t count = 0, instances = 1;
  uint32_t first_instance = 0;  ///< id of the first one
  uint32_t first_vertex = 0;    ///< arrays
  uint32_t index_offset = 0;    ///< bytes from index_buffer
  GpuAddr index_buffer = 0;
  uint32_t index_buffer_size = 0;
  int32_t base_vertex = 0;
  uint32_t base_instance = 0;
  uint32_t draw_index = 0;   ///< number of the record of an indirect draw
  uint32_t max_index = ~0u;  ///< VideoCore IV: larger indices are taken for this one
};

}  // namespace v3d::draw
