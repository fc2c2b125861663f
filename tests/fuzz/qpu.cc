/// Input: flags, then instruction words; uniforms and data are the same bytes.
#include "gpu/qpu/instruction.h"
#include "gpu/qpu/program.h"
#include "gpu/qpu/thread.h"
#include "gpu/tmu/tmu.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

class NoTlb : public qpu::TlbPort {
  void write_color(qpu::Thread&, const qpu::TlbSpec&, const Lanes*, LaneMask) override {}
  void write_depth(qpu::Thread&, const qpu::TlbSpec&, Lanes, LaneMask) override {}
  void read_color(qpu::Thread&, const qpu::TlbSpec&, Lanes*) override {}
};

void check_word(int version, uint64_t word) {
  qpu::Instruction instruction;
  if (!qpu::decode(version, word, instruction)) return;
  if (qpu::disassemble(version, instruction).empty()) std::abort();
  // The encoder may choose another word of the same meaning, none that does not decode.
  const auto again = qpu::encode(version, instruction);
  qpu::Instruction same;
  if (again && !qpu::decode(version, *again, same)) std::abort();
}

}  // namespace

void qpu(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  const int version = flags & 1 ? 42 : 71;
  for (Input words(input.rest()); !words.empty();) check_word(version, words.take<uint64_t>());

  memory.reset(input.rest());
  tmu::Unit unit(memory.memory(), version);
  NoTlb tlb;
  Lanes vpm_in[8] = {}, vpm_out[8] = {}, gs_in[12] = {};
  qpu::Varying varyings[5] = {};
  const auto thread = std::make_unique<qpu::Thread>();
  qpu::Thread& t = *thread;
  t.reset();
  t.memory = memory.memory();
  t.pc = JobMemory::kBase;
  t.uniforms = JobMemory::kBase;
  t.unifa = JobMemory::kBase;
  t.msf = splat(1u);
  t.tmu = &unit;
  t.tlb = flags & 2 ? &tlb : nullptr;
  t.vpm_in = vpm_in;
  t.vpm_in_rows = std::size(vpm_in);
  t.vpm_out = vpm_out;
  t.vpm_out_rows = std::size(vpm_out);
  t.gs_in = gs_in;
  t.gs_in_rows = 4;
  t.gs_in_vertices = 3;
  t.varyings = varyings;
  t.num_varyings = std::size(varyings);
  t.stop_at_switch = flags & 4;
  t.final_section = flags & 8;
  t.budget = 2000;
  qpu::ProgramCache cache(version);
  const auto program = cache.get(t.memory, t.pc);
  qpu::Stop stop;
  do {
    stop = run(*program, t);
  } while (stop == qpu::Stop::kSwitch || stop == qpu::Stop::kBarrier);
  if (t.instructions + t.budget != 2000) std::abort();
}

}  // namespace v3d::fuzz
