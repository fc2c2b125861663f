#include "gpu/pse/block_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/base/qpu_place.h"
#include "gpu/pse/varyings.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/qpu/run/program.h"

namespace v3d::pse {
namespace {

constexpr uint32_t kMostComponents = 64;

}  // namespace

bool BlockFunctions::begin_draw(const PreparedDraw& draw, tlb::TileBuffer& tile, int tile_x, int tile_y,
                                qpu::Thread& thread) {
  code_ = nullptr;
  if (job_.is_seen() || g_left_out != 0) return false;
  key_ = qpu::BlockKey{.lookups = std::move(key_.lookups), .known = std::move(key_.known)};
  if (const char* const other = describe(draw, tile, key_); other != nullptr) {
    if (std::exchange(said_, other) != other)
      log_debug(Debug::kJit,
                "jit: no function for blocks of fragments of a draw with the program at 0x%08x: %s",
                draw.record().fs.code, other);
    return false;
  }
  const bool final_section = draw.record().fs.final_section;
  const qpu::BlockLookups* const lookups = draw.program->block_lookups(job_.memory, final_section);
  if (lookups == nullptr) return false;
  if (lookups->has_scratch && job_.compares_memory) return false;
  tile_ = &tile;
  draw_ = &draw;
  thread_ = &thread;
  describe_lookups(*lookups);
  read_known(*lookups);
  code_ = draw.program->blocks(job_.memory, final_section, key_);
  if (code_ == nullptr || !has_known_configuration()) return false;
  if (code_->takes_long() && is_sparse(*draw.program)) return false;
  quads_of_row_ = tile.config().tile_width / 2;
  has_tile_ = has_uniforms_ = false;
  run_.tile_x = tile_x;
  run_.tile_y = tile_y;
  run_.uniforms = uniforms_.data();
  constexpr GpuAddr kMiddle = 0x80000000;
  run_.middle_of_memory = job_.memory.host(kMiddle);
  run_.fault_cost = &t_fault_cost;
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
  Filling& filling = filling_of(*draw_->program);
  filling.passed += passed;
  filling.shaded += run_.shaded;
  if (!takes_tested_) tile_->add_passed(passed);
  const uint64_t instructions = std::exchange(run_.shaded, 0) * code_->instructions();
  draw_->program->count(*thread_, {.compiled = instructions});
  return instructions;
}

BlockFunctions::Filling& BlockFunctions::filling_of(const qpu::Program& program) {
  Filling& filling = fillings_[program.entry() / qpu::Chunk::kBytes % fillings_.size()];
  if (filling.program != &program) filling = {.program = &program};
  return filling;
}

/// Functions take as long for one pixel of a block as for all.
bool BlockFunctions::is_sparse(const qpu::Program& program) {
  constexpr uint64_t kEnough = 128, kPixelsOfBlock = 3;
  const Filling& filling = filling_of(program);
  return filling.shaded >= kEnough && filling.passed < filling.shaded * kPixelsOfBlock;
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
  // Zeros would have the signs of pixels' places.
  run_.has_flat_w =
      setup.r.step_x == 0 && setup.r.step_y == 0 && setup.r.value != 0 && std::isfinite(run_.scale);
  if (run_.has_flat_w) run_.flat_w = 1.0f / static_cast<float>(setup.r.value);
  run_.coefficients = &setup.coefficients;
  run_.back_facing = setup.back_facing ? kAllLanes : 0;
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
  key_.lookups.empty() ? code_->function()(&run_) : run_looking_up();
  const uint64_t shaded = run_.shaded - before;
  host.ran(shaded);
  host.executed(shaded * code_->instructions());
}

/// Block by block where there is no memory, as long as the job goes on.
void BlockFunctions::run_looking_up() {
  const qpu::ProgramScope scope = in_program();
  while (run_.blocks != run_.end) {
    code_->function()(&run_);
    if (t_fault_cost != 0 && !meter_.charge(0)) run_.blocks = run_.end;
  }
}

void BlockFunctions::prepare(qpu::BlockRun* run) {
  auto& self = *static_cast<BlockFunctions*>(run->owner);
  if (!self.has_uniforms_) self.read_uniforms();
  PrimitiveSetup& setup = *self.setup_;
  if (!setup.varyings_ready) set_up_varyings(*self.draw_, setup.source, setup.coefficients);
  setup.varyings_ready = run->is_prepared = true;
}

/// Until that ends the draw's program is who finds that there is no memory.
qpu::ProgramScope BlockFunctions::in_program() const {
  thread_->pc = draw_->record().fs.code;
  return {"fragment", thread_->pc, *thread_};
}

uint32_t BlockFunctions::uniform(uint32_t number) const {
  return job_.memory.load<uint32_t>(draw_->record().fs.uniforms + number * 4);
}

bool BlockFunctions::has_known_configuration() const {
  const std::optional<uint32_t> number = code_->depth_configuration();
  if (!number) return true;
  const qpu::ProgramScope scope = in_program();
  return qpu::is_depth_configuration(uniform(*number));
}

/// What the lookups of the draw are: the words that configure them are read when it begins.
void BlockFunctions::describe_lookups(const qpu::BlockLookups& found) {
  if (found.lookups.empty()) return key_.lookups.clear();
  const qpu::ProgramScope scope = in_program();
  textures_.describe(
      found, *thread_->tmu, [this](uint32_t n) { return uniform(n); }, key_.lookups);
  run_.textures = textures_.data();
}

void BlockFunctions::read_known(const qpu::BlockLookups& found) {
  if (found.known.empty()) return key_.known.clear();
  const qpu::ProgramScope scope = in_program();
  qpu::read_known(
      found, [this](uint32_t n) { return uniform(n); }, key_.known);
}

/// They stay as the first primitive of the draw in the tile found them.
void BlockFunctions::read_uniforms() {
  const qpu::ProgramScope scope = in_program();
  for (uint32_t n = 0; n < code_->uniforms(); ++n) uniforms_[n] = uniform(n);
  for (size_t c = 0; c < constants_.size(); ++c)
    uniforms_[code_->uniforms() + c] = std::bit_cast<uint32_t>(constants_[c]);
  const std::vector<qpu::IndirectWord>& indirect = code_->indirect();
  for (size_t n = 0; n < indirect.size(); ++n)
    uniforms_[qpu::kFirstIndirect + n] =
        job_.memory.load<uint32_t>(indirect[n].address(uniforms_[indirect[n].uniform]));
  has_uniforms_ = true;
}

}  // namespace v3d::pse
