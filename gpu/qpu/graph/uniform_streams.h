/// These are the two streams of uniforms of a program as nodes: what stands where is known when the graph is
/// made, and which words of the main one are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::qpu::graph {

/// Streams that only branches and addresses of this kind move: what else there is, is refused.
class UniformStreams {
 public:
  /// @param known  words that are constants. Null: which these are is found only
  UniformStreams(Graph& graph, const flow::Flow& flow, const std::vector<KnownUniform>* known)
      : graph_(graph), flow_(flow), known_(known) {}

  // ---- The main one

  /// Takes a word. @return  its number
  uint32_t take();
  Value next() { return word(take()); }
  uint32_t position() const { return position_; }
  /// That of the branch under way, if it changes it.
  std::optional<uint32_t> target() const { return target_; }
  void go_on_at(uint32_t position, std::optional<uint32_t> target) {
    position_ = position;
    target_ = target;
  }
  /// How many words there are up to the last one that was taken.
  uint32_t count() const { return count_; }

  /// A word on which the graph depends, of a stage that finds them: then 0.
  uint32_t known_word(uint32_t number);
  /// All uniforms of which a value is made become known ones, if that is what is looked for.
  void know_all_of(Value v);
  /// What was found; its limit is for those to check who take it.
  const std::vector<uint16_t>& found() const { return found_; }

  /// A branch with the word that says how far the stream moves if it is taken.
  /// @return  null, or why it is none
  const char* branch(const Branch& branch, bool is_taken);
  /// It takes effect.
  void jump();

  // ---- The second one

  /// @return  null, or why the address is none
  const char* set_address(Value address);
  /// @return  no node: there is no address
  Value next_indirect();
  const std::vector<IndirectWord>& indirect() const { return indirect_; }

 private:
  Value word(uint32_t number);
  const KnownUniform* find(uint32_t number) const;
  bool is_far(int64_t position) const { return position < 0 || position > kMostUniforms; }

  Graph& graph_;
  const flow::Flow& flow_;
  const std::vector<KnownUniform>* const known_;
  uint32_t position_ = 0, count_ = 0;
  std::optional<uint32_t> target_;  // the position when the branch under way takes effect, if it changes
  std::vector<uint16_t> found_;
  std::optional<IndirectWord> address_;
  std::vector<IndirectWord> indirect_;
};

}  // namespace v3d::qpu::graph
