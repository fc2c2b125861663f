#include "gpu/qpu/jit/code/code_cache.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace v3d::qpu::jit {
namespace {

/// Words from the entry by which programs are told apart at first; shorter programs by fewer.
constexpr size_t kLong = 16, kShort = 4;

uint64_t key_of(std::span<const uint64_t> words, bool final_section) {
  uint64_t key = words.size() * 2 + final_section;
  for (const uint64_t word : words) key = (key ^ word) * 0x9e3779b97f4a7c15u + (key >> 29);
  return key;
}

/// The words one after the other from the entry on. Empty: there is no program that short.
std::span<const uint64_t> beginning(const CodeContent& content) {
  for (const CodeContent::Stretch& stretch : content.stretches) {
    const int64_t skipped = -int64_t{stretch.index};
    if (skipped < 0 || skipped >= int64_t{stretch.count}) continue;
    const auto first = static_cast<size_t>(skipped);
    const size_t count = std::min<size_t>(stretch.count - first, kLong);
    const size_t used = count == kLong ? kLong : std::min(count, kShort);
    return std::span(content.words).subspan(stretch.first + first, used);
  }
  return {};
}

}  // namespace

std::vector<std::shared_ptr<const ProgramCode>> CodeCache::candidates(uint64_t key) const {
  std::vector<std::shared_ptr<const ProgramCode>> found;
  const std::lock_guard lock(mutex_);
  const auto alike = by_key_.find(key);
  if (alike != by_key_.end())
    for (const Uses::iterator entry : alike->second) found.push_back(entry->code);
  return found;
}

void CodeCache::count_hit(const ProgramCode& code, uint64_t key) {
  const std::lock_guard lock(mutex_);
  ++figures_.hits;
  const auto alike = by_key_.find(key);
  if (alike == by_key_.end()) return;
  std::vector<Uses::iterator>& entries = alike->second;
  const auto used =
      std::find_if(entries.begin(), entries.end(), [&](Uses::iterator e) { return e->code.get() == &code; });
  if (used == entries.end()) return;
  Uses& uses = owners_[(*used)->owner].uses;
  uses.splice(uses.begin(), uses, *used);
  std::rotate(entries.begin(), used, used + 1);
}

// Memory of the client is read and compared without the lock.
std::shared_ptr<const ProgramCode> CodeCache::find(const Program& program, Memory memory,
                                                   bool final_section) {
  std::array<uint64_t, kLong> words;
  size_t known = 0;
  for (GpuAddr at = program.entry(); known < kLong && program.knows_page(at); at += 8)
    words[known++] = program.word(memory, at);
  for (const size_t count : {kLong, kShort}) {
    if (known < count) continue;
    const uint64_t key = key_of(std::span(words).first(count), final_section);
    std::shared_ptr<const ProgramCode> best;
    for (auto& code : candidates(key)) {
      const CodeContent& content = code->content();
      if (best && best->content().words.size() >= content.words.size()) continue;
      if (content.final_section == final_section && code->is_known_to(program) &&
          code->matches(memory, program.entry()))
        best = std::move(code);
    }
    if (!best) continue;
    count_hit(*best, key);
    return best;
  }
  return nullptr;
}

std::shared_ptr<const ProgramCode> CodeCache::find(const CodeContent& content) {
  const uint64_t key = key_of(beginning(content), content.final_section);
  for (auto& code : candidates(key)) {
    if (!(code->content() == content)) continue;
    count_hit(*code, key);
    return code;
  }
  return nullptr;
}

void CodeCache::add(std::shared_ptr<const ProgramCode> code, const void* owner) {
  const std::span<const uint64_t> words = beginning(code->content());
  if (words.empty()) return;
  const uint64_t key = key_of(words, code->content().final_section);
  const std::lock_guard lock(mutex_);
  std::vector<Uses::iterator>& alike = by_key_[key];
  if (alike.size() >= kMostAlike) remove(least_used_of_many(alike, owner));
  Owner& o = owners_[owner];
  o.bytes += code->bytes();
  ++figures_.programs;
  figures_.bytes += code->bytes();
  o.uses.push_front({std::move(code), key, owner});
  std::vector<Uses::iterator>& entries = by_key_[key];
  entries.insert(entries.begin(), o.uses.begin());
  make_room();
}

/// Of what begins alike, the last one of whoever has most of it, `owner` if that is one of those: nobody
/// drives out the programs of others by some that begin as theirs do. Among equals the last one of all.
CodeCache::Uses::iterator CodeCache::least_used_of_many(const std::vector<Uses::iterator>& alike,
                                                        const void* owner) {
  std::unordered_map<const void*, size_t> count;
  for (const Uses::iterator entry : alike) ++count[entry->owner];
  if (const auto own = count.find(owner); own != count.end()) ++own->second;
  const auto weight = [&](Uses::iterator entry) {
    return std::pair(count[entry->owner], entry->owner == owner);
  };
  return *std::max_element(alike.rbegin(), alike.rend(),
                           [&](Uses::iterator a, Uses::iterator b) { return weight(a) < weight(b); });
}

void CodeCache::remove(Uses::iterator entry) {
  const auto owner = owners_.find(entry->owner);
  const auto alike = by_key_.find(entry->key);
  std::erase(alike->second, entry);
  if (alike->second.empty()) by_key_.erase(alike);
  const size_t bytes = entry->code->bytes();
  --figures_.programs;
  figures_.bytes -= bytes;
  owner->second.bytes -= bytes;
  owner->second.uses.erase(entry);
  if (owner->second.uses.empty()) owners_.erase(owner);
}

void CodeCache::make_room() {
  while (figures_.bytes > most_bytes_ || figures_.programs > kMostPrograms) {
    const auto most = std::max_element(owners_.begin(), owners_.end(), [](const auto& a, const auto& b) {
      return a.second.bytes < b.second.bytes;
    });
    remove(std::prev(most->second.uses.end()));
  }
}

CodeCache::Figures CodeCache::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

}  // namespace v3d::qpu::jit
