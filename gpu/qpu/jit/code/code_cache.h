/// A CodeCache has the compiled programs of all clients, found by their words: a shader that is uploaded
/// again, in another context or after another one, is compiled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/code/program_code.h"
#include "gpu/qpu/run/program.h"

namespace v3d::qpu::jit {

/// Thread safe. What it holds is bounded; code that it lets go lives as long as a program uses it.
class CodeCache {
 public:
  /// Of host memory that is kept, for all clients together, and of programs, since each is a mapping of the
  /// host. Beyond it who has most memory gives first, and of that what was used least recently: with n
  /// address spaces open, each keeps at least the n-th part.
  static constexpr size_t kMostBytes = size_t{64} << 20, kMostPrograms = 2048;
  /// Programs that begin with the same words. Of who has most of them the one that was used least recently
  /// leaves.
  static constexpr size_t kMostAlike = 16;

  /// @param most_bytes  another limit, for tests
  explicit CodeCache(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// Code of the words at the entry of a program, of which only the known pages are read.
  std::shared_ptr<const ProgramCode> find(const Program& program, Memory memory, bool final_section);
  /// Code of exactly this content.
  std::shared_ptr<const ProgramCode> find(const CodeContent& content);
  /// @param owner  whose memory it counts as: Program::owner()
  void add(std::shared_ptr<const ProgramCode> code, const void* owner);

  struct Figures {
    size_t programs = 0, bytes = 0;
    uint64_t hits = 0;  ///< times that a program was found
  };
  Figures figures() const;

 private:
  struct Entry {
    std::shared_ptr<const ProgramCode> code;
    uint64_t key;
    const void* owner;
  };
  using Uses = std::list<Entry>;  // most recent first
  struct Owner {
    Uses uses;
    size_t bytes = 0;
  };

  std::vector<std::shared_ptr<const ProgramCode>> candidates(uint64_t key) const;
  void count_hit(const ProgramCode& code, uint64_t key);
  static Uses::iterator least_used_of_many(const std::vector<Uses::iterator>& alike, const void* owner);
  void remove(Uses::iterator entry);
  void make_room();

  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Owner> owners_;
  std::unordered_map<uint64_t, std::vector<Uses::iterator>> by_key_;  // the one that was used last in front
  Figures figures_;
};

}  // namespace v3d::qpu::jit
