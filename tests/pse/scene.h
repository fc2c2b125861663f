/// A Scene is a small frame for tests: vertices given as the words that a vertex program would store,
/// hand-made fragment programs, and one render target of four 32-bit words.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/pse/tile_renderer.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/base/counting_control.h"
#include "tests/pse/program_builder.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::pse {

inline uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }

/// Of a tile of one sample, row by row. @param fn  fn(sample)
template <typename Fn>
void for_each_pixel(tlb::TileBuffer& tile, const Fn& fn) {
  const tlb::TileBuffer::Place place = tile.place();
  for (uint32_t y = 0; y < place.height; ++y)
    for (uint32_t x = 0; x < place.width; ++x) fn(tile.sample(place.x + x, place.y + y, 0));
}

struct SceneVertex {
  double x, y;  ///< pixels, rounded to 1/64
  float z = 0.5f, r = 1;
  std::vector<uint32_t> words{};  ///< [point size] and varyings
};

class Scene {
 public:
  explicit Scene(uint32_t width = 64, uint32_t height = 64, uint32_t tile = 64, bool multisample = false,
                 qpu::Compiler* compiler = qpu::compiler_of_tests())
      : programs_(chip::Generation::k71, compiler) {
    test_.job().programs = &programs_;
    config_.width = width;
    config_.height = height;
    config_.tile_width = config_.tile_height = tile;
    config_.multisample = multisample;
    config_.targets[0] = {.used = true, .type = tlb::ColorType::k32F, .bpp = 2, .clear = {1, 2, 3, 4}};
    bin_.width = width;
    bin_.height = height;
    bin_.tile_width = bin_.tile_height = tile;
    bin_.tiles_x = (width + tile - 1) / tile;
    bin_.tiles_y = (height + tile - 1) / tile;
    bin_.layers = 1;
    bin_.tiles.resize(bin_.tiles_x * bin_.tiles_y);
    test_.job().control = &control_;
  }

  TestJob& test() { return test_; }
  CountingControl& control() { return control_; }
  tlb::Config& config() { return config_; }
  draw::BinResult& bin() { return bin_; }
  std::string error() const { return test_.error(); }

  /// Appends a draw whose primitives of `corners` vertices follow one another, listed in every tile. State
  /// and record may be changed until render().
  draw::Draw& add_draw(int corners, const std::vector<SceneVertex>& vertices, ProgramBuilder& fragment,
                       uint8_t varyings) {
    return add_draw(corners, vertices, fragment.build(&test_), varyings);
  }
  draw::Draw& add_draw(int corners, const std::vector<SceneVertex>& vertices,
                       const draw::ShaderCode& fragment, uint8_t varyings) {
    const size_t extra = vertices.empty() ? 0 : vertices[0].words.size();
    const size_t rows = (4 + extra + 3) & ~size_t{3};
    EXPECT_LE(rows, 16u);
    std::vector<uint32_t> data;
    for (const SceneVertex& v : vertices) {
      const size_t begin = data.size();
      data.push_back(static_cast<uint32_t>(std::lround(v.x * 64)));
      data.push_back(static_cast<uint32_t>(std::lround(v.y * 64)));
      data.push_back(bits(v.z));
      data.push_back(bits(v.r));
      data.insert(data.end(), v.words.begin(), v.words.end());
      data.resize(begin + rows);
    }
    auto record = std::make_shared<draw::ShaderRecord>();
    const GpuAddr buffer = test_.put(data);
    record->num_attributes = static_cast<uint8_t>(rows / 4);
    for (uint32_t a = 0; a < rows / 4; ++a)
      record->attributes[a] = {.address = buffer + 16 * a,
                               .vec_size = 4,
                               .type = 6,
                               .read_as_int = true,
                               .vs_words = 4,
                               .stride = static_cast<uint32_t>(rows * 4),
                               .max_index = 0xffffff};
    record->vs = ShaderBuilder().copy_rows(static_cast<uint8_t>(rows)).build(&test_);
    record->vs_output_sectors = static_cast<uint8_t>((rows + 7) / 8);
    record->fs = fragment;
    record->num_varyings = varyings;
    record->no_implicit_varyings = true;
    record_ = record.get();

    draw::Draw draw;
    draw.record = record;
    draw.vertices_per_primitive = static_cast<uint8_t>(corners);
    draw.call.mode = corners == 1   ? draw::Mode::kPoints
                     : corners == 2 ? draw::Mode::kLines
                                    : draw::Mode::kTriangles;
    draw.state.clip_width = draw.state.clip_height = 4096;
    draw.state.cfg.line_mode = 1;
    for (uint32_t i = 0; i < vertices.size(); ++i) draw.vertices.push_back({.index = i, .instance = 0});
    const auto n = static_cast<uint32_t>(corners);
    for (uint32_t i = 0; i + n <= vertices.size(); i += n) {
      draw::Primitive p{};
      for (uint32_t k = 0; k < n; ++k) p.vertex[k] = i + k;
      p.provoking = i + n - 1;
      p.primitive_id = i / n;
      draw.primitives.push_back(p);
    }
    bin_.draws.push_back(std::move(draw));
    vertices_.push_back(vertices);
    return bin_.draws.back();
  }
  /// Of the last draw.
  draw::ShaderRecord& record() { return *record_; }

  /// Puts every primitive whose vertices touch it into the list of each tile; points and lines into all.
  void list_everything() {
    for (auto& list : bin_.tiles) list.clear();
    for (uint32_t d = 0; d < bin_.draws.size(); ++d)
      for (uint32_t p = 0; p < bin_.draws[d].primitives.size(); ++p) list_primitive(d, p);
  }
  /// Shades the vertices of what is listed.
  void prepare() {
    draws_ = std::make_unique<PreparedDraws>(test_.job(), bin_, config_);
    renderer_ = std::make_unique<TileRenderer>(test_.job(), *draws_, 0);
  }
  void render_tiles() {
    tlb::TileBuffer tile(test_.memory());
    std::string message;
    EXPECT_TRUE(tile.configure(config_, &message)) << message;
    renderer_->counts() = {};
    for (uint32_t row = 0; row < bin_.tiles_y; ++row)
      for (uint32_t column = 0; column < bin_.tiles_x; ++column) {
        tile.begin_tile(column, row);
        tile.clear_colors();
        renderer_->run(bin_.tiles[row * bin_.tiles_x + column], tile, column, row);
        if (after_tile) after_tile(tile);
        if (!image_words_.empty()) read_tile(tile, column, row);
      }
  }
  /// Lists and renders everything and keeps the image; false when the job failed.
  bool render() {
    list_everything();
    prepare();
    const size_t scale = config_.multisample ? 2 : 1;
    image_words_.assign(config_.width * scale * config_.height * scale * 4, 0);
    render_tiles();
    return test_.error().empty();
  }
  /// Called by render_tiles() after each tile; may be empty.
  std::function<void(tlb::TileBuffer& tile)> after_tile;
  uint64_t count(perf::Counter c) { return renderer_->counts()[c]; }

  uint32_t word(uint32_t x, uint32_t y, uint32_t channel, uint32_t sample = 0) const {
    const uint32_t scale = config_.multisample ? 2 : 1;
    const uint32_t tx = x * scale + (sample & 1), ty = y * scale + (sample >> 1);
    return image_words_[(size_t{ty} * config_.width * scale + tx) * 4 + channel];
  }
  float value(uint32_t x, uint32_t y, uint32_t channel, uint32_t sample = 0) const {
    return std::bit_cast<float>(word(x, y, channel, sample));
  }
  /// Written by no fragment.
  bool is_clear(uint32_t x, uint32_t y, uint32_t sample = 0) const {
    for (uint32_t c = 0; c < 4; ++c)
      if (word(x, y, c, sample) != c + 1) return false;
    return true;
  }

 private:
  /// Reads the samples back through fragment reads of the tile buffer, independent of its memory formats.
  void read_tile(tlb::TileBuffer& tile, uint32_t column, uint32_t row) {
    static const draw::DrawState kState;
    tlb::FragmentBatch batch{};
    qpu::TlbPort& port = tile.fragment_port(kState, batch, false);
    auto thread = std::make_unique<qpu::Thread>();
    thread->reset();
    const bool msaa = config_.multisample;
    const qpu::TlbSpec spec = {qpu::TlbSpec::Kind::kColor32, 0, msaa, false, 4};
    const uint32_t x0 = column * config_.tile_width, y0 = row * config_.tile_height;
    const uint32_t width = config_.width * (msaa ? 2 : 1);
    for (uint32_t y = y0; y < std::min(y0 + config_.tile_height, config_.height); y += 2)
      for (uint32_t x = x0; x < std::min(x0 + config_.tile_width, config_.width); x += 8) {
        batch.x = x + (kLaneIndex & 1u) + (kLaneIndex >> 2) * 2u;
        batch.y = y + ((kLaneIndex >> 1) & 1u);
        batch.coverage = splat(15u);
        Lanes words[16];
        port.read_color(*thread, spec, words);
        for (uint32_t s = 0; s < (msaa ? 4u : 1u); ++s)
          for (int lane = 0; lane < kLanes; ++lane) {
            const uint32_t px = batch.x[lane], py = batch.y[lane];
            if (px >= config_.width || py >= config_.height) continue;
            const uint32_t tx = msaa ? px * 2 + (s & 1) : px, ty = msaa ? py * 2 + (s >> 1) : py;
            for (uint32_t c = 0; c < 4; ++c)
              image_words_[(size_t{ty} * width + tx) * 4 + c] = words[s * 4 + c][lane];
          }
      }
  }

  void list_primitive(uint32_t d, uint32_t p) {
    const draw::Draw& draw = bin_.draws[d];
    const draw::Primitive& primitive = draw.primitives[p];
    double left = 0, top = 0, right = config_.width, bottom = config_.height;
    if (draw.vertices_per_primitive == 3 && primitive.clipped < 0) {
      std::swap(left, right);
      std::swap(top, bottom);
      for (const uint32_t index : primitive.vertex) {
        if (index >= vertices_[d].size()) continue;
        const SceneVertex& v = vertices_[d][index];
        left = std::min(left, v.x);
        right = std::max(right, v.x);
        top = std::min(top, v.y);
        bottom = std::max(bottom, v.y);
      }
    }
    const auto range = [](double low, double high, uint32_t tile, uint32_t count) {
      const double first = std::clamp(low / tile, 0.0, static_cast<double>(count));
      const double last = std::clamp(high / tile + 1, 0.0, static_cast<double>(count));
      return std::pair{static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
    };
    const auto [first_column, last_column] = range(left, right, config_.tile_width, bin_.tiles_x);
    const auto [first_row, last_row] = range(top, bottom, config_.tile_height, bin_.tiles_y);
    for (uint32_t row = first_row; row < last_row; ++row)
      for (uint32_t column = first_column; column < last_column; ++column)
        bin_.tiles[row * bin_.tiles_x + column].push_back({d, p});
  }

  TestJob test_;
  CountingControl control_;
  qpu::ProgramCache programs_;
  tlb::Config config_;
  draw::BinResult bin_;
  draw::ShaderRecord* record_ = nullptr;
  std::vector<std::vector<SceneVertex>> vertices_;  // of each draw
  std::vector<uint32_t> image_words_;
  std::unique_ptr<PreparedDraws> draws_;
  std::unique_ptr<TileRenderer> renderer_;
};

}  // namespace v3d::pse
