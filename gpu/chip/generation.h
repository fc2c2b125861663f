/// A Generation is all chips that have their packets, instructions, descriptors and registers in common.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace v3d::chip {

/// Whoever has to know it decides in a switch without a default, so that a new value does not compile until
/// each of them has decided.
enum class Generation : uint8_t { k42, k71 };

/// @param version  of a profile, and of everything that is made for one: 42 or 71
constexpr Generation generation(int version) {
  switch (version) {
    case 42:
      return Generation::k42;
    case 71:
      return Generation::k71;
    default:
      std::abort();  // no profile has it
  }
}

/// Sets of generations, as rows of tables have them.
using Generations = uint8_t;
constexpr Generations set_of(Generation generation) {
  return static_cast<Generations>(1u << static_cast<unsigned>(generation));
}
inline constexpr Generations k42 = set_of(Generation::k42), k71 = set_of(Generation::k71), kBoth = k42 | k71;
constexpr Generations version_bit(int version) { return set_of(generation(version)); }

/// After a switch that has a case for every value.
[[noreturn]] inline void no_such_generation() { std::abort(); }

}  // namespace v3d::chip
