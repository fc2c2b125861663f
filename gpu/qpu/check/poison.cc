#include "gpu/qpu/check/poison.h"

#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu {
namespace {

RegisterSet all_registers(chip::Generation generation) {
  const RegisterSet rf = RegisterSet::of_rf(~uint64_t{0});
  return isa(generation).has_accumulators ? rf | RegisterSet::accumulators() : rf;
}

}  // namespace

RegisterSet payload_of(chip::Generation generation, std::string_view stage) {
  const IsaProperties& p = isa(generation);
  RegisterSet payload;
  if (stage == "fragment")
    for (const Register r : {p.fragment_w, p.fragment_centroid_w, p.fragment_z}) payload.add(r);
  if (stage == "compute")
    for (const Register r : {p.workgroup_xy, p.workgroup_z_index}) payload.add(r);
  return payload;
}

PoisonedThread::PoisonedThread(chip::Generation generation, std::string_view stage, Thread& thread)
    : generation_(generation), thread_(thread), written_(payload_of(generation, stage)) {
  spoil(all_registers(generation) - written_);
  thread_.rtop = splat(kPoison);
}

void PoisonedThread::spoil(RegisterSet registers) {
  registers.for_each([this](Register r) { thread_.at(r) = splat(kPoison); });
}

HazardSet PoisonedThread::before(const HazardFacts& f) {
  spoil(spoiled_);
  spoiled_ = {};
  const RegisterSet unwritten = f.reads - written_;
  written_ |= writes_of(generation_, f);
  if (f.ldvary) written_.add(isa(generation_).implicit);
  if (f.magic_sfu) written_.add(kSfuResult);
  // Mesa hands the tile buffer any register where the hardware has the depth itself, and for colors that a
  // shader leaves undefined. Where such a word matters the picture shows the poison.
  return unwritten.empty() || f.tlb_write ? 0 : bit(Hazard::kUnwritten);
}

void PoisonedThread::after(const HazardFacts& f, HazardSet broken) {
  for (int n = 0; broken != 0; ++n, broken >>= 1) {
    if (!(broken & 1)) continue;
    switch (poison(static_cast<Hazard>(n))) {
      case Poison::kResults:
        spoiled_ |= writes_of(generation_, f);
        break;
      case Poison::kImplicit:
        spoiled_.add(isa(generation_).implicit);
        break;
      case Poison::kWords:
        for (uint32_t i = thread_.pending.fifo_head; i != thread_.pending.fifo_tail; ++i)
          thread_.pending.fifo[i % kTmuFifo] = splat(kPoison);
        break;
      case Poison::kNothing:
      case Poison::kFromStart:
        break;
    }
  }
}

}  // namespace v3d::qpu
