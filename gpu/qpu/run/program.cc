#include "gpu/qpu/run/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace v3d::qpu {
namespace {

std::unique_ptr<const Chunk> decode_chunk(chip::Generation generation, Memory memory, GpuAddr address) {
  auto chunk = std::make_unique<Chunk>();
  chunk->address = address;
  memory.read(address, chunk->words, sizeof(chunk->words));
  for (uint32_t i = 0; i < Chunk::kWords; ++i) {
    if (decode(generation, chunk->words[i], chunk->instructions[i]))
      chunk->steps[i] = make_step(generation, chunk->instructions[i]);
    chunk->steps[i].index = static_cast<uint8_t>(i);
  }
  chunk->steps[Chunk::kWords].kind = Step::Kind::kEnd;
  chunk->steps[Chunk::kWords].index = Chunk::kWords;
  return chunk;
}

uint64_t pieces_of(const BlockCode& code) { return ProgramRoom::pieces_of(code.bytes()); }
uint64_t pieces_of(const BatchCode& code) { return ProgramRoom::pieces_of(code.bytes()); }
uint64_t pieces_of(const VertexCode& code) { return ProgramRoom::pieces_of(code.bytes()); }
uint64_t pieces_of(const BlockLookups& found) {
  return ProgramRoom::pieces_of(found.words.size() * sizeof(found.words[0]) +
                                found.lookups.size() * sizeof(found.lookups[0]) +
                                found.known.size() * sizeof(found.known[0]));
}

bool are_at(Memory memory, GpuAddr entry, const std::vector<uint64_t>& words) {
  return words.empty() || std::memcmp(memory.host(entry), words.data(), words.size() * sizeof(words[0])) == 0;
}

}  // namespace

Program::~Program() {
  size_t pieces = 0;
  for (const HostCode& host : host_code_)
    for (const auto& made : host.made) pieces += ProgramRoom::pieces_of(made->bytes());
  for (const auto* const of : {lookups_, batch_lookups_})
    for (size_t n = 0; n < 2; ++n)
      if (of[n].value) pieces += pieces_of(*of[n].value);
  for (const auto& vertices : vertices_)
    if (vertices.value) pieces += pieces_of(*vertices.value);
  for (const auto& blocks : keyed_blocks_.made)
    if (blocks.code) pieces += pieces_of(*blocks.code);
  for (const auto& batches : keyed_batches_.made)
    if (batches.code) pieces += pieces_of(*batches.code);
  room_->give_back(chunks_.size());
  room_->give_back_of_code(pieces);
}

const Chunk* Program::make_chunk(Memory memory, GpuAddr address) const {
  const GpuAddr start = address & ~(Chunk::kBytes - 1);
  const std::lock_guard lock(mutex_);
  auto found = chunks_.find(start);
  if (found == chunks_.end()) {
    auto chunk = decode_chunk(generation_, memory, start);
    if (chunks_.size() >= kMaxChunks || !room_->take(1)) return nullptr;
    try {
      found = chunks_.emplace(start, std::move(chunk)).first;
    } catch (...) {
      room_->give_back(1);
      throw;
    }
  }
  const Chunk* chunk = found->second.get();
  const uint32_t slot = slot_of(address);
  if (slot < kNear) near_[slot].store(chunk, std::memory_order_release);
  return chunk;
}

bool Program::knows_page(GpuAddr address) const {
  constexpr GpuAddr kPage = 4096;
  const GpuAddr page = address & ~(kPage - 1);
  if (page == (entry_ & ~(kPage - 1))) return true;
  const std::lock_guard lock(mutex_);
  for (GpuAddr start = page; start - page < kPage; start += Chunk::kBytes)
    if (chunks_.contains(start)) return true;
  return false;
}

std::vector<GpuAddr> Program::known_pages() const {
  constexpr GpuAddr kPage = 4096;
  std::vector<GpuAddr> pages = {entry_ & ~(kPage - 1)};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, chunk] : chunks_) pages.push_back(address & ~(kPage - 1));
  }
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  return pages;
}

uint64_t Program::word(Memory memory, GpuAddr address) const {
  const std::lock_guard lock(mutex_);
  const auto found = chunks_.find(address & ~(Chunk::kBytes - 1));
  if (found != chunks_.end()) return found->second->words[address % Chunk::kBytes / sizeof(uint64_t)];
  return memory.load<uint64_t>(address & ~7u);
}

bool Program::use(HostCode& host, std::shared_ptr<const HostProgram> code) const {
  const size_t pieces = ProgramRoom::pieces_of(code->bytes());
  host.made.reserve(host.made.size() + 1);  // what may fail comes first
  if (!room_->take_for_code(pieces)) return false;
  host.made.push_back(std::move(code));
  host.code.store(host.made.back().get(), std::memory_order_release);
  return true;
}

// Looks for code that others made; compiles; does so again when the interpreter came to code that was not
// known before.
void Program::look_at(HostCode& host, const Thread& thread) const {
  const std::unique_lock lock(host.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // somebody does it
  const uint64_t interpreted = host.interpreted.load(std::memory_order_relaxed);
  if (!std::exchange(host.searched, true)) {
    if (auto found = compiler_->find(*this, thread.memory, thread.final_section)) {
      const uint64_t next_look = found->complete() ? UINT64_MAX : compiler_->warm_up() + 1;
      host.next_look = use(host, std::move(found)) ? next_look : UINT64_MAX;
      return;
    }
  }
  if (interpreted < compiler_->warm_up()) {
    host.next_look = compiler_->warm_up();
    return;
  }
  const auto known_chunks = [this] {
    const std::lock_guard chunks_lock(mutex_);
    return chunks_.size();
  };
  const HostProgram* code = host.code.load(std::memory_order_relaxed);
  // Before: what another thread comes to meanwhile may not be in it.
  if (const size_t chunks = known_chunks(); !code || host.chunks != chunks) {
    bool later = false;
    auto made = compiler_->compile(*this, thread.memory, thread.final_section, &later);
    if (later) {
      host.searched = false;
      host.next_look = 2 * (interpreted + 1024);
      return;
    }
    host.chunks = chunks;
    const HostProgram* const newer = made.get();
    code = newer && use(host, std::move(made)) ? newer : nullptr;
  }
  const bool settled = !code || code->complete();
  host.next_look = settled ? UINT64_MAX : 2 * (interpreted + 1024);
}

template <typename T, typename Make>
const T* Program::make_once(Made<T>& made, uint32_t batches_before, const Make& make) const {
  if (made.is_known.load(std::memory_order_acquire)) return made.value.get();
  if (batches_.load(std::memory_order_relaxed) < batches_before) return nullptr;
  const std::unique_lock lock(blocks_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;  // somebody does it
  if (!made.is_known.load(std::memory_order_relaxed)) {
    auto what = make();
    if (what && room_->take_for_code(pieces_of(*what))) made.value = std::move(what);
    made.is_known.store(true, std::memory_order_release);
  }
  return made.value.get();
}

const BlockLookups* Program::block_lookups(Memory memory, bool final_section) const {
  BlockCompiler* const compiler = compiler_ ? compiler_->block_compiler() : nullptr;
  if (!compiler) return nullptr;
  return make_once(lookups_[final_section], compiler->batches_before(),
                   [&] { return compiler->find_lookups(*this, memory, final_section); });
}

const VertexCode* Program::vertices(Memory memory, bool final_section) const {
  VertexCompiler* const compiler = compiler_ ? compiler_->vertex_compiler() : nullptr;
  if (!compiler) return nullptr;
  return make_once(vertices_[final_section], compiler->batches_before(),
                   [&] { return compiler->compile(*this, memory, final_section); });
}

const BlockLookups* Program::batch_lookups(Memory memory, bool final_section) const {
  BatchCompiler* const compiler = compiler_ ? compiler_->batch_compiler() : nullptr;
  if (!compiler) return nullptr;
  const Made<BlockLookups>& made = batch_lookups_[final_section];
  if (!made.is_known.load(std::memory_order_acquire) && !compiler->knows_all(*this, memory, final_section))
    return nullptr;
  return make_once(batch_lookups_[final_section], compiler->batches_before(),
                   [&] { return compiler->find_lookups(*this, memory, final_section); });
}

template <typename Key, typename Code, typename Make>
const Code* Program::find_or_make(Keyed<Key, Code>& keyed, bool final_section, const Key& key,
                                  uint32_t batches_before, const Make& make) const {
  if (const auto* const found = keyed.find(final_section, key)) return found->code.get();
  if (batches_.load(std::memory_order_relaxed) < batches_before) return nullptr;
  const std::unique_lock lock(blocks_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;  // somebody does it
  if (const auto* const found = keyed.find(final_section, key)) return found->code.get();
  const size_t count = keyed.count.load(std::memory_order_relaxed);
  if (count == keyed.kMost) return nullptr;
  std::unique_ptr<const Code> code = make();
  if (code && !room_->take_for_code(pieces_of(*code))) code.reset();
  keyed.made[count] = {key, final_section, std::move(code)};
  keyed.count.store(count + 1, std::memory_order_release);
  return keyed.made[count].code.get();
}

const BlockCode* Program::blocks(Memory memory, bool final_section, const BlockKey& key) const {
  BlockCompiler* const compiler = compiler_ ? compiler_->block_compiler() : nullptr;
  if (!compiler) return nullptr;
  return find_or_make(keyed_blocks_, final_section, key, compiler->batches_before(),
                      [&] { return compiler->compile_blocks(*this, memory, final_section, key); });
}

const BatchCode* Program::batches(Memory memory, bool final_section, const BatchKey& key) const {
  BatchCompiler* const compiler = compiler_ ? compiler_->batch_compiler() : nullptr;
  if (!compiler) return nullptr;
  return find_or_make(keyed_batches_, final_section, key, compiler->batches_before(),
                      [&] { return compiler->compile(*this, memory, final_section, key); });
}

bool Program::matches(Memory memory) const {
  const auto is_same = [&](const auto& keyed) {
    for (size_t n = 0; n < keyed.count.load(std::memory_order_acquire); ++n)
      if (keyed.made[n].code && !are_at(memory, entry_, keyed.made[n].code->words())) return false;
    return true;
  };
  if (!is_same(keyed_blocks_) || !is_same(keyed_batches_)) return false;
  for (const auto* const of : {lookups_, batch_lookups_})
    for (size_t n = 0; n < 2; ++n)
      if (of[n].get() && !are_at(memory, entry_, of[n].get()->words)) return false;
  for (const auto& vertices : vertices_)
    if (vertices.get() && !are_at(memory, entry_, vertices.get()->words())) return false;
  for (HostCode& host : host_code_) {
    const std::lock_guard lock(host.mutex);
    if (!host.made.empty() && !host.made.back()->matches(memory, entry_)) return false;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [address, chunk] : chunks_)
    if (std::memcmp(memory.host(address), chunk->words, sizeof(chunk->words)) != 0) return false;
  return true;
}

}  // namespace v3d::qpu
