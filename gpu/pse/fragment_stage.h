/// A FragmentStage takes quads through depth and stencil tests, packs them into batches and gives these
/// payload, varyings and the fragment program (cle-and-tiles.md 5).
///
/// Quads that pass their early tests fill batches in the order of their primitives, of one draw. Two of one
/// position may stand side by side: dEQP-VK's subgroupbroadcast_nonconst_* and subgroupballotfindlsb, which
/// boards pass, draw points beside each other and fail where the second point of each quad goes to a batch
/// whose first lane is then no covered pixel. A sample that is covered again closes the batch, since programs
/// that read the tile buffer (logic operations, blending in shaders) have to find there what the primitive
/// before has written. The chip does pack primitives: its shader records have a bit against that, which Mesa
/// leaves clear. 4x4 pixels of one primitive, with coverage in all four quads, are a batch of their own and
/// pass by quads that wait.
#pragma once

#include <array>
#include <memory>

#include "gpu/base/job_context.h"
#include "gpu/pse/block_functions.h"
#include "gpu/pse/fragment_watch.h"
#include "gpu/pse/geometry.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/pse/primitive_setup.h"
#include "gpu/pse/vc4_fragments.h"
#include "gpu/pse/waiting_quads.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::pse {

class FragmentStage {
 public:
  FragmentStage(const JobContext& job, const tlb::Config& config, uint32_t tidx, perf::Counts& counts);

  void begin_tile(tlb::TileBuffer& tile, int tile_x, int tile_y);
  void begin_draw(const PreparedDraw& draw);
  /// Executes what is left of the draw. False when the job is to stop.
  bool end_draw();

  /// Whether nobody sees batches of the draw: its blocks go to a function.
  bool has_function() const { return has_function_; }

  /// A set-up that no waiting quad refers to; the caller fills it before it adds blocks.
  int free_setup();
  PrimitiveSetup& setup(int index) { return setups_[static_cast<size_t>(index)]; }

  /// Adds the quads with coverage of the 4x4 pixels at absolute (x, y), in the order of kBlockX and kBlockY.
  void add_block(int setup, int x, int y, const Lanes& coverage);
  /// The same of pixels with equal samples.
  void add_block(int setup, int x, int y, LaneMask pixels, uint32_t samples);
  /// The same where every quad has coverage.
  void add_whole_block(int setup, int x, int y, const Lanes& coverage);
  /// The same of one that is covered as a whole.
  void add_covered_block(int setup, int x, int y, const Lanes& coverage) {
    has_function_ ? add_to_function(setup, x, y, kAllLanes) : add_whole_block(setup, x, y, coverage);
  }

 private:
  static constexpr int kSetups = 16;  // more than the quads that can wait
  static_assert(kSetups > 3 * kQuads);

  void begin_program();
  void begin_varyings();
  void add_to_function(int setup, int x, int y, LaneMask pixels) {
    if (functions_.takes_tested() && (pixels = tested_pixels(setup, x, y, pixels)) == 0) return;
    functions_.add(setups_[static_cast<size_t>(setup)], x - tile_x_, y - tile_y_, pixels);
  }
  LaneMask tested_pixels(int setup, int x, int y, LaneMask pixels);

  struct Position;
  template <bool kOne>
  struct Primitives;
  Position block_position(const Primitives<true>& primitives) const;
  template <bool kOne>
  Primitives<kOne> primitives() const;
  template <bool kOne>
  Primitives<kOne> primitives_of(std::array<const PrimitiveSetup*, kOne ? 1 : kQuads> of) const;
  const PrimitiveSetup* ready_setup(int index);

  uint32_t position_in_tile(int x, int y) const;
  uint32_t position_of_block() const { return static_cast<uint32_t>(positions_) & 0xffff; }
  void wait_for_tests(int setup, uint32_t block, FourQuads coverage, uint32_t quads);
  void wait_beside_others(int setup, uint32_t block, FourQuads coverage, uint32_t quads);
  void test_waiting();
  void shade_waiting();
  void fill_block(int setup, uint32_t block, int x, int y, const Lanes& coverage);
  void pass_block(int setup);
  void test_block(int setup);
  void shade_block(const Primitives<true>& primitives, const Position& center);
  void count_batch();
  bool fill_quads(const WaitingQuads& quads);
  template <bool kOne>
  void run_batch();
  void keep_quads(LaneMask alive);
  void shade_before_block();
  template <bool kOne>
  void compute_depth(const Primitives<kOne>& primitives, const Position& center);
  template <bool kOne>
  void shade_quads();
  template <bool kOne>
  void shade(const Primitives<kOne>& primitives, const Position& center);
  template <bool kOne>
  void shade_samples(const Primitives<kOne>& primitives);
  template <bool kOne>
  void shade_pass(const Primitives<kOne>& primitives, const Position& at, const Position& centroid,
                  LanesF offset_x, LanesF offset_y, uint32_t sample);
  void centroid_offsets(LanesF& x, LanesF& y) const;
  template <bool kOne>
  void shade_vc4(const Primitives<kOne>& primitives, const Position& at);
  template <bool kOne>
  void compute_payload(const Primitives<kOne>& primitives, const Position& at, const Position& centroid);
  template <bool kOne>
  void compute_varyings(const Primitives<kOne>& primitives, const Position& at, const Position& centroid);
  void offer_pixels();
  void run_program();
  WatchedBatch watched() const;
  void run_watched_program(uint32_t sample);
  void go_on(qpu::Stop stop);

  const JobContext& job_;
  const bool multisample_;
  const uint32_t tile_width_;
  const uint64_t first_slice_;  // of the budget of a batch
  const qpu::IsaProperties& isa_;
  perf::Counts& counts_;
  tmu::Unit tmu_;
  qpu::Thread thread_;
  std::unique_ptr<Vc4Fragments> vc4_;  // from the first draw with a program of VideoCore IV on
  std::array<qpu::Varying, kComponentRoom + qpu::kVaryingsBehind> varyings_;

  tlb::TileBuffer* tile_ = nullptr;
  int tile_x_ = 0, tile_y_ = 0;
  const PreparedDraw* draw_ = nullptr;
  WaitingQuads untested_;    // in front of the tests
  WaitingQuads tested_;      // in front of the program
  bool tests_depth_ = true;  // of draw_
  /// What its program looks at, of the payload.
  struct {
    bool w, centroid_w, z;
    bool pixel, position, sample, facing;  // as qpu::HostProgram::Inputs
  } reads_{};
  bool passes_blocks_ = false;  // blocks go to the program, one sample at a time, whatever their depths
  bool tests_blocks_ = false;   // they go through tests alone, early ones, one sample at a time
  bool only_counts_ = false;    // early tests, one sample at a time, that pass whatever comes
  BlockFunctions functions_;
  bool has_function_ = false;                      // blocks of draw_ go there, whole or not
  const PrimitiveSetup* flat_words_of_ = nullptr;  // whose c all varyings_ have; may be null
  uint32_t num_smooth_ = 0;                        // components of draw_ that are not flat
  std::array<uint8_t, kComponentRoom> smooth_;
  qpu::Series series_;
  uint64_t instructions_ = 0, batches_ = 0;      // of the draw
  bool needs_position_ = true;                   // for depths, the payload or varyings
  uint32_t* replaced_pixels_ = nullptr;          // as the tile says for draw_
  tlb::FragmentBatch batch_;                     // the one that the port of the draw refers to
  FourQuads positions_ = 0;                      // of its quads in the tile
  int num_quads_ = 0;                            // of it
  std::array<uint8_t, kQuads> setup_of_quad_{};  // of those that it lacks, the first one's
  std::array<PrimitiveSetup, kSetups> setups_;
  FragmentWatch* watch_ = nullptr;  // of draw_; null: nobody watches
  WatchedPort watched_port_;
};

}  // namespace v3d::pse
