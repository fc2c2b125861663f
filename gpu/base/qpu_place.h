/// Which QPU program this host thread runs, for who finds it in an access that goes wrong.
#pragma once

#include <cstdint>

namespace v3d {

struct QpuPlace {
  const char* stage = nullptr;  ///< a literal; null: none runs
  uint32_t program = 0;         ///< address of its first instruction
};
inline thread_local QpuPlace t_qpu_place;

/// As long as this lives the thread runs that program.
class QpuPlaceScope {
 public:
  QpuPlaceScope(const char* stage, uint32_t program) { t_qpu_place = {stage, program}; }
  ~QpuPlaceScope() { t_qpu_place.stage = nullptr; }
  QpuPlaceScope(const QpuPlaceScope&) = delete;
  QpuPlaceScope& operator=(const QpuPlaceScope&) = delete;
};

}  // namespace v3d
