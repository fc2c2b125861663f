#include "gpu/qpu/run/vc4_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "gpu/qpu/run/vc4_actions.h"
#include "gpu/qpu/run/vc4_stretch.h"

namespace v3d::qpu::vc4 {

namespace {

/// How often code may be unsure before there is some that never is.
constexpr uint32_t kMostUnsure = 64;
/// Instructions that are compiled of a program, for each that is decoded: stretches may have the same ones.
constexpr size_t kCompiledPerDecoded = 4;

/// Actions of one step.
struct OwnActions {
  uint16_t first = 0, end = 0;
  bool are_all = false;  ///< they are what it does
};
using AllActions = std::array<OwnActions, Chunk::kWords>;

AllActions make_actions(Chunk& chunk) {
  AllActions own;
  std::vector<Action> actions;
  for (uint32_t n = 0; n < Chunk::kWords; ++n) {
    const auto first = static_cast<uint16_t>(actions.size());
    const bool sfu_at_once =
        n + 2 < Chunk::kWords && !touches_r4(chunk.steps[n + 1]) && !touches_r4(chunk.steps[n + 2]);
    if (!add_actions(chunk.steps[n], sfu_at_once, actions)) continue;
    if (actions.size() > Chunk::kActions) break;
    own[n] = {first, static_cast<uint16_t>(actions.size()), true};
  }
  std::copy_n(actions.begin(), std::min<size_t>(actions.size(), Chunk::kActions), chunk.actions);
  return own;
}

/// After which a run of actions ends: who finds no memory at sixteen addresses is to pay for that before the
/// next lookup.
bool starts_lookup(const Step& step) {
  const auto is_s = [](const Half& half) {
    return half.to.port == WritePort::kTmu0S || half.to.port == WritePort::kTmu1S;
  };
  return is_s(step.add) || is_s(step.mul);
}

void make_runs(Chunk& chunk) {
  const AllActions own = make_actions(chunk);
  const auto ends = [&](uint32_t n) { return chunk.steps[n].signal == Signal::kEnd; };
  for (uint32_t n = Chunk::kWords; n-- > 0;) {
    StepRun& run = chunk.steps[n].run;
    if (!own[n].are_all) continue;
    if (ends(n)) {
      // Two more, which else go on as if nothing ended.
      if (n + 2 < Chunk::kWords && own[n + 1].are_all && own[n + 2].are_all && !ends(n + 1) && !ends(n + 2))
        run = {own[n].first, own[n + 2].end, 3, true};
      continue;
    }
    run = {own[n].first, own[n].end, 1, false};
    if (n + 1 == Chunk::kWords || starts_lookup(chunk.steps[n])) continue;
    if (const StepRun& next = chunk.steps[n + 1].run; next.steps != 0)
      run = {own[n].first, next.end, static_cast<uint8_t>(next.steps + 1), next.ends};
  }
}

std::unique_ptr<const Chunk> decode_chunk(Memory memory, GpuAddr address) {
  auto chunk = std::make_unique<Chunk>();
  chunk->address = address;
  memory.read(address, chunk->words, sizeof(chunk->words));
  for (uint32_t n = 0; n < Chunk::kWords; ++n) {
    chunk->steps[n] = make_step(decode(chunk->words[n]));
    chunk->steps[n].index = static_cast<uint8_t>(n);
    chunk->steps[n].compiles = may_be_compiled(chunk->steps[n]);
  }
  make_runs(*chunk);
  chunk->steps[Chunk::kWords].kind = Step::Kind::kEnd;
  chunk->steps[Chunk::kWords].index = Chunk::kWords;
  return chunk;
}

}  // namespace

const Chunk* Program::make_chunk(Memory memory, GpuAddr address) const {
  const GpuAddr start = address & ~(Chunk::kBytes - 1);
  const std::scoped_lock lock(mutex_);
  auto found = chunks_.find(start);
  if (found == chunks_.end()) {
    auto made = decode_chunk(memory, start);
    if (chunks_.size() >= kMaxChunks || !room_->take(1)) return nullptr;
    try {
      found = chunks_.emplace(start, std::move(made)).first;
    } catch (...) {
      room_->give_back(1);
      throw;
    }
  }
  const Chunk* chunk = found->second.get();
  const uint32_t slot = start / Chunk::kBytes - entry_ / Chunk::kBytes;
  if (slot < kNear) near_[slot].store(chunk, std::memory_order_release);
  return chunk;
}

const Chunk* Program::known_chunk(GpuAddr address) const {
  const auto found = chunks_.find(address);
  return found == chunks_.end() ? nullptr : found->second.get();
}

const RunCode* Program::find_code(const Chunk& chunk, uint32_t first, uint32_t& room) const {
  Chunk::HostCode& host = chunk.host[first];
  const uint32_t executed = host.executed.load(std::memory_order_relaxed);
  if (executed == Chunk::kRefused) return nullptr;
  if (executed < compiler_->runs_before()) {
    host.executed.store(executed + 1, std::memory_order_relaxed);  // some may be lost
    return nullptr;
  }
  return compile(chunk, first, false, room);
}

void Program::note_unsure(const Chunk& chunk, uint32_t first, uint32_t& room) const {
  Chunk::HostCode& host = chunk.host[first];
  const uint32_t unsure = host.unsure.load(std::memory_order_relaxed) + 1;
  host.unsure.store(unsure, std::memory_order_relaxed);
  if (unsure >= kMostUnsure && !host.code.load(std::memory_order_relaxed)->is_sure)
    compile(chunk, first, true, room);
}

const RunCode* Program::compile(const Chunk& chunk, uint32_t first, bool is_sure, uint32_t& room) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  Chunk::HostCode& host = chunk.host[first];
  if (const RunCode* code = host.code.load(std::memory_order_relaxed); code && code->is_sure >= is_sure)
    return code;
  const Stretch stretch = stretch_at(chunk, first, [this](GpuAddr address) { return known_chunk(address); });
  const size_t steps = stretch.steps.size();
  if (!stretch.is_known || steps > room) return nullptr;
  host.executed.store(Chunk::kRefused, std::memory_order_relaxed);
  host.unsure.store(0, std::memory_order_relaxed);
  if (steps == 0 || compiled_ > kCompiledPerDecoded * Chunk::kWords * chunks_.size()) return nullptr;
  room -= static_cast<uint32_t>(steps);
  compiled_ += steps;
  std::unique_ptr<const RunCode> made = compiler_->compile(stretch, is_sure);
  if (!made) return nullptr;
  const size_t pieces = ProgramRoom::pieces_of(made->bytes());
  codes_.reserve(codes_.size() + 1);
  if (!room_->take_for_code(pieces)) return nullptr;
  code_pieces_ += pieces;
  const RunCode* const code = made.get();
  codes_.push_back(std::move(made));
  host.code.store(code, std::memory_order_release);
  return code;
}

bool Program::matches(Memory memory) const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(chunks_.begin(), chunks_.end(), [&](const auto& entry) {
    uint64_t words[Chunk::kWords];
    memory.read(entry.first, words, sizeof(words));
    return std::memcmp(words, entry.second->words, sizeof(words)) == 0;
  });
}

}  // namespace v3d::qpu::vc4
