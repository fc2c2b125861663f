/// An Emitter makes a function for AArch64 of a graph: a value is four registers of NEON.
#pragma once

#include <aarch64/macro-assembler-aarch64.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/registers.h"

namespace v3d::qpu::jit::neon {

/// Libvixl's, without constants and branches that it puts between: what a branch does not reach is refused.
/// (And GCC knows whose functions these are, which it takes for the library's else, where they have no
/// names.)
class Assembler final : public vixl::aarch64::MacroAssembler {
 private:
  void BlockPools() override {}
  void ReleasePools() override {}
  void EnsureEmitPoolsFor(size_t) override {}
};

class Emitter : private RegisterScan {
 public:
  static bool has_code(graph::Op op);

  /// @param graph  of operations that have code  @param code  address of the first of its instructions
  Emitter(const graph::Graph& graph, GpuAddr code);
  /// A vc4::RunFn that can stand at any address that is a multiple of 16. Empty: it would be too large.
  std::vector<uint8_t> make();

 private:
  using Op = graph::Op;
  using Node = graph::Node;
  using Masm = vixl::aarch64::MacroAssembler;  // whose functions they are
  using Label = vixl::aarch64::Label;
  using Register = vixl::aarch64::Register;
  using Vector = vixl::aarch64::VRegister;
  using MemOperand = vixl::aarch64::MemOperand;
  struct LaneOperation;
  class Doubles;

  // ---- Registers and memory of values
  Vector part(int unit, int p);
  static Vector scratch(int n);  // 0 to 2
  struct Memory {
    Register base;
    int64_t offset;
  };
  Memory in_thread(int64_t offset);
  Memory in_pool(int64_t offset);
  Memory memory_of(Id id, const Place& place);
  Memory memory_of(Id id) { return memory_of(id, places_[id]); }
  static MemOperand operand_of(const Memory& memory) { return MemOperand(memory.base, memory.offset); }
  enum class Way : uint8_t { kLoad, kStore };
  void move(Way way, const Vector& first, const Vector& second, const Memory& memory);
  void move(Way way, int unit, const Memory& memory);
  /// A value as an instruction takes it: a unit, or one register with a constant in all lanes.
  struct Operand {
    int unit;
    Vector spread;
  };
  Operand operand(Id id, int scratch_for_constant);
  Vector at(const Operand& o, int p) { return o.unit >= 0 ? part(o.unit, p) : o.spread; }
  void store_parts(const Operand& from, const Memory& to);
  void load(int unit, Id id) override;
  void save(int unit, int slot) override;
  void spread(const Vector& to, uint32_t bits);
  int64_t pooled(uint64_t low, uint64_t high);
  int64_t table(int64_t& at, uint32_t (*word_of)(uint32_t lane));
  int64_t lane_index();
  int64_t lane_bits();

  // ---- Code
  void decline(const Needs& needs);
  void prologue(Label& body);
  void epilogue();
  void emit(const Node& node) override;
  static const LaneOperation* lane_operation(Op op);
  void lanes(const Node& node, const LaneOperation& operation);
  using Emit = void (Emitter::*)(const Node& node);
  static Emit other_operation(Op op);
  void nothing(const Node&) {}
  void shift(const Node& node);
  void shift_by(const Node& node, uint32_t bits);
  void choose(const Node& node);
  void toward_zero(const Node& node);
  struct Unsure;
  Unsure& unsure_of(const Node& node, int to, const Operand& a, const Operand& b);
  void check(int unit, uint32_t limit, Label* unsure);
  void reciprocal(const Node& node);
  void special(const Node& node);
  void load_mask(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void load_row(const Node& node);
  void store_row(const Node& node);
  void integer_of(const Node& node);
  void parameter(const Node& node);
  void look_up(const Node& node);
  void copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter);
  void call_interpreter(const Node& node);
  void call(const void* function);
  void note_place(const Node& node);
  void mask_to(const Register& to, Id mask, const Place& place);
  /// How the host computes with floats: as its program does, or toward zero and without denormals.
  enum class Mode : uint8_t { kAny, kHost, kOwn };
  void set_mode(Mode mode);
  void unsure_results();
  void unsure_routine(Op op, Label& label);

  Assembler masm_;
  const GpuAddr code_;
  const bool rounds_;
  const std::vector<bool> zero_is_loose_;
  uint32_t used_ = 0;      // units
  bool has_zero_ = false;  // in v28
  Mode current_mode_ = Mode::kHost;
  Label leave_, declined_, pool_label_;
  std::vector<uint64_t> pool_;
  std::map<std::pair<uint64_t, uint64_t>, int64_t> pooled_;
  int64_t lane_index_ = -1, lane_bits_ = -1;

  struct Unsure {
    Label entry, back;
    Op op;
    int to;
    struct {
      int unit;  // below 0: a constant
      uint32_t bits;
    } operands[2];
  };
  std::list<Unsure> unsure_;

  // ---- Where code is left
  /// A value that others find in the thread, and where it is.
  struct Stored {
    const Node* node;
    Place place;
  };
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
  void store_to(Id id, const Place& place, const Memory& to);
  std::pair<Vector, Vector> pair_of(Id id, const Place& place, int p, int scratch_number);
  std::list<Exit> guards_;
};

}  // namespace v3d::qpu::jit::neon
