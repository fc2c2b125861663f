/// A LookupEmitter makes a LookupFn of the graph of a texture lookup (gpu/qpu/graph/lookup_graph.h).
#pragma once

#include <cstdint>

#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class LookupEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code
  explicit LookupEmitter(const graph::Graph& graph) : Emitter(graph) {}

 private:
  void begin(Label& body) override;
  void end() override;
  void emit_own(const Node& node) override;
  Memory home_of(const Node& node) override;

  void store_memory(const Node& node);

  int64_t columns_ = -1, rows_ = -1;  // of lanes that share texels, in the pool
};

}  // namespace v3d::qpu::jit::neon
