/// Answers that never change while a daemon lives, kept in the client: VERSION, GET_CAP, GET_PARAM and
/// PERFMON_GET_COUNTER, about a hundred calls at the start of every process that uses the GPU.
#pragma once

#include <cstdint>

#include "shim/drm/marshal.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

inline constexpr uint64_t kVersionText = 64;

/// struct drm_version, and room for its texts.
struct Version {
  int32_t major, minor, patch, padding;
  uint64_t name_size, name, date_size, date, description_size, description;
  char texts[3][kVersionText];
};

/// True when the request is answered; *result is then 0 or a negative errno.
bool find_answer(const File& file, Driver driver, uint32_t request, uint64_t argument, int* result);

/// A request that the daemon has just answered with success.
void remember_answer(const File& file, Driver driver, uint32_t request, uint64_t argument);

inline bool answers_version(uint32_t request) { return request == 0xc0406400; }
bool remember_version(const File& file, Driver driver, const Version& version);

}  // namespace v3d::shim
