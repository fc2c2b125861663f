/// A JobBo is a BO as the checks of a submit see it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/statusor.h"
#include "ioctl/vc4/program.h"

namespace v3d::ioctl::vc4 {

struct JobBo {
  uint32_t address = 0;              ///< GPU virtual
  uint64_t size = 0;                 ///< bytes
  const Program* program = nullptr;  ///< of a shader BO; such a one is nothing else
};
/// In the order of SUBMIT_CL's list of handles, by whose indices all parts of a job name them.
using JobBos = std::span<const JobBo>;

/// A BO that is to be used as anything but a shader.
absl::StatusOr<const JobBo*> use_bo(JobBos bos, uint32_t index);

/// A value of a packet or record, which may lie at any byte. @param bytes  reach as far
template <typename T>
T get(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.subspan(at, sizeof value).data(), sizeof value);
  return value;
}
template <typename T>
void put(std::span<uint8_t> bytes, size_t at, T value) {
  std::memcpy(bytes.subspan(at, sizeof value).data(), &value, sizeof value);
}

}  // namespace v3d::ioctl::vc4
