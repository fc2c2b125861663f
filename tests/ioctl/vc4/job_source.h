/// A JobSource is what a client brings in a submit, for tests that change a part of it.
#pragma once

#include <cstdint>
#include <vector>

#include "ioctl/vc4/binning.h"

namespace v3d::ioctl::vc4::test {

class Bytes : public std::vector<uint8_t> {
 public:
  using std::vector<uint8_t>::vector;
  Bytes& u8(uint32_t value) {
    push_back(static_cast<uint8_t>(value));
    return *this;
  }
  Bytes& u32(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) u8(value >> shift & 0xff);
    return *this;
  }
  Bytes& zeros(size_t count) {
    resize(size() + count);
    return *this;
  }
  Bytes& append(const Bytes& more) {
    insert(end(), more.begin(), more.end());
    return *this;
  }
};

inline Bytes binning_mode(uint32_t tiles_x, uint32_t tiles_y, uint32_t flags = 0) {
  return Bytes().u8(112).zeros(12).u8(tiles_x).u8(tiles_y).u8(flags);
}
inline Bytes start(uint32_t tiles_x = 2, uint32_t tiles_y = 2) {
  return binning_mode(tiles_x, tiles_y).u8(6);
}
inline Bytes shader_state(uint32_t bits) { return Bytes().u8(64).u32(bits); }
inline Bytes draw_arrays(uint32_t count, uint32_t first) {
  return Bytes().u8(33).u8(4).u32(count).u32(first);
}
/// @param type  0: of one byte, 1: of two
inline Bytes draw_indices(uint32_t type, uint32_t count, uint32_t offset, uint32_t max_index) {
  return Bytes().u8(32).u8(type << 4 | 4).u32(count).u32(offset).u32(max_index);
}
inline Bytes gem_handles(uint32_t index) { return Bytes().u8(254).u32(index).u32(0); }
inline Bytes finish() { return Bytes().u8(7).u8(4); }

inline Bytes list(const Bytes& middle) { return start().append(middle).append(finish()); }

/// A record with its BOs before it.
struct Record {
  uint32_t fragment = 0, vertex = 0, coordinate = 0;
  uint32_t flags = 1;  ///< the fragment shader has one thread
  uint32_t code_offset = 0;
  struct Attribute {
    uint32_t bo, offset, bytes, stride;
  };
  std::vector<Attribute> attributes;
  bool extended = false;

  Bytes bytes() const {
    Bytes bytes;
    bytes.u32(fragment).u32(vertex).u32(coordinate);
    for (const Attribute& a : attributes) bytes.u32(a.bo);
    bytes.u8(flags).zeros(3).u32(code_offset).u32(0xdddddddd);
    for (int stage = 0; stage < 2; ++stage) bytes.zeros(4).u32(0).u32(0xdddddddd);
    for (const Attribute& a : attributes) bytes.u32(a.offset).u8(a.bytes - 1).u8(a.stride & 0xff).u8(0).u8(0);
    if (extended) {
      bytes.zeros(100 - 36 - 8 * attributes.size());
      for (const Attribute& a : attributes) bytes.u32(a.stride);
    }
    return bytes;
  }
  uint32_t bits() const { return static_cast<uint32_t>(attributes.size() & 7) | (extended ? 8 : 0); }
};

}  // namespace v3d::ioctl::vc4::test
