/// A RunEmitter makes a vc4::RunFn of a stretch of VideoCore IV's instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/stored.h"
#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class RunEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code  @param code  address of the first of its instructions
  RunEmitter(const graph::Graph& graph, GpuAddr code);

 private:
  void begin(Label& body) override;
  void end() override;
  void emit_own(const Node& node) override { (this->*own_operation(node.op))(node); }
  Memory home_of(const Node& node) override;
  using EmitOwn = void (RunEmitter::*)(const Node& node);
  static EmitOwn own_operation(Op op);

  static Memory in_thread(int64_t offset);
  void decline(const Needs& needs);
  void nothing_own(const Node&) {}
  void load_mask(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void load_row(const Node& node);
  void store_row(const Node& node);
  void parameter(const Node& node);
  void look_up(const Node& node);
  void copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter);
  void call_interpreter(const Node& node);
  void note_place(const Node& node);

  // ---- Where code is left
  struct Exit {
    Label entry;
    const Node* node = nullptr;  // kGuard or kFinish
    Mode mode = Mode::kHost;
    std::vector<Stored> values;
  };
  void leave(const Node& node);
  void guards();
  void store_all(Exit& exit);
  void store(const Stored& what);

  const GpuAddr code_;
  const bool rounds_;
  Label leave_, declined_;
  std::list<Exit> guards_;
};

}  // namespace v3d::qpu::jit::neon
