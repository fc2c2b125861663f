/// A Generation is all chips that have their packets, instructions, descriptors and registers in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>

namespace v3d::chip {

/// Whoever has to know it decides in a switch without a default, so that a new value does not compile until
/// each of them has decided. k21 is VideoCore IV, of the Raspberry Pi 0 to 3.
enum class Generation : uint8_t { k21, k42, k71 };
inline constexpr Generation kGenerations[] = {Generation::k21, Generation::k42, Generation::k71};

/// Where nobody says which: that of default_profile().
inline constexpr Generation kDefaultGeneration = Generation::k71;

/// After a switch that has a case for every value.
[[noreturn]] inline void no_such_generation() { std::abort(); }

/// Ten times the version that people and the hardware's registers know it by: 42 of 4.2.
constexpr int version_number(Generation generation) {
  switch (generation) {
    case Generation::k21:
      return 21;
    case Generation::k42:
      return 42;
    case Generation::k71:
      return 71;
  }
  no_such_generation();
}

/// As people write it.
constexpr const char* version_text(Generation generation) {
  switch (generation) {
    case Generation::k21:
      return "2.1";
    case Generation::k42:
      return "4.2";
    case Generation::k71:
      return "7.1";
  }
  no_such_generation();
}

/// Of a number that came from outside; nothing when no generation has it.
constexpr std::optional<Generation> generation_of_version(int number) {
  for (const Generation generation : kGenerations)
    if (version_number(generation) == number) return generation;
  return {};
}

/// Sets of generations, as rows of tables have them.
using Generations = uint8_t;
constexpr Generations set_of(Generation generation) {
  return static_cast<Generations>(1u << static_cast<unsigned>(generation));
}
inline constexpr Generations k21 = set_of(Generation::k21), k42 = set_of(Generation::k42),
                             k71 = set_of(Generation::k71);
/// Those that have most rows in common. What 2.1 has stands in tables of its own.
inline constexpr Generations kBoth = k42 | k71;

/// A value for each generation.
template <typename T>
class PerGeneration {
 public:
  T& operator[](Generation generation) { return values_[static_cast<size_t>(generation)]; }
  const T& operator[](Generation generation) const { return values_[static_cast<size_t>(generation)]; }

 private:
  T values_[std::size(kGenerations)] = {};
};

}  // namespace v3d::chip
