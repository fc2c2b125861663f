/// A Machine is a thread with memory and a program cache, for tests.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/place_text.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/thread.h"
#include "tests/qpu/assembly.h"

namespace v3d::qpu {

class Machine {
 public:
  static constexpr GpuAddr kCode = 0x1000, kUniforms = 0x20000;
  static constexpr size_t kBytes = 1 << 18;

  explicit Machine(chip::Generation generation)
      : generation_(generation), memory_(kBytes), cache_(generation), thread_(std::make_unique<Thread>()) {
    reset();
  }

  Thread& t() { return *thread_; }
  Memory memory() { return Memory(memory_.data()); }

  /// A fresh thread with all lanes alive, in its final section, and with a limited budget.
  void reset() {
    t().reset();
    t().memory = memory();
    t().pc = kCode;
    t().uniforms = kUniforms;
    t().msf = splat(1u);
    t().final_section = true;
    t().budget = 10000;
  }

  void load(const std::vector<Instruction>& program, GpuAddr at = kCode) {
    const auto words = assembly::assemble(generation_, program);
    std::memcpy(memory_.data() + at, words.data(), words.size() * 8);
  }
  void uniforms(const std::vector<uint32_t>& words, GpuAddr at = kUniforms) {
    std::memcpy(memory_.data() + at, words.data(), words.size() * 4);
  }
  Stop resume() { return run(*cache_.get(memory(), kCode), t()); }
  std::string hang_text() { return qpu::hang_text(*cache_.get(memory(), kCode), t()); }
  /// Loads the program with a program end after it, and runs it.
  Stop run_program(std::vector<Instruction> program) {
    assembly::append_end(program);
    load(program);
    return resume();
  }

 private:
  chip::Generation generation_;
  std::vector<uint8_t> memory_;
  ProgramCache cache_;
  std::unique_ptr<Thread> thread_;
};

inline std::vector<uint32_t> lanes(Lanes v) {
  std::vector<uint32_t> result;
  for (int i = 0; i < kLanes; ++i) result.push_back(v[i]);
  return result;
}
inline std::vector<uint32_t> same(uint32_t v) { return std::vector<uint32_t>(kLanes, v); }

}  // namespace v3d::qpu
