/// A VertexEmitter makes a function of the host of the graph of a batch of vertices: a VertexFn.
#pragma once

#include <cstddef>

#include "gpu/qpu/jit/graph/emitter.h"

namespace v3d::qpu::jit {

class VertexEmitter final : public GraphEmitter {
 public:
  VertexEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes);

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }

  Xbyak::RegExp row(const Node& node, const Xbyak::Reg64& rows);
};

}  // namespace v3d::qpu::jit
