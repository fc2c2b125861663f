/// What the host does at most, beside which bench/compare sets QPU programs: products and sums, as separate
/// instructions as QPUs have them, and copying past the caches; on all processors.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace {

/// Chains of products and of sums: enough to hide latencies, and no more than there are registers.
template <int bytes, int chains>
[[gnu::always_inline]] inline void multiply_and_add(int turns) {
  typedef float Vector __attribute__((vector_size(bytes)));
  const auto any = [](float value) {  // the compiler does not know which, or it would know the results
    benchmark::DoNotOptimize(value);
    return value;
  };
  const Vector one = Vector{} + any(1);
  Vector products[chains], sums[chains];
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) {
    products[i] = Vector{} + any(1);
    sums[i] = Vector{} + any(1);
  }
  for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) {
      products[i] *= one;
      sums[i] += one;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) benchmark::DoNotOptimize(products[i] + sums[i]);
}

constexpr int kTurns = 10'000;
constexpr int kChains512 = 12, kChains256 = 7;
[[gnu::target("avx512f")]] void multiply_and_add_512() { multiply_and_add<64, kChains512>(kTurns); }
[[gnu::target("avx2")]] void multiply_and_add_256() { multiply_and_add<32, kChains256>(kTurns); }

bool has_avx512() { return __builtin_cpu_supports("avx512f"); }

void peak_flops(benchmark::State& state) {
  const bool wide = has_avx512();
  for (auto _ : state) wide ? multiply_and_add_512() : multiply_and_add_256();
  const double per_iteration = 2.0 * kTurns * (wide ? 16 * kChains512 : 8 * kChains256);
  // Of this thread: an invariant counter would be multiplied by the iterations of all.
  state.counters["flop/s"] = benchmark::Counter(per_iteration * static_cast<double>(state.iterations()),
                                                benchmark::Counter::kIsRate);
}
BENCHMARK(peak_flops)->ThreadPerCpu()->UseRealTime();

[[gnu::target("avx512f")]] void copy_512(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_load_si512(from + at));
}
[[gnu::target("avx2")]] void copy_256(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at)));
}

/// Of 24 Mi floats, a part for each thread.
void peak_copy(benchmark::State& state) {
  constexpr size_t kBytes = (size_t{24} << 20) * sizeof(float), kAlignment = 64;
  const size_t bytes = kBytes / static_cast<size_t>(state.threads()) / kAlignment * kAlignment;
  const auto free = [](std::byte* memory) { ::operator delete (memory, std::align_val_t{kAlignment}); };
  const auto part = [&](uint8_t value) {
    std::unique_ptr<std::byte, decltype(free)> memory(
        static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})), free);
    std::fill_n(memory.get(), bytes, std::byte{value});
    return memory;
  };
  const auto from = part(1), to = part(2);
  const bool wide = has_avx512();
  for (auto _ : state) {
    (wide ? copy_512 : copy_256)(to.get(), from.get(), bytes);
    _mm_sfence();
  }
  if (!std::equal(to.get(), to.get() + bytes, from.get())) state.SkipWithError("the copy differs");
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(peak_copy)->ThreadPerCpu()->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
