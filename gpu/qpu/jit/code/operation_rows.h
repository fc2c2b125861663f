/// Operations with code of their own stand in tables: rows with a member `op`.
#pragma once

#include <algorithm>
#include <iterator>

#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu::jit {

template <typename Row, size_t n>
constexpr bool has_one_row_each(const Row (&rows)[n]) {
  for (const Row& a : rows)
    if (std::count_if(std::begin(rows), std::end(rows), [&](const Row& b) { return a.op == b.op; }) != 1)
      return false;
  return true;
}

/// nullptr if there is none.
template <typename Row, size_t n>
const Row* row_of(const Row (&rows)[n], Op op) {
  const Row* const found =
      std::find_if(std::begin(rows), std::end(rows), [op](const Row& row) { return row.op == op; });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace v3d::qpu::jit
