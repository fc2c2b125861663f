/// The inputs of corpus/ and small changes of each: what once crashed a target stays a test.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace v3d::fuzz {
namespace {

struct Target {
  const char* name;  ///< also of its folder in corpus/
  void (*run)(Bytes);
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

INSTANTIATE_TEST_SUITE_P(Targets, Corpus,
                         testing::Values(Target{"wire", wire}, Target{"framing", framing},
                                         Target{"segments", segments}, Target{"text", text},
                                         Target{"ioctls", ioctls}, Target{"control_lists", control_lists},
                                         Target{"jobs", jobs}, Target{"qpu", qpu}, Target{"csd", csd},
                                         Target{"texture", texture}, Target{"tfu", tfu},
                                         Target{"capture", capture}, Target{"vc4_programs", vc4_programs},
                                         Target{"vc4_jobs", vc4_jobs}, Target{"vc4_ioctls", vc4_ioctls},
                                         Target{"x_requests", x_requests}),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace v3d::fuzz
