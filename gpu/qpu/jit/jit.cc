#include "gpu/qpu/jit/jit.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/log.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/jit/program_builder.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {
namespace {

/// Of a node, in the units of a WorkMeter.
constexpr uint32_t kCompileCost = 200;

using WordOf = absl::FunctionRef<std::optional<uint64_t>(GpuAddr address)>;

/// @param most  words
/// @param content  gets the words that it is made of
/// @param is_whole  cleared when there were more
flow::Flow flow_of(const flow::Setting& setting, size_t most, WordOf word_of, CodeContent& content,
                   bool& is_whole) {
  std::vector<std::pair<int32_t, uint64_t>> words;
  const auto read = [&](int32_t index) -> std::optional<uint64_t> {  // of each once
    const std::optional<uint64_t> word = word_of(*setting.entry + static_cast<uint32_t>(index) * 8);
    if (!word) return {};
    is_whole = is_whole && words.size() < most;
    if (!is_whole) return {};
    return words.emplace_back(index, *word).second;
  };
  flow::Flow flow = flow::analyse(setting, read);
  content.generation = setting.generation;
  content.final_section = setting.final_section;
  if (flow.position_dependent) content.entry = setting.entry;
  std::sort(words.begin(), words.end());
  for (const auto& [index, word] : words) {
    if (content.stretches.empty() ||
        content.stretches.back().index + static_cast<int64_t>(content.stretches.back().count) != index)
      content.stretches.push_back({index, static_cast<uint32_t>(content.words.size()), 0});
    ++content.stretches.back().count;
    content.words.push_back(word);
  }
  return flow;
}

/// Words of pages of GPU memory, as they were.
class PagesOfCode {
 public:
  PagesOfCode(const Program& program, Memory memory) : pages_(program.known_pages()) {
    pages_.resize(std::min(pages_.size(), kMost));
    words_.reserve(pages_.size() * kWords);
    for (const GpuAddr page : pages_)
      for (uint32_t word = 0; word < kWords; ++word) words_.push_back(program.word(memory, page + 8 * word));
  }
  std::optional<uint64_t> operator()(GpuAddr address) const {
    const GpuAddr page = address & ~(8 * kWords - 1);
    const auto found = std::lower_bound(pages_.begin(), pages_.end(), page);
    if (found == pages_.end() || *found != page) return {};
    return words_[static_cast<size_t>(found - pages_.begin()) * kWords + (address - page) / 8];
  }

 private:
  static constexpr uint32_t kWords = 512;
  static constexpr size_t kMost = 64;
  std::vector<GpuAddr> pages_;
  std::vector<uint64_t> words_;
};

struct TargetInfo {
  const char* name;
  const char* needs;
};
constexpr TargetInfo kTargets[kNumTargets] = {
    {"avx512", "AVX-512 (F, BW, DQ, VL, CD)"}, {"avx2", "AVX2 and F16C"}, {"neon", "NEON"}};
const TargetInfo& info(Target target) { return kTargets[static_cast<size_t>(target)]; }

}  // namespace

std::optional<Target> best_target() {
  for (const Target target : kAllTargets)
    if (can_compile(target)) return target;
  return {};
}

const char* name(Target target) { return info(target).name; }

std::optional<Engine> find_engine(std::string_view name, std::string* why) {
  if (name.empty() || name == "auto") return Engine::kAuto;
  if (name == "off") return Engine::kOff;
  for (const auto& [engine, target] :
       {std::pair(Engine::kAvx512, Target::kAvx512), std::pair(Engine::kAvx2, Target::kAvx2),
        std::pair(Engine::kNeon, Target::kNeon)}) {
    if (name != info(target).name) continue;
    if (can_compile(target)) return engine;
    *why = std::string("the processor has not ") + info(target).needs;
    return {};
  }
  *why = "no engine \"" + std::string(name) + "\" (there are auto, off, avx512, avx2, neon)";
  return {};
}

std::unique_ptr<JitCompiler> make_compiler(Engine engine) {
  if (engine == Engine::kOff) return nullptr;
  if (engine == Engine::kAvx512) return std::make_unique<JitCompiler>(Target::kAvx512, 0);
  if (engine == Engine::kAvx2) return std::make_unique<JitCompiler>(Target::kAvx2, 0);
  if (engine == Engine::kNeon) return std::make_unique<JitCompiler>(Target::kNeon, 0);
  const std::optional<Target> target = best_target();
  return target ? std::make_unique<JitCompiler>(*target) : nullptr;
}

const char* name(Outcome outcome) {
  static constexpr const char* kNames[kNumOutcomes] = {"compiled", "too large", "no code memory"};
  return kNames[static_cast<int>(outcome)];
}

struct JitCompiler::Counters {
  mutable std::mutex mutex;
  Statistics statistics;  // without `leaves` and `cache`
  LeaveCounts leaves{};
  CodeCache cache;  // its programs refer to `leaves`
};

JitCompiler::JitCompiler(Target target, uint64_t warm_up)
    : target_(target),
      warm_up_(warm_up),
      lookups_(target),
      counters_(std::make_unique<Counters>()),
      vc4_(target, static_cast<uint32_t>(warm_up / kInstructionsOfRun)),
      blocks_(target, static_cast<uint32_t>(warm_up / kInstructionsOfBatch)),
      vertices_(target, static_cast<uint32_t>(warm_up / kInstructionsOfBatch)),
      batches_(target, static_cast<uint32_t>(warm_up / kInstructionsOfBatch)) {}
JitCompiler::~JitCompiler() = default;

Statistics JitCompiler::statistics() const {
  Statistics s;
  {
    const std::lock_guard lock(counters_->mutex);
    s = counters_->statistics;
  }
  for (size_t n = 0; n < kNumWhys; ++n) s.leaves[n] = counters_->leaves[n].load(std::memory_order_relaxed);
  s.cache = counters_->cache.figures();
  s.executed = executions.total();
  s.vc4 = vc4_.statistics();
  s.blocks = blocks_.statistics();
  s.vertices = vertices_.statistics();
  s.batches = batches_.statistics();
  s.lookups = lookups_.statistics();
  return s;
}

std::string to_string(const Statistics& s) {
  std::string text = absl::StrFormat("%d QPU programs compiled: %d instructions, %d KiB, %.1f ms",
                                     s.programs[static_cast<size_t>(Outcome::kCompiled)], s.instructions,
                                     s.code_bytes >> 10, s.seconds * 1e3);
  absl::StrAppendFormat(&text, "; %d instructions executed compiled, %d interpreted", s.executed.compiled,
                        s.executed.interpreted);
  absl::StrAppendFormat(&text, "; %d kept (%d KiB), found again %d times", s.cache.programs,
                        s.cache.bytes >> 10, s.cache.hits);
  for (int n = 1; n < kNumOutcomes; ++n)
    if (const uint64_t count = s.programs[static_cast<size_t>(n)])
      absl::StrAppendFormat(&text, "; %d not (%s)", count, name(static_cast<Outcome>(n)));
  for (size_t n = 0; n < kNumWhys; ++n)
    if (s.leaves[n] != 0)
      absl::StrAppendFormat(&text, "; %d times interpreted on (%s)", s.leaves[n],
                            name(static_cast<CodeExit::Why>(n)));
  if (s.blocks.functions + s.blocks.others != 0)
    absl::StrAppend(&text, "; ", FragmentCompiler::text_of(s.blocks));
  if (s.vertices.functions + s.vertices.others != 0)
    absl::StrAppend(&text, "; ", VertexFunctions::text_of(s.vertices));
  if (s.batches.functions + s.batches.others != 0)
    absl::StrAppend(&text, "; ", BatchFunctions::text_of(s.batches));
  if (s.lookups.functions + s.lookups.others != 0)
    absl::StrAppend(&text, "; ", LookupFunctions::text_of(s.lookups));
  if (s.vc4.executed.compiled + s.vc4.executed.interpreted != 0)
    absl::StrAppend(&text, "; ", to_string(s.vc4));
  return text;
}

std::shared_ptr<const HostProgram> JitCompiler::find(const Program& program, Memory memory,
                                                     bool final_section) {
  return counters_->cache.find(program, memory, final_section);
}

/// What a compiled program is told apart by, beside its content.
struct JitCompiler::Source {
  const void* owner;
  GpuAddr entry;
};

std::shared_ptr<const HostProgram> JitCompiler::compile(const Program& program, Memory memory,
                                                        bool final_section, bool* later) {
  const auto read = [&](GpuAddr address) -> std::optional<uint64_t> {
    if (!program.knows_page(address)) return {};
    return program.word(memory, address);
  };
  return compile_now(program, final_section, read, [&] {
    *later = true;
    compile_beside(program, final_section, PagesOfCode(program, memory), {});
  });
}

std::shared_ptr<const HostProgram> JitCompiler::compile_part(const Program& program, bool final_section,
                                                             Words words, Receiver later) {
  const Reader read = [words = std::move(words)](GpuAddr address) -> std::optional<uint64_t> {
    const auto found = std::lower_bound(words.begin(), words.end(), std::pair(address, uint64_t{0}));
    if (found == words.end() || found->first != address) return {};
    return found->second;
  };
  return compile_now(program, final_section, read,
                     [&] { compile_beside(program, final_section, read, std::move(later)); });
}

/// @param beside  called instead where a thread that is about to run the program would wait too long
std::shared_ptr<const HostProgram> JitCompiler::compile_now(const Program& program, bool final_section,
                                                            const Reader& words,
                                                            absl::FunctionRef<void()> beside) {
  const host_time::Scope host(host_time::Block::kCompiling);
  const auto begin = std::chrono::steady_clock::now();
  const bool at_once = warm_up_ == 0;
  CodeContent content;
  bool is_whole = true;
  const flow::Flow flow =
      flow_of({program.generation(), final_section, program.entry(), at_once ? kMaxNodes : kMaxNodesAtOnce},
              at_once ? kMaxWords : kMaxWordsAtOnce, words, content, is_whole);
  if (!at_once && (!is_whole || flow.nodes.size() > kMaxNodesAtOnce)) {
    beside();
    return nullptr;
  }
  g_longest_compiled.note(static_cast<uint32_t>(flow.nodes.size()) * kCompileCost);
  return compile_flow({program.owner(), program.entry()}, flow, std::move(content), begin);
}

/// The client's memory may be gone when the thread comes to it.
/// @param words  as they were
void JitCompiler::compile_beside(const Program& program, bool final_section, Reader words,
                                 Receiver receiver) {
  const Source source = {program.owner(), program.entry()};
  beside_.add(
      {source.owner, source.entry, final_section},
      [this, source, setting = flow::Setting{program.generation(), final_section, program.entry(), kMaxNodes},
       words = std::move(words), receiver = std::move(receiver)] {
        const auto begin = std::chrono::steady_clock::now();
        CodeContent content;
        bool is_whole = true;
        const flow::Flow flow = flow_of(setting, kMaxWords, words, content, is_whole);
        auto code = compile_flow(source, flow, std::move(content), begin);
        if (code && receiver) receiver(std::move(code));
      });
}

/// @param begin  when it began
std::shared_ptr<const HostProgram> JitCompiler::compile_flow(const Source& source, const flow::Flow& flow,
                                                             CodeContent content,
                                                             std::chrono::steady_clock::time_point begin) {
  const auto count = [&](Outcome outcome, size_t instructions = 0, size_t bytes = 0) {
    const std::lock_guard lock(counters_->mutex);
    Statistics& s = counters_->statistics;
    ++s.programs[static_cast<size_t>(outcome)];
    if (outcome != Outcome::kCompiled) host_time::set_not_compiled(source.entry, name(outcome));
    s.instructions += instructions;
    s.code_bytes += bytes;
    s.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  if (flow.nodes.size() > kMaxNodes) {
    count(Outcome::kTooLarge);
    return nullptr;
  }
  if (auto code = counters_->cache.find(content)) return code;
  std::shared_ptr<const ProgramCode> code =
      build_program(target_, flow, std::move(content), lister_, counters_->leaves, lookups_);
  if (!code) {
    count(Outcome::kNoMemory);
    return nullptr;
  }
  count(Outcome::kCompiled, flow.instructions.size(), code->code().size());
  if (listener_)
    listener_(code->code(), absl::StrFormat("QPU program at 0x%08x, %d instructions", source.entry,
                                            flow.instructions.size()));
  counters_->cache.add(code, source.owner);
  return code;
}

}  // namespace v3d::qpu::jit
