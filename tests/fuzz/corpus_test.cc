/// The inputs of corpus/ and small changes of each: what once crashed a target stays a test. With
/// $V3DEMU_FUZZ_ROUNDS so many more of these in rounds that build on each other, for builds without
/// libFuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/targets.h"

namespace v3d::fuzz {
namespace {

struct Target {
  const char* name;  ///< also of its folder in corpus/
  void (*run)(Bytes);
};

/// Makes inputs of others, and of those that it has made.
class Mutator {
 public:
  using Input = std::vector<uint8_t>;
  Mutator(std::vector<Input> inputs, uint32_t seed)
      : pool_(std::move(inputs)), given_(pool_.size()), random_(seed) {}

  /// Until the next call.
  const Input& next() {
    Input input = any();
    for (size_t changes = 1 + below(6); changes > 0 && !input.empty(); --changes) change(input);
    if (pool_.size() < given_ + kMade) return pool_.emplace_back(std::move(input));
    return pool_[given_ + below(kMade)] = std::move(input);
  }

 private:
  static constexpr size_t kMade = 256, kLongest = 4096;

  size_t below(size_t end) { return static_cast<size_t>(random_() % end); }
  const Input& any() { return pool_[below(pool_.size())]; }

  void change(Input& input) {
    static constexpr uint8_t kTelling[] = {0, 1, 2, 4, 7, 8, 16, 63, 64, 127, 128, 240, 254, 255};
    uint8_t& byte = input[below(input.size())];
    switch (below(6)) {
      case 0:
        byte ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        byte = kTelling[below(std::size(kTelling))];
        break;
      case 2:
        byte = static_cast<uint8_t>(random_());
        break;
      case 3:
        copy_into(input, any());
        break;
      case 4:
        if (const Input& other = any(); input.size() + other.size() < kLongest)
          input.insert(input.end(), other.begin(), other.end());
        break;
      default:
        if (below(8) == 0) input.resize(1 + below(input.size()));
        break;
    }
  }
  void copy_into(Input& input, const Input& other) {
    if (other.empty()) return;
    const size_t from = below(other.size()), to = below(input.size());
    const size_t count = std::min({1 + below(32), other.size() - from, input.size() - to});
    std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count,
                input.begin() + static_cast<std::ptrdiff_t>(to));
  }

  std::vector<Input> pool_;  // those that were given first
  const size_t given_;
  std::mt19937 random_;
};

class Corpus : public testing::TestWithParam<Target> {
 protected:
  static std::vector<std::vector<uint8_t>> inputs() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(V3DEMU_CORPUS) / GetParam().name))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::vector<uint8_t>> inputs;
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return inputs;
  }
};

TEST_P(Corpus, Passes) {
  const auto all = inputs();
  ASSERT_FALSE(all.empty());
  for (const auto& input : all) GetParam().run(input);
}

TEST_P(Corpus, PassesWithChanges) {
  std::mt19937 random(7);
  for (auto input : inputs()) {
    for (int changes = 0; changes < 8 && !input.empty(); ++changes) {
      input[random() % input.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
      if (random() % 4 == 0) input.resize(random() % input.size());
      GetParam().run(input);
    }
  }
}

TEST_P(Corpus, PassesManyChanges) {
  const char* const rounds = std::getenv("V3DEMU_FUZZ_ROUNDS");
  if (!rounds) GTEST_SKIP() << "V3DEMU_FUZZ_ROUNDS says how many";
  const char* const seed = std::getenv("V3DEMU_FUZZ_SEED");
  Mutator mutator(inputs(), seed ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10)) : 1);
  for (unsigned long left = std::strtoul(rounds, nullptr, 10); left > 0; --left)
    GetParam().run(mutator.next());
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus,
                         testing::Values(Target{"wire", wire}, Target{"framing", framing},
                                         Target{"segments", segments}, Target{"text", text},
                                         Target{"ioctls", ioctls}, Target{"control_lists", control_lists},
                                         Target{"jobs", jobs}, Target{"qpu", qpu}, Target{"csd", csd},
                                         Target{"texture", texture}, Target{"tfu", tfu},
                                         Target{"capture", capture}, Target{"vc4_programs", vc4_programs},
                                         Target{"vc4_code", vc4_code}, Target{"vc4_jobs", vc4_jobs},
                                         Target{"vc4_ioctls", vc4_ioctls}, Target{"x_requests", x_requests},
                                         Target{"debugger", debugger}, Target{"arrays", arrays}),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace v3d::fuzz
