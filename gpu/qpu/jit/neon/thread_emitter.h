/// A ThreadEmitter makes a ThreadFn of the graph of a part of a thread (gpu/qpu/graph/thread_front_end.h).
#pragma once

#include <cstdint>
#include <list>

#include "gpu/qpu/jit/graph/thread_calls.h"
#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class ThreadEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code
  /// @param first  bytes from the entry of the program to the first instruction
  /// @param ends   the thread ends behind it
  ThreadEmitter(const graph::Graph& graph, uint32_t first, bool ends);

 private:
  void begin(Label& body) override;
  void end() override;
  void emit_own(const Node& node) override { (this->*own_operation(node.op))(node); }
  Memory home_of(const Node& node) override;
  using EmitOwn = void (ThreadEmitter::*)(const Node& node);
  static EmitOwn own_operation(Op op);

  void nothing_own(const Node&) {}
  void load_mask(const Node& node);
  void note_place(const Node& node);
  void note_uniforms(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void put(const Node& node);
  void read(const Node& node);
  void take_result(const Node& node);
  void take_unifa(const Node& node);
  void write(const Node& node);
  void set_parameter(const Node& node, WaitingParameter to);
  void call_interpreter(const Node& node);
  void operand_address(const Register& to, Id id, int number);
  void lead(const Node& node);

  const uint32_t first_;
  const bool ends_;
  Label leave_, hangs_;
  struct EmptyQueue {
    Label entry;
    const Node* node;
  };
  std::list<EmptyQueue> empty_queues_;
};

}  // namespace v3d::qpu::jit::neon
