#include "tests/qpu/fake_tmu.h"

namespace v3d::qpu {

FakeTmu& fake_tmu() {
  static thread_local FakeTmu fake;
  return fake;
}

namespace {

int answer(Lanes* out) {
  FakeTmu& fake = fake_tmu();
  for (int i = 0; i < fake.words; ++i) {
    out[i] = kLaneIndex + fake.next_value;
    fake.next_value += 0x100;
    fake.order.push_back(out[i]);
  }
  return fake.words;
}

}  // namespace
}  // namespace v3d::qpu

namespace v3d::tmu {

struct Unit::State {};
Unit::Unit(Memory, chip::Generation) {}
Unit::~Unit() = default;
Unit::Unit(Unit&&) noexcept = default;
Unit& Unit::operator=(Unit&&) noexcept = default;
void Unit::begin_job() {}

int Unit::texture(const TextureLookup& lookup, Lanes* out) {
  qpu::fake_tmu().textures.push_back(lookup);
  return qpu::answer(out);
}

int Unit::general(const GeneralLookup& lookup, Lanes* out) {
  qpu::fake_tmu().generals.push_back(lookup);
  return lookup.num_data ? 0 : qpu::answer(out);
}

}  // namespace v3d::tmu
