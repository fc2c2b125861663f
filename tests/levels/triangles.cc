#include <bit>

#include "tests/levels/results.h"
#include "tests/pse/scene.h"

namespace v3d::levels {
namespace {

using pse::ProgramBuilder;
using pse::Scene;
using pse::SceneVertex;

/// Triangles with varyings of all kinds.
uint64_t triangle_results(uint32_t seed, bool multisample, bool ordinary) {
  Words words(seed);
  Hash hash;
  for (int round = 0; round < 12; ++round) {
    Scene scene(64, 64, 32, multisample);
    std::vector<SceneVertex> vertices;
    for (int v = 0; v < 9; ++v) {
      SceneVertex vertex;
      vertex.x = static_cast<double>(words.below(80 * 64)) / 64 - 8;
      vertex.y = static_cast<double>(words.below(80 * 64)) / 64 - 8;
      vertex.z = static_cast<float>(words.below(1025)) / 1024;
      vertex.r = std::bit_cast<float>(0x3f000000u + words.below(0x01000000));
      for (int i = 0; i < 4; ++i) vertex.words.push_back(ordinary ? words.moderate() : words.word());
      vertices.push_back(vertex);
    }
    ProgramBuilder fragment;
    for (uint8_t i = 0; i < 4; ++i) fragment.varying(static_cast<uint8_t>(10 + i));
    fragment.store(10);
    scene.add_draw(3, vertices, fragment, 4);
    hash.add(uint32_t{scene.render()});
    for (uint32_t y = 0; y < 64; ++y)
      for (uint32_t x = 0; x < 64; ++x)
        for (uint32_t c = 0; c < 4; ++c)
          for (uint32_t s = 0; s < (multisample ? 4u : 1u); ++s) hash.add(scene.word(x, y, c, s));
  }
  return hash.value();
}

}  // namespace

void add_triangles(Results& results) {
  results.emplace_back("triangles", triangle_results(1, false, true));
  results.emplace_back("triangles.multisampled", triangle_results(2, true, true));
  results.emplace_back("triangles.undefined", triangle_results(3, false, false));
}

}  // namespace v3d::levels
