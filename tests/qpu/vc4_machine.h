/// A Machine of V3D 2.1 is a thread with memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::vc4 {

/// A little memory, with a program and its uniforms in it, and a thread to run it.
class Machine {
 public:
  static constexpr GpuAddr kCode = 0x1000, kUniforms = 0x8000, kData = 0xa000;
  static constexpr size_t kBytes = 0x20000;

  explicit Machine(std::string_view text) : Machine() { load(text, kCode, kUniforms); }
  Machine() : bytes(kBytes), thread(std::make_unique<Thread>()) {
    thread->reset();
    thread->memory = memory();
    thread->pc = kCode;
    thread->uniforms = kUniforms;
    thread->budget = 100000;
  }

  Memory memory() { return Memory(bytes.data()); }
  void load(std::string_view text, GpuAddr code, GpuAddr uniforms) {
    const Assembly assembly = assemble(text);
    for (const AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error);
    memory().write(code, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
    memory().write(uniforms, assembly.uniforms.data(), assembly.uniforms.size() * sizeof(uint32_t));
    program = std::make_unique<Program>(code, std::make_shared<ProgramRoom>(room));
  }
  /// A rows-of-words VPM that both sides reach.
  void give_vpm() {
    vpm.assign((kVpmRows + 1) * kLanes, 0);
    const auto address = (reinterpret_cast<uintptr_t>(vpm.data()) + 63) & ~uintptr_t{63};
    rows = reinterpret_cast<AlignedLanes*>(address);
    thread->vpm_in = thread->vpm_out = {rows, kVpmRows};
  }
  Stop run() { return vc4::run(*program, *thread); }
  /// To its end.
  Thread& result() {
    EXPECT_EQ(run(), Stop::kEnd) << (thread->hang ? thread->hang : "");
    return *thread;
  }
  uint32_t word(GpuAddr address) { return memory().load<uint32_t>(address); }

  std::vector<uint8_t> bytes;
  std::vector<uint32_t> vpm;
  AlignedLanes* rows = nullptr;
  size_t room = Program::kMaxChunks;  ///< pieces of the program
  std::unique_ptr<Thread> thread;
  std::unique_ptr<Program> program;
};

}  // namespace v3d::qpu::vc4
