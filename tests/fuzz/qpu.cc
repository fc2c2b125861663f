/// Input: flags, then instruction words; uniforms and data are the same bytes.
#include "gpu/qpu/isa/instruction.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/tmu/lookup/unit.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"
#include "tests/qpu/stage_room.h"

namespace v3d::fuzz {
namespace {

void check_word(chip::Generation generation, uint64_t word) {
  qpu::Instruction instruction;
  if (!qpu::decode(generation, word, instruction)) return;
  if (qpu::disassemble(generation, instruction).empty()) std::abort();
  // The encoder may choose another word of the same meaning, none that does not decode.
  const auto again = qpu::encode(generation, instruction);
  qpu::Instruction same;
  if (again && !qpu::decode(generation, *again, same)) std::abort();
}

}  // namespace

void qpu(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  const chip::Generation generation = flags & 1 ? chip::Generation::k42 : chip::Generation::k71;
  for (Input words(input.rest()); !words.empty();) check_word(generation, words.take<uint64_t>());

  memory.reset(input.rest());
  tmu::Unit unit(memory.memory(), generation);
  qpu::StageRoom room;
  const auto thread = std::make_unique<qpu::Thread>();
  qpu::Thread& t = *thread;
  t.reset();
  t.memory = memory.memory();
  t.pc = JobMemory::kBase;
  t.uniforms = JobMemory::kBase;
  t.unifa = JobMemory::kBase;
  t.msf = splat(1u);
  t.tmu = &unit;
  room.give_to(t, flags & 2);
  t.stop_at_switch = flags & 4;
  t.final_section = flags & 8;
  constexpr uint64_t kBudget = 2000;
  t.budget = kBudget;
  using qpu::jit::Target;
  static qpu::jit::JitCompiler compilers[] = {qpu::jit::JitCompiler(Target::kAvx512, 0),
                                              qpu::jit::JitCompiler(Target::kAvx2, 0)};
  const Target target = flags & 32 ? Target::kAvx2 : Target::kAvx512;
  const bool compiles = (flags & 16) && qpu::jit::can_compile(target);
  qpu::ProgramCache cache(generation, compiles ? &compilers[static_cast<size_t>(target)] : nullptr);
  const auto program = cache.get(t.memory, t.pc);
  run_through(*program, t);
  if (t.instructions + t.budget > kBudget) std::abort();
}

}  // namespace v3d::fuzz
