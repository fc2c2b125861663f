/// A VertexEmitter makes a VertexFn of the graph of a batch of vertices.
#pragma once

#include <cstdint>

#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class VertexEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code
  explicit VertexEmitter(const graph::Graph& graph);

 private:
  void begin(Label& body) override;
  void end() override;
  void emit_own(const Node& node) override;
  Memory home_of(const Node& node) override;

  Memory row(const Node& node, const Register& rows);
};

}  // namespace v3d::qpu::jit::neon
