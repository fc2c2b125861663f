#include "tools/cli/explain/explanation.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/isa/instruction.h"
#include "tools/cli/explain/mending.h"
#include "tools/cli/explain/static_path.h"

namespace v3d::tools::explain {
namespace {

using timing::Stall;

constexpr size_t kMostWords = 4096;
constexpr uint32_t kLanesOfBatch = 16, kRegistersOfFour = 32;
constexpr double kWorthTelling = 0.5;  // clocks

double per_issue(const timing::Prediction::Instruction& one, uint64_t clocks) {
  return one.issued == 0 ? 0 : static_cast<double>(clocks) / static_cast<double>(one.issued);
}

const char* why(Stall stall) {
  switch (stall) {
    case Stall::kTmu:
      return "waits for the TMU";
    case Stall::kSfu:
      return "uses the SFU's result at once: an instruction between hides it";
    case Stall::kRep:
      return "uses at once what was spread from lane 0: two instructions between hide it";
    case Stall::kUniforms:
      return "waits for a line of uniforms";
    case Stall::kCode:
      return "waits for a line of code";
    case Stall::kTlb:
      return "waits for the tile buffer";
    case Stall::kVaryings:
    case Stall::kVpm:
    case Stall::kSync:
      break;
  }
  return "waits";
}

/// Bytes of the VPM (Mesa v3d_device_info.c: the field counts 8 KiB).
uint32_t vpm_bytes(const chip::Profile& profile) { return (profile.core_ident1 >> 28) * 8192; }

class Explainer {
 public:
  Explainer(const chip::Profile& profile, std::span<const uint64_t> words, bool four_threads)
      : profile_(profile),
        words_(words),
        four_threads_(four_threads),
        flow_(qpu::flow::analyse(
            {profile.generation, qpu::starts_in_last_section(profile.generation, words), {}}, words)) {
    e_.threads_per_qpu = four_threads ? 4 : 2;
    e_.qpus = static_cast<uint32_t>(profile.qpu_count());
    e_.vpm_bytes = vpm_bytes(profile);
    for (const uint64_t word : words)
      e_.instructions.push_back({.text = qpu::disassemble(profile.generation, word), .notes = {}});
  }

  Explanation run() {
    count_instructions();
    count_registers();
    find_rules();
    predict();
    advise();
    return std::move(e_);
  }

 private:
  void count_instructions() {
    qpu::RegisterSet of_thread;  // registers with what comes from tidx, in the order of the text
    for (size_t n = 0; n < words_.size(); ++n) {
      qpu::Instruction i;
      if (!qpu::decode(profile_.generation, words_[n], i)) continue;
      if (i.is_branch) {
        count_branch(i.branch, n);
        continue;
      }
      for (const qpu::AluHalf* half : {&i.add, &i.mul}) {
        e_.idle_halves += qpu::flow::is_idle(profile_.generation, *half);
        count_row(*half);
      }
      e_.switches += (i.signals & qpu::kThrsw) != 0;
      const qpu::flow::Access access = qpu::flow::access_of(profile_.generation, i);
      const bool from_thread = i.add.op == qpu::Op::kTidx || !(access.reads.registers & of_thread).empty();
      if (from_thread)
        of_thread |= access.writes.registers;
      else
        of_thread -= access.destroys.registers;
      for (const qpu::flow::Event& use : access.events()) {
        const bool starts = use.kind == qpu::flow::Event::Kind::kWrite && qpu::starts_lookup(use.effect);
        e_.lookups += starts;
        if (starts) switched_ = false;
        waits_unhidden_ = waits_unhidden_ || (use.kind == qpu::flow::Event::Kind::kLdtmu && !switched_);
        e_.tidx_lookups += starts && from_thread;
        e_.words += use.kind == qpu::flow::Event::Kind::kLdtmu;
        e_.uniforms += use.stream == qpu::Stream::kMain;
      }
      switched_ = switched_ || (i.signals & qpu::kThrsw);
    }
  }
  void count_branch(const qpu::Branch& branch, size_t index) {
    ++e_.branches;
    if (branch.cond == qpu::BranchCond::kAlways) return;
    ++e_.lane_branches;
    const auto distance = static_cast<int32_t>(branch.offset) / 8;
    if (branch.target != qpu::BranchTarget::kRelative) return;
    if (distance + 1 + qpu::flow::kBranchDelay <= 0)
      ++e_.loops;
    else if (distance > 0)
      e_.led_around +=
          std::min(static_cast<uint32_t>(distance), static_cast<uint32_t>(words_.size() - index));
  }
  void count_row(const qpu::AluHalf& half) {
    if (half.op != qpu::Op::kStvpmv || half.a.kind != qpu::Operand::Kind::kImmediate) return;
    const uint32_t row = qpu::small_immediate(half.a.index);
    if (row < 64) e_.vpm_rows = std::max(e_.vpm_rows, row + 1);
  }

  void count_registers() {
    std::vector<int> changes(flow_.nodes.size() + 1);
    for (size_t r = 0; r < flow_.registers.size(); ++r) {
      const qpu::flow::RegisterUse& use = flow_.registers[r];
      if (use.first > use.last) continue;
      if (r < qpu::kFirstAccumulator)
        e_.registers_used = std::max(e_.registers_used, static_cast<uint32_t>(r + 1));
      ++changes[use.first];
      --changes[use.last + 1];
    }
    int alive = 0;
    for (const int change : changes) {
      alive += change;
      e_.registers_alive = std::max(e_.registers_alive, static_cast<uint32_t>(alive));
    }
  }

  void find_rules() {
    const auto reports = qpu::check_program(profile_.generation, four_threads_, words_);
    for (const qpu::HazardReport& report : reports) {
      std::string note = absl::StrCat(qpu::name(qpu::kind(report.hazard)), ": ", qpu::tag(report.hazard),
                                      ": ", qpu::rule(report.hazard));
      if (const char* const source = qpu::source(report.hazard); *source != 0)
        absl::StrAppend(&note, " [", source, "]");
      if (qpu::is_wrong(qpu::kind(report.hazard))) {
        ++wrong_;
        if (const int nops = nops_that_mend(profile_.generation, four_threads_, words_, report))
          absl::StrAppend(&note, "; ", nops, nops == 1 ? " nop" : " nops",
                          " in front of it would keep the rule");
      }
      e_.instructions[report.index].notes.push_back(std::move(note));
    }
  }

  void predict() {
    const std::vector<uint32_t> path = static_path(flow_);
    e_.path_instructions = static_cast<uint32_t>(path.size());
    if (path.empty()) return;
    const timing::Prediction alone = predict_path(flow_, path, profile_, 1),
                             all = predict_path(flow_, path, profile_, e_.threads_per_qpu);
    const auto at = [](const timing::Prediction& p, size_t n) {
      return n < p.programs[0].at.size() ? p.programs[0].at[n] : timing::Prediction::Instruction{};
    };
    for (const uint32_t node : path) {
      const auto n = static_cast<size_t>(flow_.nodes[node].index);
      ExplainedInstruction& one = e_.instructions[n];
      if (one.on_path) continue;
      one.on_path = true;
      const auto by_itself = at(alone, n), together = at(all, n);
      one.alone_stalled = per_issue(by_itself, timing::sum(by_itself.stalls));
      one.stalled = per_issue(together, timing::sum(together.stalls));
      for (int stall = 0; stall < timing::kNumStalls; ++stall)
        if (const double clocks = per_issue(by_itself, by_itself.stalls[static_cast<size_t>(stall)]);
            clocks >= kWorthTelling)
          one.notes.push_back(absl::StrFormat("%s (%.1f clk)", why(static_cast<Stall>(stall)), clocks));
    }
    // Not what the dispatch takes: launches of short programs would be most of that.
    const auto of_batch = [](const timing::Prediction& p) {
      const timing::Prediction::ProgramTime& program = p.programs[0];
      return static_cast<double>(timing::qpu_clocks(program.instructions, program.stalls)) /
             static_cast<double>(std::max<uint64_t>(program.batches, 1));
    };
    e_.alone_clocks = of_batch(alone);
    e_.clocks = of_batch(all);
    e_.bound = all.bound();
  }

  void advise() {
    const auto add = [&](const std::string& text) { e_.advice.push_back(text); };
    if (wrong_ != 0)
      add(absl::StrFormat("%d rule%s broken: mend those first, since results depend on luck", wrong_,
                          wrong_ == 1 ? " is" : "s are"));
    if (!four_threads_ && e_.registers_used <= kRegistersOfFour && e_.lookups != 0)
      add(absl::StrFormat(
          "it fits into the 32 registers of four threads per QPU (--four-threads): twice as many "
          "threads hide what lookups take"));
    if (!four_threads_ && e_.registers_used > kRegistersOfFour && e_.registers_alive <= kRegistersOfFour)
      add(absl::StrFormat(
          "no more than %d registers hold values at a time: with other names it fits into the 32 of "
          "four threads per QPU",
          e_.registers_alive));
    if (waits_unhidden_)
      add("no thrsw stands between a lookup and its ldtmu: other threads of the QPU could run meanwhile");
    if (e_.tidx_lookups != 0)
      add(
          absl::StrFormat("%d lookups are at addresses that come from tidx: where those are spilled "
                          "registers, fewer values alive "
                          "at a time avoid them, or two threads per QPU",
                          e_.tidx_lookups));
    if (const size_t bytes = words_.size() * 8; bytes > kCodeBytes)
      add(absl::StrFormat("%d bytes of code are more than the %d that a slice caches", bytes, kCodeBytes));
    if (e_.path_instructions > kFew && e_.idle_halves > words_.size() * 5 / 4)
      add(absl::StrFormat(
          "%d of its %d ALU slots do nothing: additions and multiplications that do not depend on each "
          "other fit into one instruction",
          e_.idle_halves, 2 * words_.size()));
    if (e_.led_around != 0)
      add("where lanes disagree on a branch both ways are executed: 16 lanes that agree take one");
  }

  static constexpr size_t kCodeBytes = 4096;  // code_bytes of the timing model
  static constexpr uint32_t kFew = 16;

  const chip::Profile& profile_;
  const std::span<const uint64_t> words_;
  const bool four_threads_;
  const qpu::flow::Flow flow_;
  Explanation e_;
  int wrong_ = 0;
  bool switched_ = true,
       waits_unhidden_ = false;  // since the last lookup; some ldtmu without a switch before it
};

}  // namespace

absl::StatusOr<Explanation> explain(const chip::Profile& profile, std::span<const uint64_t> words,
                                    bool four_threads) {
  if (!qpu::isa(profile.generation).has_words)
    return absl::UnimplementedError(
        "programs of V3D 2.1 are not explained: its rules are those of --check, its times those of "
        "v3demu replay --time");
  if (words.empty()) return absl::InvalidArgumentError("there are no instructions");
  if (words.size() > kMostWords)
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d instructions; %d are explained at most", words.size(), kMostWords));
  return Explainer(profile, words, four_threads).run();
}

std::string summary(const chip::Profile& profile, const Explanation& e) {
  std::string text = absl::StrFormat("%s: %d instructions, %d threads a QPU: %d of %d lanes on %d QPUs\n",
                                     profile.name, e.instructions.size(), e.threads_per_qpu,
                                     e.threads_per_qpu * e.qpus, kLanesOfBatch, e.qpus);
  absl::StrAppendFormat(
      &text,
      "predicted for the way through it that takes no conditional branch, lookups of one line that "
      "is cached: %d instructions, %.1f clk of a QPU for 16 lanes alone, %.1f with all threads; bound "
      "by %s\n",
      e.path_instructions, e.alone_clocks, e.clocks, timing::bound_name(e.bound));
  absl::StrAppendFormat(&text, "registers: rf0..rf%d named, %d alive at most, %d there\n",
                        e.registers_used == 0 ? 0 : e.registers_used - 1, e.registers_alive,
                        e.threads_per_qpu == 4 ? kRegistersOfFour : 2 * kRegistersOfFour);
  if (e.vpm_rows != 0)
    absl::StrAppendFormat(&text, "VPM: %d rows stored, %d bytes of %d for 16 vertices\n", e.vpm_rows,
                          e.vpm_rows * kLanesOfBatch * 4, e.vpm_bytes);
  absl::StrAppendFormat(&text,
                        "TMU: lookups %d, words taken %d; uniforms %d, thrsw %d, idle ALU slots %d of %d\n",
                        e.lookups, e.words, e.uniforms, e.switches, e.idle_halves, 2 * e.instructions.size());
  absl::StrAppendFormat(&text,
                        "divergence: branches %d, by what lanes say %d, around %d instructions, backwards "
                        "%d; lookups by tidx, as spills are, %d\n",
                        e.branches, e.lane_branches, e.led_around, e.loops, e.tidx_lookups);
  return text;
}

std::string to_text(const chip::Profile& profile, const Explanation& e) {
  std::string text =
      absl::StrCat(summary(profile, e), "\n     alone    all  (clk stalled, each time that it issues)\n");
  for (size_t n = 0; n < e.instructions.size(); ++n) {
    const ExplainedInstruction& one = e.instructions[n];
    const auto column = [&](double clocks) {
      return !one.on_path ? std::string("?") : clocks < kWorthTelling ? "" : absl::StrFormat("+%.1f", clocks);
    };
    absl::StrAppendFormat(&text, "%4d %6s %6s  %s\n", n, column(one.alone_stalled), column(one.stalled),
                          one.text);
    for (const std::string& note : one.notes) absl::StrAppend(&text, std::string(22, ' '), note, "\n");
  }
  if (!e.advice.empty()) text += "\nadvice:\n";
  for (const std::string& line : e.advice) absl::StrAppend(&text, "  - ", line, "\n");
  return text;
}

}  // namespace v3d::tools::explain
