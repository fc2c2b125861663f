/// A MemoryPayer is charged for host memory that its input makes grow.
#pragma once

#include <cstdint>

namespace v3d {

/// Thread safe.
class MemoryPayer {
 public:
  MemoryPayer() = default;
  virtual ~MemoryPayer() = default;
  MemoryPayer(const MemoryPayer&) = delete;
  MemoryPayer& operator=(const MemoryPayer&) = delete;

  /// False, and nothing has changed: there is no more for it.
  [[nodiscard]] virtual bool take_memory(uint64_t bytes) = 0;
  /// Of what it took.
  virtual void return_memory(uint64_t bytes) = 0;
};

}  // namespace v3d
