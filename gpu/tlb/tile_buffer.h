/// The tile buffer has colour, depth and stencil of one tile, its loads and stores, the tests and blending.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/draw/state.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::vc4 {
class Tlb;
}

namespace v3d::tlb {

inline constexpr int kMaxRenderTargets = 8;

/// Internal type of a render target (cle-and-tiles.md 1.6), without clamp.
enum class ColorType : uint8_t { k8I, k8Ui, k8, k16I, k16Ui, k16F, k32I, k32Ui, k32F };
enum class Clamp : uint8_t { kNone, kNorm, kPos, kInt, kPq, kHlg };
enum class DepthType : uint8_t { k32F, k24, k16 };

struct RenderTarget {
  bool used = false;
  ColorType type = ColorType::k8;
  Clamp clamp = Clamp::kNone;
  uint8_t bpp = 0;                  ///< 0 = 32, 1 = 64, 2 = 128 bits per sample
  std::array<uint32_t, 4> clear{};  ///< raw TLB words
};

/// From packet 121 in all its forms.
struct Config {
  uint32_t width = 0, height = 0;  ///< frame, pixels
  uint32_t tile_width = 64, tile_height = 64;
  bool multisample = false;
  uint8_t num_render_targets = 1;
  std::array<RenderTarget, kMaxRenderTargets> targets;
  DepthType depth_type = DepthType::k32F;
  float clear_z = 1.0f;
  uint8_t clear_stencil = 0;
  bool auto_clear_zs = true;  ///< Z/S := clear values at the start of every tile (7.1 always)
};

/// Packets 29 and 30.
struct LoadStore {
  uint8_t buffer = 8;          ///< 0..7 RT, 8 none, 9 Z, 10 stencil, 11 both
  uint8_t memory_format = 0;   ///< tmu::Tiling
  bool flip_y = false;         ///< row 0 of the frame is the last one of an image of `height` pixel rows
  uint16_t height = 0;         ///< for flip_y alone
  uint8_t dither = 0;          ///< stores: bit 0 red, green and blue, bit 1 alpha
  uint8_t decimate = 0;        ///< 0 sample 0, 1 average, 3 all samples
  uint8_t format = 0;          ///< image format of cle-and-tiles.md 6.1
  bool clear_after = false;    ///< stores
  bool force_alpha_1 = false;  ///< loads
  bool channel_reverse = false, rb_swap = false;
  uint32_t stride_or_height = 0;
  GpuAddr address = 0;
  // Of VideoCore IV (vc4-graphics.md 4):
  bool cuts = false;  ///< stores: fields narrower than channels are their upper bits, not rounded ones
  /// All samples of all pixels of the tile, also of those outside the frame, in 16 KiB; those of the tile in
  /// row r and column c lie at address + 16 KiB (r times the tiles in a row of the frame + c). Of the others
  /// only buffer and address count.
  bool raw_samples = false;
};
inline constexpr uint32_t kRawTileBytes = 16384;

/// Sixteen pixels on their way through the fragment stage: four quads of one draw, primitives may differ.
/// All quads with coverage lie in the current tile. Those at one position have no sample in common.
struct FragmentBatch {
  Lanes x, y;      ///< absolute pixels
  Lanes coverage;  ///< samples still alive, bits 0..3; bit 0 only in single-sampled frames
  LanesF z[4];     ///< depth after offset and clamp, per sample; [0] only in single-sampled frames
  LaneMask back_facing = 0;
  bool is_block = false;  ///< the quads are two above two: the 4x4 pixels at (x[0], y[0])
  bool again = false;     ///< some of the quads lie at one position
};

/// Tile-local storage and everything that touches it. One object per worker.
class TileBuffer {
 public:
  explicit TileBuffer(Memory memory);
  ~TileBuffer();

  /// Sets types and sizes; contents become the clear values.
  /// @return  false, with a message in *error naming the field, for a frame above 65536 pixels, tiles that
  /// are
  ///          not 8, 16, 32 or 64 pixels, or values outside the enums; then the old configuration stays.
  bool configure(const Config& config, std::string* error = nullptr);
  /// Selects the tile at pixel (column * tile_width, row * tile_height).
  void begin_tile(uint32_t column, uint32_t row);
  /// Colour (and on 4.2 Z/S) := clear values.
  void clear_colors();
  void clear_depth_stencil();
  /// Contents from another buffer of the same configuration.
  void copy_from(const TileBuffer& other);

  const Config& config() const;
  /// The first pixel of the tile, and how many of its pixels lie in the frame.
  struct Place {
    uint32_t x, y, width, height;
  };
  Place place() const;
  /// What a pixel of the tile holds, of one sample. @param x, y  absolute
  struct Sample {
    uint32_t depth = 0, stencil = 0;                                  ///< as they are stored
    std::array<std::array<uint32_t, 4>, kMaxRenderTargets> colors{};  ///< words, of targets that are used
  };
  Sample sample(uint32_t x, uint32_t y, uint32_t number);

  /// Limited to the frame. What is not implemented, in the packet or in a draw since configure(): false, with
  /// a message in *error naming it.
  bool load(const LoadStore& packet, std::string* error);
  bool store(const LoadStore& packet, std::string* error);

  /// The port for one draw's fragment programs: blending, masks, late tests, reads. It is the same object
  /// every time; state and batch are read at each access until the next call or configure().
  /// @param late_test  the program's Z write performs the tests
  qpu::TlbPort& fragment_port(const draw::DrawState& state, FragmentBatch& batch, bool late_test);

  /// The same for a thread of VideoCore IV that is about to start.
  qpu::vc4::Tlb& thread_port(const draw::DrawState& state, FragmentBatch& batch);

  /// The pixels of render target 0 if it is the only one, and programs of the draw of fragment_port() replace
  /// them as rgba8: without samples, blending or masks. Quads follow row by row, each four words. Else null.
  uint32_t* replaced_pixels();

  /// Depth bounds, stencil and depth tests, with updates, of the coverage of the draw's batch: failing
  /// samples leave it. Adds the surviving samples to the occlusion count of the draw.
  void test();
  /// Whether test_block() does what test() does where the batch is a block.
  bool tests_blocks() const;
  /// @return  the pixels that pass
  LaneMask test_block();
  /// Whether the tests of the draw, early or late, look at the depths of its batch.
  bool tests_depth() const;
  /// The tests and the render target of the draw of fragment_port(), as a function for whole blocks has them.
  /// Where it has no such tests, but tests_depth() holds, test() comes before it.
  /// @param constants  of blending
  /// @return  null, or what no such function has
  const char* describe_blocks(qpu::BlockKey& key, std::array<float, qpu::kBlendConstants>& constants);
  /// Such a function is about to run: sets what it needs of the tile.
  void begin_blocks(qpu::BlockRun& run);
  /// Samples that passed tests of the draw elsewhere.
  void add_passed(uint64_t samples);

  /// Counts what the programs of the draw did without its port, and clears that.
  void count(qpu::TlbBlock& done);

  /// Samples counted since the last call, for the draw's occlusion counter.
  uint64_t take_occlusion_count();

  perf::Counts& counts();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v3d::tlb
