/// KernelOptions are what a user says of a Kernel, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/chip/generation.h"
#include "tools/cli/kernels/kernel.h"

namespace v3d::tools {

struct KernelOptions {
  std::string file;  ///< assembly, or words where the name ends with .bin; "-" is the standard input
  std::string device = "rpi5";
  std::vector<std::string> buffers, uniforms, outputs;
  uint32_t threads = 0, workgroup = 16;
  std::string workgroups;  ///< empty: as many as `threads` fill
  bool four_threads = false;
};

/// Reads the files, and places what they hold. An error says which word of which option is wrong.
absl::StatusOr<Kernel> read_kernel(const KernelOptions& options, chip::Generation generation);

/// Where the results go, by the number of the buffer.
absl::StatusOr<std::map<size_t, std::string>> read_outputs(const KernelOptions& options,
                                                           const Kernel& kernel);

}  // namespace v3d::tools
