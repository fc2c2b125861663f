/// A Kernel is a QPU program with the buffers that it works on, run without a driver and without a daemon.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/chip/profile.h"
#include "gpu/device/device.h"
#include "gpu/mmu/address_space.h"
#include "gpu/qpu/trace/watch.h"
#include "tools/cli/kernels/npy.h"

namespace v3d::tools {

struct KernelBuffer {
  std::string name;
  Array array;
  GpuAddr address = 0;  ///< set by place()
};
inline constexpr size_t kMostKernelBuffers = 64, kMostKernelUniforms = 1 << 16;
/// Of all buffers.
inline constexpr uint64_t kMostKernelBytes = uint64_t{1} << 29;
/// So many batches of 16 invocations may there be: all workgroups'.
inline constexpr uint64_t kMostBatches = 1 << 24;

struct Kernel {
  std::vector<uint64_t> words;
  std::vector<int> lines = {};  ///< of the text, from 1, for each word; empty: there is none
  std::vector<KernelBuffer> buffers;
  std::vector<uint32_t> uniforms;
  uint32_t workgroup = 16;                         ///< invocations, 1 to 256
  std::array<uint32_t, 3> workgroups = {1, 1, 1};  ///< 1 to 65535 each
  bool four_threads = false;                       ///< share a QPU, not two
  GpuAddr code = 0, uniform_stream = 0;            ///< set by place()
};

/// Gives code, uniforms and buffers, at most kMostKernelBytes of these, their addresses, with pages that are
/// not mapped between them.
void place(Kernel* kernel);

/// Maps code, uniforms and buffers, with their contents. An error: there is no memory.
absl::Status map_kernel(const Kernel& kernel, mmu::AddressSpace& space);
/// The buffers as they are in memory.
std::vector<Array> read_buffers(const Kernel& kernel, const mmu::AddressSpace& space);
/// What SUBMIT_CSD is given.
device::CsdJob job_of(const Kernel& kernel, const chip::Profile& profile);

/// The words of a uniform: a number (an integer, or a float, which has a point or an exponent), or the name
/// of a buffer, whose address it is, with "+BYTES" behind it or not.
absl::StatusOr<uint32_t> parse_uniform(const std::string& text, const Kernel& kernel);

struct KernelRun {
  device::JobResult result;
  std::vector<Array> buffers;  ///< in their order
};
/// Runs it once, in an address space of its own. An error: there is no memory.
/// @param compiler  see device::Context
/// @param watch     of its threads; null: nobody watches, and where `timed` is set its time is predicted
absl::StatusOr<KernelRun> run_kernel(const Kernel& kernel, const chip::Profile& profile,
                                     qpu::Compiler* compiler, std::unique_ptr<qpu::Watch> watch, bool timed);

}  // namespace v3d::tools
