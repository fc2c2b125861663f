/// Input: flags, how many instructions a call executes at most, then instruction words of VideoCore IV;
/// uniforms, textures and data are the same bytes. Interpreted and compiled, a thread does the same.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/jit/run_compiler.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_program.h"
#include "gpu/qpu/run/vc4_textures.h"
#include "gpu/tmu/lookup/unit.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

using qpu::vc4::Stop;
using qpu::vc4::Thread;

constexpr uint64_t kBudget = 3000;
constexpr GpuAddr kUniforms = JobMemory::kBase + 512;

/// Remembers what a program writes.
class Port : public qpu::vc4::Tlb {
 public:
  Lanes load_color(Thread& t) override {
    return t.ms_flags * 0x01020304u + static_cast<uint32_t>(told.size());
  }
  void write_color(Thread&, const Lanes& color, LaneMask exec, bool all) override { tell(color, exec, all); }
  void write_z(Thread& t, const Lanes& z, LaneMask exec) override {
    tell(z, exec, 2);
    t.ms_flags &= z >> 3;
  }
  void set_stencil(Thread&, uint32_t setup) override { told.push_back(setup); }

  std::vector<uint32_t> told;

 private:
  void tell(const Lanes& v, LaneMask exec, uint32_t what) {
    for (int lane = 0; lane < kLanes; ++lane) told.push_back(v[lane]);
    told.push_back(exec | what << 16);
  }
};

struct Side {
  std::unique_ptr<Thread> thread = std::make_unique<Thread>();
  Port port;
  qpu::vc4::Shared shared;
  AlignedLanes rows[qpu::vc4::kVpmRows];
  std::vector<uint8_t> memory;
  Stop stop = Stop::kEnd;
  bool paid = false;  // for accesses where there was no memory
};

void run(Side& side, JobMemory& memory, Bytes words, uint8_t flags, uint64_t slice,
         qpu::vc4::RunCompiler* compiler) {
  memory.reset(words);
  tmu::Unit unit(memory.memory(), chip::Generation::k21);
  qpu::vc4::Textures textures(unit);
  std::array<qpu::vc4::Varying, 8> varyings;
  for (uint32_t n = 0; n < varyings.size(); ++n)
    varyings[n] = {as_uint(__builtin_convertvector(kLaneIndex * n, LanesF)), kLaneIndex + 0x3f800000u};
  for (uint32_t n = 0; n < qpu::vc4::kVpmRows; ++n) side.rows[n] = kLaneIndex * n;
  textures.begin_thread(static_cast<LaneMask>(flags & 8 ? 0x0f3f : kAllLanes));
  Thread& t = *side.thread;
  t.reset();
  for (int n = 0; n < Thread::kPortA; ++n)
    t.registers[n] = kLaneIndex * 0x01234567u + static_cast<uint32_t>(n);
  t.memory = memory.memory();
  t.pc = JobMemory::kBase;
  t.uniforms = kUniforms;
  t.tlb = flags & 2 ? &side.port : nullptr;
  t.tmu = flags & 4 ? &textures : nullptr;
  t.shared = &side.shared;
  t.vpm_in = t.vpm_out = {side.rows, qpu::vc4::kVpmRows};
  t.varyings = varyings.data();
  t.num_varyings = flags >> 5;
  t.ms_flags = splat(15u);
  const qpu::vc4::Program program(t.pc, std::make_shared<qpu::ProgramRoom>(64), compiler);
  for (uint64_t left = kBudget; left != 0;) {
    t.budget = std::min(left, slice);
    left -= t.budget;
    const uint64_t before = t.instructions, budget = t.budget;
    side.stop = qpu::vc4::run(program, t);
    side.paid |= t.instructions - before + t.budget < budget;
    if (side.stop != Stop::kBudget) break;
  }
  side.memory.resize(JobMemory::kSize);
  memory.memory().read(JobMemory::kBase, side.memory.data(), side.memory.size());
}

bool same_text(const char* a, const char* b) {
  return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
}

void compare(const Side& a, const Side& b) {
  const Thread &x = *a.thread, &y = *b.thread;
  // Who pays for accesses stops somewhere near, and finds pages that were not there at first.
  if ((a.paid || b.paid) && (a.stop == Stop::kBudget || b.stop == Stop::kBudget)) return;
  const auto check = [](bool holds) {
    if (!holds) std::abort();
  };
  check(a.stop == b.stop && x.pc == y.pc && x.instructions == y.instructions);
  check(same_text(x.hang, y.hang) && a.port.told == b.port.told && a.memory == b.memory);
  if (a.stop == Stop::kHang) return;  // what else an instruction does that hangs nobody sees
  check(x.uniforms == y.uniforms && x.pending.next_varying == y.pending.next_varying);
  check(nonzero(x.ms_flags ^ y.ms_flags) == 0);
  for (uint32_t n = 0; n < qpu::vc4::kVpmRows; ++n) check(nonzero(a.rows[n] ^ b.rows[n]) == 0);
  if (a.stop == Stop::kEnd) return;  // registers are forgotten
  const bool r4_is_due = x.pending.events.sfu_in != 0 || y.pending.events.sfu_in != 0;
  for (int n = 0; n < Thread::kPortA; ++n)
    check((r4_is_due && n == Thread::kAccumulators + 4) || nonzero(x.registers[n] ^ y.registers[n]) == 0);
  check(std::memcmp(x.flags, y.flags, sizeof(x.flags)) == 0);
}

}  // namespace

void vc4_code(Bytes bytes) {
  using qpu::jit::Target;
  static JobMemory memory;
  static qpu::jit::GraphCompiler compilers[] = {qpu::jit::GraphCompiler(Target::kAvx512, 0),
                                                qpu::jit::GraphCompiler(Target::kAvx2, 0)};
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  const uint64_t slice = uint64_t{8} + 16 * input.take<uint8_t>();
  const Target target = flags & 1 ? Target::kAvx2 : Target::kAvx512;
  if (!qpu::jit::can_compile(target)) return;
  const auto interpreted = std::make_unique<Side>(), compiled = std::make_unique<Side>();
  run(*interpreted, memory, input.rest(), flags, slice, nullptr);
  run(*compiled, memory, input.rest(), flags, slice, &compilers[static_cast<size_t>(target)]);
  compare(*interpreted, *compiled);
}

}  // namespace v3d::fuzz
