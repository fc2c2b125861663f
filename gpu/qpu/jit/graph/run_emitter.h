/// A RunEmitter makes a function of the host of a stretch of VideoCore IV's instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/stored.h"

namespace v3d::qpu::jit {

class RunEmitter final : public GraphEmitter {
 public:
  /// @param code  address of the first of the graph's instructions
  /// @param is_sure  see vc4::RunCode; code for AVX2 always is
  RunEmitter(const graph::Graph& graph, Width width, GpuAddr code, bool is_sure, void* buffer, size_t bytes);

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return true; }

  void decline_rows(uint32_t in, uint32_t out);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void call_interpreter(const Node& node);
  void load_row(const Node& node);
  void store_row(const Node& node);
  void look_up(const Node& node);
  void parameter(const Node& node);
  void copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter);
  void note_place(const Node& node);
  /// Nothing was done if a result so far is unsure.
  void check_sure();
  void leave_unsure();
  /// Before what cannot be done a second time.
  void be_sure();

  // ---- Where code is left
  struct Exit {
    Xbyak::Label entry;
    const Node* node;  // kGuard or kFinish
    Mode mode;
    bool notes_unsure;
    std::vector<Stored> values;
  };
  void leave(const Node& node);
  void guards();
  void store_all(Exit& exit);
  void store(const Stored& what);

  const GpuAddr code_;
  Xbyak::Label leave_, declined_, unsure_exit_;
  std::list<Exit> guards_;
};

}  // namespace v3d::qpu::jit
