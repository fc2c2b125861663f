/// The predicates say what vcmpps compares (Intel's manual, CMPPS). "Not" counts NaNs in, all else out.
#pragma once

#include <cstdint>

namespace v3d::qpu::jit {

enum Predicate : uint8_t {
  kEqual = 0,
  kLess = 1,
  kLessOrEqual = 2,
  kUnordered = 3,
  kNotLess = 5,
  kNotGreater = 10,
  kAtLeast = 13,
  kGreater = 14,
};

}  // namespace v3d::qpu::jit
