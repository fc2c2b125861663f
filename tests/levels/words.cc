#include <bit>

#include "tests/levels/results.h"

namespace v3d::levels {
namespace {

constexpr uint32_t kSpecial[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000,
    0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00001, 0x7f800001, 0xffa00002, 0x4b000000, 0x4effffff, 0x4f000000, 0xcf000000,
    0xcf000001, 0x4f7fffff, 0x4f800000, 0x33000000, 0x33000001, 0x387fe000, 0x477fefff, 0x477ff000,
    0x7fffffff, 0xffffffff, 0x7c007c00, 0xfc017e03, 0x00010001, 0x03ff0400, 0x3c003bff, 0xbc01bbff,
};
constexpr uint16_t kSpecialHalves[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x3bff,
                                       0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0xfe02, 0x7d03, 0x3555};

template <typename Next>
Lanes sixteen(const Next& next) {
  Lanes v;
  for (int i = 0; i < kLanes; ++i) v[i] = next();
  return v;
}

}  // namespace

uint32_t Words::word() {
  const uint32_t kind = below(4), value = any();
  return kind < 2 ? kSpecial[value % std::size(kSpecial)] : value;
}

uint32_t Words::moderate() {
  if (below(32) == 0) return word();
  return std::bit_cast<uint32_t>((static_cast<float>(any() >> 8) - 0x1p23f) * 0x1p-22f);
}

uint32_t Words::halves() {
  const auto half = [this] {
    const uint32_t kind = below(3), value = any();
    return kind == 0   ? kSpecialHalves[value % std::size(kSpecialHalves)]
           : kind == 1 ? value & 0xffff
                       : value & 0x3fff;
  };
  const uint32_t low = half();
  return low | half() << 16;
}

Lanes Words::words() {
  return sixteen([this] { return word(); });
}
Lanes Words::moderates() {
  return sixteen([this] { return moderate(); });
}
Lanes Words::halves_of_lanes() {
  return sixteen([this] { return halves(); });
}

}  // namespace v3d::levels
