#include "tools/debugger/variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/inspect/v3d_state.h"

namespace v3d::debugger {
namespace {

using Kind = Branch::Kind;
using State = inspect::V3dState;

Variable named(const std::string& expression, const Operand& operand, const Place& place, bool hex_only) {
  const auto value = value_of(operand, place);
  return {.name = expression,
          .value = value.ok() ? value_text(*value, hex_only) : std::string(value.status().message()),
          .expression = expression};
}

/// Registers from `first` to before `end`, whose lanes are their parts.
std::vector<Variable> registers(const Branch& branch, const Place& place, bool hex_only, size_t first,
                                size_t end) {
  const std::vector<std::string> names = State::registers(place.generation);
  std::vector<Variable> all;
  for (size_t n = first; n < end && n < names.size(); ++n) {
    all.push_back(named(names[n], {Operand::Kind::kRegister, n, {}}, place, hex_only));
    all.back().parts = Branch{Kind::kRegister, branch.thread, n};
  }
  return all;
}

std::vector<Variable> flags(const Branch& branch, const Place& place, bool hex_only) {
  const std::vector<std::string> names = State::flags();
  std::vector<Variable> all;
  for (size_t n = 0; n < names.size(); ++n) {
    all.push_back(named(names[n], {Operand::Kind::kFlag, n, {}}, place, hex_only));
    all.back().parts = Branch{Kind::kFlag, branch.thread, n};
  }
  return all;
}

std::vector<Variable> lanes(const std::string& name, Operand operand, const Place& place, bool hex_only) {
  std::vector<Variable> all;
  for (uint64_t lane = 0; lane < kLanes; ++lane) {
    operand.index = lane;
    all.push_back(named(absl::StrCat(name, "[", lane, "]"), operand, place, hex_only));
    all.back().name = absl::StrCat("[", lane, "]");
  }
  return all;
}

/// The words of the dispatch, and which of them the thread reads next.
std::vector<Variable> uniforms(const Place& place, bool hex_only, uint64_t first, uint64_t count) {
  const GpuAddr start = place.kernel.uniform_stream;
  std::vector<Variable> all = {
      {.name = "next",
       .value = absl::StrFormat("[%d] at 0x%08x", (static_cast<int64_t>(place.thread.uniforms) - start) / 4,
                                place.thread.uniforms),
       .expression = ""}};
  for (uint64_t n = first; n < place.kernel.uniforms.size() && n - first < count; ++n) {
    const auto address = static_cast<GpuAddr>(start + 4 * n);
    all.push_back(
        named(absl::StrFormat("*0x%08x", address), {Operand::Kind::kMemory, address, {}}, place, hex_only));
    all.back().name = absl::StrCat("[", n, "]");
    all.back().address = address;
  }
  return all;
}

std::vector<Variable> thread(const Place& place, bool hex_only) {
  const qpu::Thread& t = place.thread;
  std::vector<Variable> all = {named("pc", {Operand::Kind::kPc, 0, {}}, place, hex_only),
                               named("tidx", {Operand::Kind::kTidx, 0, {}}, place, hex_only)};
  all[0].value = absl::StrFormat("0x%08x, word %d", t.pc, (t.pc - place.kernel.code) / 8);
  const auto add = [&all](const char* name, std::string value) {
    all.push_back({.name = name, .value = std::move(value), .expression = ""});
  };
  add("link", absl::StrFormat("0x%08x", t.link));
  add("words that ldtmu can take", absl::StrCat(t.pending.fifo_tail - t.pending.fifo_head));
  if (t.pending.events.switch_in)
    add("thread switch", absl::StrFormat("after %d more instructions", t.pending.events.switch_in - 1));
  if (t.pending.events.branch_in) add("branch", absl::StrFormat("to 0x%08x", t.pending.branch_target));
  return all;
}

std::vector<Variable> buffers(const Branch& branch, const Place& place) {
  std::vector<Variable> all;
  for (size_t n = 0; n < place.kernel.buffers.size(); ++n) {
    const tools::KernelBuffer& buffer = place.kernel.buffers[n];
    all.push_back({.name = buffer.name,
                   .value = absl::StrFormat("%s at 0x%08x", buffer.array.text(), buffer.address),
                   .expression = buffer.name,
                   .parts = Branch{Kind::kBuffer, branch.thread, n},
                   .elements = buffer.array.elements(),
                   .address = buffer.address});
  }
  return all;
}

std::vector<Variable> elements(const Branch& branch, const Place& place, bool hex_only, uint64_t first,
                               uint64_t count) {
  const tools::KernelBuffer& buffer = place.kernel.buffers[branch.number];
  std::vector<Variable> all;
  for (uint64_t n = first; n < buffer.array.elements() && n - first < count; ++n) {
    all.push_back(named(absl::StrCat(buffer.name, "[", n, "]"), {Operand::Kind::kElement, branch.number, n},
                        place, hex_only));
    all.back().name = absl::StrCat("[", n, "]");
  }
  return all;
}

}  // namespace

std::vector<Scope> scopes_of(uint64_t thread, chip::Generation generation) {
  std::vector<Scope> scopes = {{"Registers", {Kind::kRegisters, thread, 0}}};
  if (State::registers(generation).size() > qpu::kFirstAccumulator)
    scopes.push_back({"Accumulators", {Kind::kAccumulators, thread, 0}});
  scopes.push_back({"Flags", {Kind::kFlags, thread, 0}});
  scopes.push_back({"Uniforms", {Kind::kUniforms, thread, 0}});
  scopes.push_back({"Buffers", {Kind::kBuffers, thread, 0}});
  scopes.push_back({"Thread", {Kind::kThread, thread, 0}});
  return scopes;
}

std::vector<Variable> variables_of(const Branch& branch, const Place& place, bool hex_only, uint64_t first,
                                   uint64_t count) {
  count = std::min(count, kMostVariables);
  switch (branch.kind) {
    case Kind::kRegisters:
      return registers(branch, place, hex_only, 0, qpu::kFirstAccumulator);
    case Kind::kAccumulators:
      return registers(branch, place, hex_only, qpu::kFirstAccumulator, qpu::kNumRegisters);
    case Kind::kFlags:
      return flags(branch, place, hex_only);
    case Kind::kUniforms:
      return uniforms(place, hex_only, first, count);
    case Kind::kThread:
      return thread(place, hex_only);
    case Kind::kBuffers:
      return buffers(branch, place);
    case Kind::kRegister:
      return lanes(State::registers(place.generation)[branch.number],
                   {Operand::Kind::kRegister, branch.number, {}}, place, hex_only);
    case Kind::kFlag:
      return lanes(State::flags()[branch.number], {Operand::Kind::kFlag, branch.number, {}}, place, hex_only);
    case Kind::kBuffer:
      return elements(branch, place, hex_only, first, count);
  }
  return {};
}

}  // namespace v3d::debugger
