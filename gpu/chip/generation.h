/// A Generation is all chips that have their packets, instructions, descriptors and registers in common.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace v3d::chip {

/// Whoever has to know it decides in a switch without a default, so that a new value does not compile until
/// each of them has decided.
enum class Generation : uint8_t { k42, k71 };
inline constexpr Generation kGenerations[] = {Generation::k42, Generation::k71};

/// Where nobody says which: that of default_profile().
inline constexpr Generation kDefaultGeneration = Generation::k71;

/// After a switch that has a case for every value.
[[noreturn]] inline void no_such_generation() { std::abort(); }

/// Ten times the version that people and the hardware's registers know it by: 42 of 4.2.
constexpr int version_number(Generation generation) {
  switch (generation) {
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
inline constexpr Generations k42 = set_of(Generation::k42), k71 = set_of(Generation::k71), kBoth = k42 | k71;

}  // namespace v3d::chip
