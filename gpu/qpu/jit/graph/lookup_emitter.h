/// A LookupEmitter makes a function of the host of the graph of a texture lookup
/// (gpu/qpu/graph/lookup_graph.h), for code of programs, which calls it with these registers: rbx the Thread,
/// r8 the tmu::TextureData, r9 the host's address of half the address space, r10 where return words go. It
/// changes rax, rcx, rdx, rdi and r10, and vectors that such code leaves to what it calls: of AVX-512 2 to 6,
/// of AVX2 the lower half.
#pragma once

#include <cstddef>

#include "gpu/qpu/jit/graph/emitter.h"

namespace v3d::qpu::jit {

class LookupEmitter final : public GraphEmitter {
 public:
  LookupEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes);
  using GraphEmitter::emit;

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }
  void own_data() override;

  template <typename Fn>
  void for_each_kept(Fn fn);
  void leave_out_jump(size_t at);
  void lanes(const Node& node);
  void pixel(const Node& node);
  void store_output(const Node& node);
  void store_memory(const Node& node);

  Xbyak::Label keep_, body_;
  size_t keep_at_ = 0;
  Xbyak::Label pixel_columns_, pixel_rows_;
  bool uses_pixels_ = false;
};

}  // namespace v3d::qpu::jit
