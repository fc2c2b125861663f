#include "gpu/csd/configuration.h"

#include "gpu/chip/profile.h"

namespace v3d::csd {
namespace {

uint32_t bits(uint32_t word, int high, int low) { return (word >> low) & ((2u << (high - low)) - 1); }
uint32_t zero_means(uint32_t field, uint32_t value) { return field == 0 ? value : field; }

}  // namespace

bool Configuration::is_regular() const {
  const auto batches_of = [this](uint64_t workgroups) { return (workgroups * wg_size + 15) / 16; };
  if (batches_of(wgs_per_sg) != batches_per_sg) return false;
  if (wgs_per_sg == 1) return true;
  const uint64_t workgroups = uint64_t{wg_count[0]} * wg_count[1] * wg_count[2];
  const uint64_t in_grid = workgroups / wgs_per_sg * batches_per_sg + batches_of(workgroups % wgs_per_sg);
  return wg_size % 16 != 0 && batches <= in_grid;
}

Configuration decode(const std::array<uint32_t, 7>& cfg, const chip::Profile& profile) {
  Configuration c;
  for (size_t axis = 0; axis < 3; ++axis) {
    c.wg_count[axis] = zero_means(bits(cfg[axis], 31, 16), 65536);
    c.wg_offset[axis] = bits(cfg[axis], 15, 0);
  }
  c.wg_size = zero_means(bits(cfg[3], 7, 0), 256);
  c.wgs_per_sg = zero_means(bits(cfg[3], 11, 8), 16);
  c.batches_per_sg = bits(cfg[3], 19, 12) + 1;
  c.batches = uint64_t{cfg[4]} + (profile.csd_batches_exact() ? 0 : 1);
  c.code = cfg[5] & ~7u;
  c.single_segment = (cfg[5] & 2) != 0;
  c.four_threads = (cfg[5] & 1) != 0;
  c.uniforms = cfg[6] & ~3u;
  return c;
}

}  // namespace v3d::csd
