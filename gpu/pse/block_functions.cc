#include "gpu/pse/block_functions.h"

#include <bit>
#include <optional>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/pse/varyings.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_scope.h"

namespace v3d::pse {
namespace {

constexpr uint32_t kMostComponents = 64;
constexpr uint32_t kQuadBytes = 16;

}  // namespace

bool BlockFunctions::begin_draw(const PreparedDraw& draw, tlb::TileBuffer& tile, int tile_x, int tile_y,
                                qpu::Thread& thread) {
  code_ = nullptr;
  qpu::BlockKey key;
  if (job_.is_seen() || g_left_out != 0) return false;
  if (const char* const other = describe(draw, tile, key); other != nullptr) {
    if (std::exchange(said_, other) != other)
      log_debug(Debug::kJit,
                "jit: no function for blocks of fragments of a draw with the program at 0x%08x: %s",
                draw.record().fs.code, other);
    return false;
  }
  code_ = draw.program->blocks(job_.memory, draw.record().fs.final_section, key);
  if (code_ == nullptr || code_->uniforms() > kMostUniforms) return false;
  draw_ = &draw;
  tile_ = &tile;
  thread_ = &thread;
  if (!has_known_configuration()) return false;
  quads_of_row_ = tile.config().tile_width / 2;
  has_tile_ = has_uniforms_ = false;
  run_.tile_x = tile_x;
  run_.tile_y = tile_y;
  run_.uniforms = uniforms_.data();
  run_.prepare = prepare;
  run_.owner = this;
  run_.passed = run_.shaded = 0;
  return true;
}

const char* BlockFunctions::describe(const PreparedDraw& draw, tlb::TileBuffer& tile, qpu::BlockKey& key) {
  const uint32_t components = draw.num_components();
  if (components > kMostComponents) return "many varyings";
  key.components = static_cast<uint8_t>(components);
  for (uint32_t i = 0; i < components; ++i) key.flat |= uint64_t{draw.is_flat[i]} << i;
  const char* const other = tile.describe_blocks(key, constants_);
  takes_tested_ = tile.tests_depth() && key.depth == qpu::BlockKey::Depth::kNone;
  return other;
}

uint64_t BlockFunctions::end_draw() {
  flush();
  const uint64_t passed = std::exchange(run_.passed, 0);
  if (!takes_tested_) tile_->add_passed(passed);
  const uint64_t instructions = std::exchange(run_.shaded, 0) * code_->instructions();
  draw_->program->count(*thread_, {.compiled = instructions});
  return instructions;
}

void BlockFunctions::set_primitive(PrimitiveSetup& setup) {
  flush();
  setup_ = &setup;
  const auto plane = [](const LinearPlane& p) { return qpu::BlockPlane{p.value, p.step_x, p.step_y}; };
  run_.anchor_x = setup.source.spread.anchor_x;
  run_.anchor_y = setup.source.spread.anchor_y;
  run_.scale = setup.source.spread.scale;
  run_.z = plane(setup.z);
  run_.r = plane(setup.r);
  run_.coefficients = &setup.coefficients;
  run_.back_facing = setup.back_facing ? kAllLanes : 0;
}

void BlockFunctions::add(PrimitiveSetup& setup, int x, int y, LaneMask pixels) {
  if (count_ == 0 || setup_ != &setup) set_primitive(setup);
  const uint32_t quad = static_cast<uint32_t>(y >> 1) * quads_of_row_ + static_cast<uint32_t>(x >> 1);
  blocks_[count_++] = {x, y, quad * kQuadBytes, pixels};
  if (count_ == kMostBlocks) run();
}

void BlockFunctions::run() {
  const draw::ShaderCode& fs = draw_->record().fs;
  host_time::ProgramScope host(host_time::Block::kFragmentPrograms, "fragment", fs.code);
  if (!has_tile_) tile_->begin_blocks(run_);
  has_tile_ = true;
  run_.is_prepared = has_uniforms_ && setup_->varyings_ready;
  run_.blocks = blocks_.data();
  run_.end = run_.blocks + std::exchange(count_, 0);
  const uint64_t before = run_.shaded;
  code_->function()(&run_);
  const uint64_t shaded = run_.shaded - before;
  host.ran(shaded);
  host.executed(shaded * code_->instructions());
}

void BlockFunctions::prepare(qpu::BlockRun* run) {
  auto& self = *static_cast<BlockFunctions*>(run->owner);
  if (!self.has_uniforms_) self.read_uniforms();
  PrimitiveSetup& setup = *self.setup_;
  if (!setup.varyings_ready) set_up_varyings(*self.draw_, setup.source, setup.coefficients);
  setup.varyings_ready = run->is_prepared = true;
}

bool BlockFunctions::has_known_configuration() const {
  const std::optional<uint32_t> number = code_->depth_configuration();
  if (!number) return true;
  const draw::ShaderCode& fs = draw_->record().fs;
  thread_->pc = fs.code;
  const qpu::ProgramScope scope("fragment", fs.code, *thread_);
  return qpu::is_depth_configuration(job_.memory.load<uint32_t>(fs.uniforms + *number * 4));
}

/// They stay as the first primitive of the draw in the tile found them.
void BlockFunctions::read_uniforms() {
  const draw::ShaderCode& fs = draw_->record().fs;
  thread_->pc = fs.code;
  const qpu::ProgramScope scope("fragment", fs.code, *thread_);
  for (uint32_t n = 0; n < code_->uniforms(); ++n)
    uniforms_[n] = job_.memory.load<uint32_t>(fs.uniforms + n * 4);
  for (size_t c = 0; c < constants_.size(); ++c)
    uniforms_[code_->uniforms() + c] = std::bit_cast<uint32_t>(constants_[c]);
  has_uniforms_ = true;
}

}  // namespace v3d::pse
