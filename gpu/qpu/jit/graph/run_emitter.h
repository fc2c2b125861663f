/// A RunEmitter makes a function of the host of a run of VideoCore IV's instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/graph/emitter.h"

namespace v3d::qpu::jit {

class RunEmitter final : public GraphEmitter {
 public:
  /// @param code  address of the chunk that the graph's instructions are of
  RunEmitter(const graph::Graph& graph, Width width, GpuAddr code, void* buffer, size_t bytes);

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return true; }

  void uniform(const Node& node);
  void fetch(const Node& node);
  void store(const Node& node);
  void store_mask(const Node& node);
  void call_interpreter(const Node& node);
  void write_port(const Node& node);
  void tmu_parameter(const Node& node);
  void load_tmu(const Node& node);
  void note_place(const Node& node);
  void failures();

  const GpuAddr code_;
  uint32_t uniform_bytes_ = 0;  // that were read since r12 was right
  Xbyak::Label leave_, declined_;

  /// Where a thread hangs, which the interpreter finds once more.
  struct Failure {
    Xbyak::Label entry;
    const Node* node;
  };
  std::list<Failure> failures_;
};

}  // namespace v3d::qpu::jit
