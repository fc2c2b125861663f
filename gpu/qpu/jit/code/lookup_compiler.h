/// A LookupCompiler has code of texture lookups, which compiled programs call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::jit {

/// Thread safe.
class LookupCompiler {
 public:
  virtual ~LookupCompiler() = default;
  struct Made {
    std::shared_ptr<const tmu::LookupCode> code;  ///< null: there will be none, for want of memory
    uint32_t cost = 0;                            ///< in the units of a WorkMeter; 0: it was there
  };
  /// @param kind  may have code. @param owner  whose memory it counts as
  /// @return  empty: another thread makes it
  virtual std::optional<Made> code_of(const tmu::LookupKind& kind, const void* owner) = 0;
};

}  // namespace v3d::qpu::jit
