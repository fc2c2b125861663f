/// A ThreadEmitter makes a function of the host of the graph of a part of a thread: a ThreadFn
/// (code/functions.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/thread_calls.h"

namespace v3d::qpu::jit {

class ThreadEmitter final : public GraphEmitter {
 public:
  /// @param first  bytes from the entry of the program to the first instruction
  /// @param ends   the thread ends behind it
  ThreadEmitter(const graph::Graph& graph, Width width, uint32_t first, bool ends, void* buffer,
                size_t bytes);

 private:
  void begin() override;
  void end() override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }

  void note_place(const Node& node);
  void note_uniforms(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void put(const Node& node);
  void read(const Node& node);
  void take_result(const Node& node);
  void take_unifa(const Node& node);
  void configure(const Node& node);
  void write(const Node& node);
  void set_unifa(const Node& node);
  void push_data(const Node& node);
  void set_parameter(const Node& node, WaitingParameter to);
  void call_interpreter(const Node& node);
  void operand_address(const Xbyak::Reg64& to, Id id, int number);
  void lead(const Node& node);

  const uint32_t first_;
  const bool ends_;
  Xbyak::Label leave_, hangs_;
  struct EmptyQueue {
    Xbyak::Label entry;
    const Node* node;
  };
  std::list<EmptyQueue> empty_queues_;
};

}  // namespace v3d::qpu::jit
