#include <memory>

#include "gpu/qpu/isa/instruction.h"
#include "tests/levels/results.h"
#include "tests/qpu/stage_room.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::levels {
namespace {

using namespace qpu;
using tmu::GpuMemory;

constexpr GpuAddr kCode = GpuMemory::kBase, kUniforms = kCode + 0x10000;
constexpr uint32_t kWords = 512, kUniformBytes = 0x2000;

/// A valid word without branches, seldom one that is likely to end the program.
uint64_t straight_word(Words& words, chip::Generation generation) {
  for (;;) {
    const uint64_t word = uint64_t{words.any()} << 32 | words.any();
    Instruction i;
    if (!decode(generation, word, i) || i.is_branch) continue;
    const auto launches = [](const AluHalf& h) { return h.magic && h.waddr >= kWaddrTmus; };
    const bool risky = (i.signals & (kLdtmu | kThrsw)) || launches(i.add) || launches(i.mul);
    if (!risky || words.below(64) == 0) return word;
  }
}

void run_random_program(chip::Generation generation, uint32_t round, const GpuMemory& gpu, Words& words,
                        Hash& hash) {
  for (uint32_t i = 0; i < kWords; ++i) gpu.memory().store(kCode + i * 8, straight_word(words, generation));
  for (uint32_t i = 0; i < kUniformBytes; i += 4) gpu.memory().store<uint32_t>(kUniforms + i, words.word());
  StageRoom room;
  for (Lanes& v : room.vpm_in) v = words.words();
  for (Lanes& v : room.gs_in) v = words.words();
  for (Varying& v : room.components()) v = {words.moderates(), words.words()};
  tmu::Unit unit(gpu.memory(), generation);
  const auto thread = std::make_unique<Thread>();
  Thread& t = *thread;
  t.reset();
  for (Lanes& r : t.rf) r = words.words();
  t.memory = gpu.memory();
  t.pc = kCode;
  t.uniforms = kUniforms;
  t.unifa = kUniforms + 0x1000;
  t.msf = kLaneIndex & 15u;
  t.tmu = &unit;
  t.final_section = round & 1;
  t.budget = kWords;
  room.give_to(t, false);
  ProgramCache cache(generation);
  hash.add(static_cast<uint32_t>(run_through(*cache.get(t.memory, kCode), t)));
  hash.add(static_cast<uint32_t>(t.instructions));
  for (const Lanes& r : t.rf) hash.add(r);
  for (const Lanes& r : t.acc) hash.add(r);
  for (const Lanes& r : room.vpm_out) hash.add(r);
  hash.add(uint32_t{t.flag_a} << 16 | t.flag_b);
}

}  // namespace

void add_programs(Results& results) {
  for (chip::Generation generation : {chip::Generation::k71, chip::Generation::k42})
    for (uint32_t set = 0; set < 4; ++set) {
      GpuMemory gpu;
      Words words(1000 + set);
      Hash hash;
      for (uint32_t round = 0; round < 64; ++round) run_random_program(generation, round, gpu, words, hash);
      results.emplace_back(
          "program." + std::to_string(version_number(generation)) + "." + std::to_string(set), hash.value());
    }
}

}  // namespace v3d::levels
