#include "gpu/tmu/lookup/unsupported.h"

#include <atomic>

#include "gpu/base/log.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

void report_unsupported_format(chip::Generation generation, TextureType type) {
  static chip::PerGeneration<std::atomic<bool>[kTextureTypes]> reported;
  const auto number = static_cast<uint32_t>(type);
  if (!reported[generation][number % kTextureTypes].exchange(true))
    log_error("TMU: texture type %u (%s) is not implemented; lookups return 0", number,
              format_name(generation, type));
}

void report_unsupported(const char* name) {
  static std::atomic<const char*> reported[32];
  for (auto& slot : reported) {
    const char* expected = nullptr;
    if (slot.compare_exchange_strong(expected, name)) {
      log_error("TMU: %s is not implemented", name);
      return;
    }
    if (expected == name) return;
  }
}

}  // namespace v3d::tmu
