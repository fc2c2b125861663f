#include "gpu/tmu/lookup/unit.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/general.h"
#include "gpu/tmu/lookup/packed.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {
namespace {

void trace(chip::Generation generation, const Plan& plan) {
  const TextureState& texture = plan.texture;
  log_debug(Debug::kTmu, "TMU: P0 %#x P1 %#x P2 %#x launcher %d: %s %ux%ux%u levels %d..%d at %#x, %d words",
            plan.key.p0, plan.key.p1, plan.key.p2, plan.key.shape >> 16,
            format_name(generation, texture.type), texture.width, texture.height, texture.depth,
            texture.base_level, texture.max_level, texture.base, plan.num_words);
}

std::atomic<uint64_t> g_not_generated[kNumNotGenerated];

/// Of a general access, and of making a plan, for a WorkMeter.
constexpr uint32_t kGeneralCost = 5, kPlanCost = 200;

}  // namespace

struct Unit::State {
  static constexpr uint32_t kPlans = 128;

  uint64_t job = 1;
  TexelMemory texels;
  chip::Generation generation;
  std::unique_ptr<PlanSlot[]> slots;              // from the first texture on: most compute jobs have none
  PlanSlot* last = nullptr;                       // of the last lookup
  uint64_t not_generated[kNumNotGenerated] = {};  // of this job
  std::unique_ptr<PackedPlans> packed_plans;

  State(Memory memory, chip::Generation of_generation) : generation(of_generation) { texels.memory = memory; }

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { count(); }

  void count() {
    for (size_t n = 1; n < static_cast<size_t>(NotGenerated::kLeftOut); ++n)  // without kNothing
      if (const uint64_t more = std::exchange(not_generated[n], 0))
        g_not_generated[n].fetch_add(more, std::memory_order_relaxed);
  }

  const Plan& plan(const TextureLookup& lookup) {
    const Plan::Key key{
        lookup.p0, lookup.p1, lookup.p2,
        static_cast<uint32_t>(lookup.launcher) << 16 | uint32_t{lookup.num_data} << 8 | lookup.written};
    const uint32_t mixed =
        (key.p0 >> 4) * 0x9e3779b1u + (key.p1 >> 3) * 0x85ebca6bu + (key.p2 ^ key.shape) * 0xc2b2ae35u;
    if (!slots) slots = std::make_unique_for_overwrite<PlanSlot[]>(kPlans);
    PlanSlot& slot = slots[mixed >> 25];
    static_assert(kPlans == 1u << (32 - 25));
    last = &slot;
    if (slot.job != job || !(slot.plan.key == key)) {
      slot.job = job;
      texels.meter.charge(kPlanCost);
      make_plan(key, lookup, texels.memory, generation, slot.plan);
      trace(generation, slot.plan);
    }
    return slot.plan;
  }
};

Unit::Unit(Memory memory, chip::Generation generation)
    : state_(std::make_unique<State>(memory, generation)) {}
Unit::~Unit() = default;
Unit::Unit(Unit&&) noexcept = default;
Unit& Unit::operator=(Unit&&) noexcept = default;

void Unit::set_job(const JobContext* job) { state_->texels.meter = WorkMeter(job); }

void Unit::begin_job() {
  ++state_->job;
  state_->last = nullptr;
  state_->texels.blocks.clear();
  state_->count();
}

void Unit::set_footprint(Footprint* footprint) { state_->texels.footprint = footprint; }

int Unit::texture(const TextureLookup& lookup, Lanes* out) {
  const host_time::Scope host(host_time::Block::kLookups);
  const Plan& plan = state_->plan(lookup);
  const LaneMask active = lookup.exec & (plan.per_pixel ? lookup.live : whole_quads(lookup.live));
  ++state_->not_generated[static_cast<size_t>(plan.kind.none)];
  if (state_->texels.footprint) state_->texels.footprint->clear();
  if (state_->texels.meter.charge(plan.cost)) [[likely]]
    plan.run(plan, state_->texels, lookup, active, out);
  else
    run_nothing(plan, state_->texels, lookup, active, out);
  return plan.num_words;
}

const Plan* Unit::plan_with_code(const TextureLookup& lookup) {
  const Plan& plan = state_->plan(lookup);
  return plan.code_begin != nullptr ? &plan : nullptr;
}

const LookupKind* Unit::kind_without_code() const {
  const PlanSlot* const last = state_->last;
  const bool wants_code =
      last != nullptr && last->plan.code_begin == nullptr && last->plan.kind.none == NotGenerated::kNothing;
  return wants_code ? &last->plan.kind : nullptr;
}

void Unit::set_code(std::shared_ptr<const LookupCode> code, uint32_t cost) {
  state_->texels.meter.charge(cost);
  Plan& plan = state_->last->plan;
  if (!code) plan.kind.none = NotGenerated::kNoMemory;
  plan.code_begin = code ? code->begin() : nullptr;
  plan.code = std::move(code);
}

LookupKind Unit::describe(const TextureLookup& lookup, TextureData& data) {
  const Plan& plan = state_->plan(lookup);
  data = plan.data;
  return plan.kind;
}

Lanes Unit::packed(const PackedLookup& lookup) {
  const host_time::Scope host(host_time::Block::kLookups);
  State& state = *state_;
  const LaneMask active = whole_quads(lookup.live);
  if (state.texels.footprint) state.texels.footprint->clear();
  if (lookup.written == 0) {
    const Lanes address = lookup.s & ~3u;
    if (state.texels.footprint) state.texels.footprint->add(address, active, sizeof(uint32_t));
    return is_left_out(Stage::kLookups) ? Lanes{} : gather(state.texels.memory, address, active);
  }
  if (!state.packed_plans) state.packed_plans = std::make_unique<PackedPlans>(state.generation);
  const PackedPlan& plan = state.packed_plans->find(lookup);
  if (!state.texels.meter.charge(plan.rules.cost)) [[unlikely]]
    return Lanes{};
  return select(active, plan.run(plan, state.texels, lookup, active), Lanes{});
}

int Unit::general(const GeneralLookup& lookup, Lanes* out) {
  state_->texels.meter.charge(kGeneralCost);
  return general_lookup(state_->texels.memory, lookup_properties(state_->generation).wrap16, lookup, out);
}

std::array<uint64_t, kNumNotGenerated> lookups_not_generated() {
  std::array<uint64_t, kNumNotGenerated> counts{};
  for (size_t n = 0; n < counts.size(); ++n) counts[n] = g_not_generated[n].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace v3d::tmu
