/// The program of this folder gathers results: a name and a hash for each kind of result of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gpu/base/lanes.h"

namespace v3d::levels {

/// FNV-1a by words of 32 bits.
class Hash {
 public:
  void add(uint32_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  void add(Lanes v) {
    for (int i = 0; i < kLanes; ++i) add(uint32_t{v[i]});
  }
  void add(const uint32_t* words, size_t count) {
    for (size_t i = 0; i < count; ++i) add(words[i]);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

using Results = std::vector<std::pair<std::string, uint64_t>>;

/// Words among which every kind of float, half and integer is frequent, NaNs of all payloads too.
class Words {
 public:
  explicit Words(uint32_t seed) : random_(seed) {}
  uint32_t any() { return static_cast<uint32_t>(random_()); }
  uint32_t below(uint32_t count) { return any() % count; }
  /// As a float: anything.
  uint32_t word();
  /// As a float: of moderate size, seldom NaN or infinite.
  uint32_t moderate();
  /// Two half floats of any kind.
  uint32_t halves();
  Lanes words();
  Lanes moderates();
  Lanes halves_of_lanes();

 private:
  std::mt19937 random_;
};

void add_operations(Results& results);
void add_programs(Results& results);
void add_textures(Results& results);
void add_tiles(Results& results);
void add_triangles(Results& results);

}  // namespace v3d::levels
