// Small kernels for V3D 4.2, the Raspberry Pi 4, from C++ with the kernel's interface alone; their texts lie
// beside this file. Usage: qpu_chip42 NODE. Exit code 0 when all results are right.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "histogram.h"
#include "memset.h"
#include "roots.h"
#include "scopy.h"
#include "sgemm.h"
#include "sum.h"
#include "tests/e2e/qpu_programs/device.h"

namespace {

constexpr uint32_t kVector = 16;  ///< words that a thread reads or writes at once
constexpr uint32_t kThreadsPerQpu = 2;

/// Configurations of general TMU accesses, of one access each.
constexpr uint32_t kLoadU8 = 0xfffffffd, kStoreU16 = 0xfffffffe, kAtomicAdd = 0xffffff87;

struct Grid {
  uint32_t x = 1, y = 1;
};

/// A device, and a buffer for programs and their data.
class Machine {
 public:
  explicit Machine(const char* node) : device_(node), bo_(device_.make_bo(kSize)) {}

  bool is_42() const { return device_.version() == 42; }
  uint32_t num_threads() const { return kThreadsPerQpu * device_.num_qpus(); }

  /// Zeroed words of the buffer, from offset `first` on.
  uint32_t* words(uint32_t first, uint32_t count) const {
    std::fill_n(data() + first, count, 0);
    return data() + first;
  }
  float* floats(uint32_t first, uint32_t count) const {
    return reinterpret_cast<float*>(words(first, count));
  }
  uint32_t address(uint32_t first) const { return bo_.address + kData + 4 * first; }

  /// A workgroup of one batch at each place of the grid.
  template <size_t kWords>
  void run(const uint64_t (&code)[kWords], std::initializer_list<uint32_t> uniforms, Grid grid) const {
    OldSubmitCsd submit = prepared<OldSubmitCsd>(code, sizeof(code), uniforms);
    submit.cfg[0] = grid.x << 16;
    submit.cfg[1] = grid.y << 16;
    submit.cfg[3] = kVector | 1 << 8;
    submit.cfg[4] = device_.batches(grid.x * grid.y);
    finish(submit);
  }

  /// All threads, as one supergroup of a workgroup for each QPU.
  template <size_t kWords>
  void run_all_threads(const uint64_t (&code)[kWords], std::initializer_list<uint32_t> uniforms) const {
    SubmitCsd submit = prepared<SubmitCsd>(code, sizeof(code), uniforms);
    submit.cfg[0] = device_.num_qpus() << 16;
    submit.cfg[1] = 1 << 16;
    submit.cfg[3] = kThreadsPerQpu * kVector | (device_.num_qpus() & 15) << 8 | (num_threads() - 1) << 12;
    submit.cfg[4] = device_.batches(num_threads());
    finish(submit);
  }

 private:
  static constexpr uint32_t kUniforms = 4096, kData = 8192, kSize = 1 << 20;

  uint32_t* data() const { return bo_.words + kData / 4; }

  template <typename Submit>
  Submit prepared(const uint64_t* code, size_t size, std::initializer_list<uint32_t> uniforms) const {
    std::memcpy(bo_.words, code, size);
    std::copy(uniforms.begin(), uniforms.end(), bo_.words + kUniforms / 4);
    Submit submit = {};
    submit.cfg[2] = 1 << 16;
    submit.cfg[5] = bo_.address;
    submit.cfg[6] = bo_.address + kUniforms;
    return submit;
  }
  template <typename Submit>
  void finish(const Submit& submit) const {
    device_.submit(submit, {bo_.handle});
    device_.wait(bo_);
  }

  Device device_;
  Bo bo_;
};

/// TIDX of a machine that runs two threads per QPU counts in steps of 2.
constexpr uint32_t kTidxShift = 1;

bool fills_memory(const Machine& machine) {
  constexpr uint32_t kVectors = 9, kValue = 0xdeadbeef;
  const uint32_t count = machine.num_threads() * kVectors * kVector;
  const uint32_t* words = machine.words(0, count + 1);
  machine.run_all_threads(memset42, {kTidxShift, kVectors, machine.address(0), kValue});
  return std::count(words, words + count, kValue) == count && words[count] == 0;
}

bool copies(const Machine& machine) {
  constexpr uint32_t kVectors = 5;
  const uint32_t count = machine.num_threads() * kVectors * kVector;
  float* source = machine.floats(0, count);
  const float* result = machine.floats(count, count);
  std::iota(source, source + count, 1.0f);
  machine.run_all_threads(scopy42, {kTidxShift, kVectors, machine.address(0), machine.address(count)});
  return std::equal(source, source + count, result);
}

bool sums_up(const Machine& machine) {
  constexpr uint32_t kVectors = 7, kPart = kVectors * kVector;
  const uint32_t threads = machine.num_threads(), count = threads * kPart;
  uint32_t* source = machine.words(0, count);
  const uint32_t* result = machine.words(count, threads * kVector);
  for (uint32_t i = 0; i < count; ++i) source[i] = i * 2654435761u;  // sums wrap
  machine.run_all_threads(sum42, {kTidxShift, kVectors, machine.address(0), machine.address(count)});
  for (uint32_t thread = 0; thread < threads; ++thread) {
    const uint32_t* part = source + thread * kPart;
    const uint32_t expected = std::accumulate(part, part + kPart, 0u);
    if (std::count(result + thread * kVector, result + (thread + 1) * kVector, expected) != kVector)
      return false;
  }
  return true;
}

bool takes_roots(const Machine& machine) {
  constexpr uint32_t kVectors = 6, kCount = kVectors * kVector;
  float* x = machine.floats(0, kCount);
  const float* y = machine.floats(kCount, kCount);
  float* coefficients = machine.floats(2 * kCount, kVectors);
  for (uint32_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(i) * 0.75f - 20;
  for (uint32_t i = 0; i < kVectors; ++i) coefficients[i] = static_cast<float>(i) - 2.5f;
  machine.run(roots42, {machine.address(0), machine.address(kCount), kVectors, machine.address(2 * kCount)},
              {});
  for (uint32_t i = 0; i < kCount; ++i) {
    const float expected = x[i] > 0 ? coefficients[i / kVector] * std::sqrt(x[i]) : 0;
    if (std::abs(y[i] - expected) > 1e-5f * std::abs(expected)) return false;
  }
  return true;
}

bool multiplies_matrices(const Machine& machine) {
  constexpr uint32_t kRows = 20, kInner = 37, kColumns = 48;
  constexpr uint32_t kB = kRows * kInner, kC = kB + kInner * kColumns;
  float* a = machine.floats(0, kB);
  float* b = machine.floats(kB, kC - kB);
  const float* c = machine.floats(kC, kRows * kColumns);
  for (uint32_t i = 0; i < kC; ++i) a[i] = static_cast<float>(i * 7 % 17) - 8;  // B stands after A
  machine.run(
      sgemm42,
      {machine.address(0), 4 * kInner, machine.address(kB), 4 * kColumns, machine.address(kC), kInner},
      {.x = kColumns / kVector, .y = kRows});
  for (uint32_t i = 0; i < kRows * kColumns; ++i) {
    float expected = 0;  // of small integers: exact
    for (uint32_t k = 0; k < kInner; ++k)
      expected += a[i / kColumns * kInner + k] * b[k * kColumns + i % kColumns];
    if (c[i] != expected) return false;
  }
  return true;
}

bool counts_bytes(const Machine& machine) {
  constexpr uint32_t kCounts = kVector / 4, kResults = kCounts + 256;
  constexpr uint8_t kBytes[kVector] = {3, 200, 3, 7, 255, 0, 7, 3, 9, 3, 200, 1, 2, 255, 3, 0};
  std::memcpy(machine.words(0, kCounts), kBytes, sizeof(kBytes));
  uint32_t* counts = machine.words(kCounts, 256);
  const auto* before = reinterpret_cast<const uint16_t*>(machine.words(kResults, kVector / 2));
  std::fill_n(counts, 256, 10);
  machine.run(histogram42,
              {machine.address(0), kLoadU8, machine.address(kCounts), kAtomicAdd, machine.address(kResults),
               kStoreU16},
              {});
  for (uint32_t value = 0; value < 256; ++value) {
    std::vector<uint32_t> seen;
    for (uint32_t lane = 0; lane < kVector; ++lane)
      if (kBytes[lane] == value) seen.push_back(before[lane]);
    std::sort(seen.begin(), seen.end());  // which lane comes first is the chip's affair
    for (uint32_t i = 0; i < seen.size(); ++i)
      if (seen[i] != 10 + i) return false;
    if (counts[value] != 10 + seen.size()) return false;
  }
  return true;
}

constexpr struct {
  const char* name;
  bool (*run)(const Machine&);
} kPrograms[] = {
    {"memset", fills_memory},       {"scopy", copies},          {"sum", sums_up}, {"roots", takes_roots},
    {"sgemm", multiplies_matrices}, {"histogram", counts_bytes}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NODE\n", argv[0]);
    return 2;
  }
  const Machine machine(argv[1]);
  if (!machine.is_42()) {
    std::fprintf(stderr, "%s is not of a V3D 4.2\n", argv[1]);
    return 2;
  }
  int wrong = 0;
  for (const auto& program : kPrograms) {
    const bool right = program.run(machine);
    std::printf("%s: %s\n", program.name, right ? "right" : "WRONG");
    wrong += !right;
  }
  return wrong != 0;
}
