#include "tools/cli/kernels/kernel.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "gpu/base/job_control.h"
#include "gpu/base/thread_pool.h"
#include "gpu/perf/record/sampling.h"

namespace v3d::tools {
namespace {

/// Programs read ahead of what they use: so many zeros lie behind each buffer before pages that are not
/// mapped.
constexpr uint64_t kSlack = 4096, kGap = 65536;

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
}

absl::Status map_bytes(mmu::AddressSpace& space, GpuAddr address, const void* data, uint64_t bytes) {
  absl::Status mapped = space.map_zeros(address, whole_pages(bytes + kSlack));
  if (mapped.ok()) space.memory().write(address, data, bytes);
  return mapped;
}

}  // namespace

device::CsdJob job_of(const Kernel& kernel, const chip::Profile& profile) {
  const uint32_t batches_each = (kernel.workgroup + 15) / 16;
  uint32_t batches = batches_each;
  for (const uint32_t count : kernel.workgroups) batches *= count;
  device::CsdJob job;
  for (size_t i = 0; i < 3; ++i) job.cfg[i] = kernel.workgroups[i] << 16;
  job.cfg[3] = (kernel.workgroup & 255) | 1u << 8 | (batches_each - 1) << 12;
  job.cfg[4] = profile.csd_batches_exact() ? batches : batches - 1;
  job.cfg[5] = kernel.code | (kernel.four_threads ? 1u : 0u);
  job.cfg[6] = kernel.uniform_stream;
  return job;
}

absl::Status map_kernel(const Kernel& kernel, mmu::AddressSpace& space) {
  absl::Status mapped = map_bytes(space, kernel.code, kernel.words.data(), 8 * kernel.words.size());
  mapped.Update(map_bytes(space, kernel.uniform_stream, kernel.uniforms.data(), 4 * kernel.uniforms.size()));
  for (const KernelBuffer& buffer : kernel.buffers)
    mapped.Update(map_bytes(space, buffer.address, buffer.array.data.data(), buffer.array.data.size()));
  return mapped;
}

std::vector<Array> read_buffers(const Kernel& kernel, const mmu::AddressSpace& space) {
  std::vector<Array> arrays;
  arrays.reserve(kernel.buffers.size());
  for (const KernelBuffer& buffer : kernel.buffers) {
    arrays.push_back(buffer.array);
    space.memory().read(buffer.address, arrays.back().data.data(), arrays.back().data.size());
  }
  return arrays;
}

void place(Kernel* kernel) {
  uint64_t at = mmu::kPageSize;
  const auto take = [&at](uint64_t bytes) {
    const uint64_t address = at;
    at += whole_pages(bytes + kSlack) + kGap;
    return static_cast<GpuAddr>(address);
  };
  kernel->code = take(8 * kernel->words.size());
  kernel->uniform_stream = take(4 * kMostKernelUniforms);  // they may be addresses of what follows
  for (KernelBuffer& buffer : kernel->buffers) buffer.address = take(buffer.array.data.size());
}

absl::StatusOr<uint32_t> parse_uniform(const std::string& text, const Kernel& kernel) {
  const size_t plus = std::min(text.find('+'), text.size());
  for (const KernelBuffer& buffer : kernel.buffers) {
    uint32_t offset = 0;
    if (text.substr(0, plus) != buffer.name) continue;
    if (plus < text.size() && !absl::SimpleAtoi(text.substr(plus + 1), &offset))
      return absl::InvalidArgumentError(absl::StrFormat("\"%s\" adds no number of bytes", text));
    return buffer.address + offset;
  }
  int64_t integer;
  if (text.starts_with("0x") ? absl::SimpleHexAtoi(text, &integer) : absl::SimpleAtoi(text, &integer)) {
    if (integer >= INT32_MIN && integer <= UINT32_MAX) return static_cast<uint32_t>(integer);
    return absl::InvalidArgumentError(absl::StrFormat("%s has more than 32 bits", text));
  }
  float real;
  if (!absl::SimpleAtof(text, &real))
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is neither a number nor the name of a buffer, with +BYTES or not", text));
  uint32_t word;
  std::memcpy(&word, &real, sizeof word);
  return word;
}

absl::StatusOr<KernelRun> run_kernel(const Kernel& kernel, const chip::Profile& profile,
                                     qpu::Compiler* compiler, std::unique_ptr<qpu::Watch> watch, bool timed) {
  // One thread: what workgroups leave in the same place does not depend on the host.
  ThreadPool pool(0);
  device::Device device(profile, pool);
  auto context = device::Context::create(profile, compiler);
  if (!context.ok()) return context.status();
  mmu::AddressSpace& space = (*context)->space();
  if (absl::Status mapped = map_kernel(kernel, space); !mapped.ok()) return mapped;
  device.set_watch(std::move(watch));
  if (timed) device.set_timing(timing::kWhole);
  JobControl control;
  control.set_counted(true);
  KernelRun run{.result = device.run_csd(**context, job_of(kernel, profile), control), .buffers = {}};
  run.buffers = read_buffers(kernel, space);
  return run;
}

}  // namespace v3d::tools
