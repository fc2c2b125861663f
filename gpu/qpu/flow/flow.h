/// A Flow is a QPU program as a graph: one static walk from its entry, made once per program.
///
/// The walk follows the interpreter's rules of control flow (qpu.md 3.4, 7.1, 7.2) exactly: delay slots of
/// branches and thread switches, the pair of thrsw that begins the last section, the end, and the places
/// where the C of ldvary and the SFU results of 4.2 land. An instruction that is executed in several such
/// contexts, for example in the delay slots of a branch and as a target, is several nodes. A conditional
/// branch divides the ways at once: its delay slots are nodes of both, so that every node knows what happens
/// after it.
///
/// Whatever a thread executes is a path through the graph, until it comes to a Gap: what the walk cannot
/// know.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/flow/access.h"
#include "gpu/qpu/isa/instruction.h"

namespace v3d::qpu::flow {

inline constexpr uint32_t kNowhere = ~0u;  ///< no node, block and so on

inline constexpr uint8_t kBranchDelay = 3;  ///< instructions after a branch before it takes effect

/// What is under way before an instruction, as in Thread::Pending::Events. "In n": after n more
/// instructions, 0 for not under way.
struct InFlight {
  uint8_t switch_in = 0, end_in = 0, branch_in = 0;
  uint8_t vary = 0;  ///< bit n: a C lands before the n-th next instruction, bit 0 before this one
  uint8_t sfu = 0;   ///< the same for kSfuResult
  bool previous_was_thrsw = false, last_section = false;
  bool barrier = false;  ///< a write to syncb since the last thread switch
  int32_t branch = 0;    ///< with branch_in: index of the branch that was taken
  auto operator<=>(const InFlight&) const = default;
};

/// What is under way after an instruction.
struct Advance {
  InFlight in_flight;  ///< branch_in and branch as before: where the instruction leads decides
  bool ends = false, switches = false;  ///< the thread ends, or switches, after it
};
/// finish_instruction() of the interpreter, as far as an instruction alone tells.
Advance advance(const InFlight& before, const Instruction& instruction, const Access& access);

/// One execution of an instruction in one state of what is under way.
struct Node {
  int32_t index;         ///< of the instruction, from the entry; its address is the entry's + 8 * index
  uint32_t instruction;  ///< in Flow::instructions; kNowhere if the word is none, or cannot be read
  uint32_t block;
  InFlight in_flight;
};

/// What follows the last node of a block.
struct Exit {
  enum class Kind : uint8_t {
    kNext,    ///< `next`: a way that other ways join, or after a thread switch
    kJump,    ///< `next`: a branch takes effect
    kBranch,  ///< the last node is a branch; `taken`, or `next` if it is not always taken. Delay slots follow
    kEnd,     ///< the thread ends
    kGap,     ///< not known: `gap`
  } kind = Kind::kGap;
  /// Why nothing more is known.
  enum class Gap : uint8_t {
    kNone,
    kComputed,    ///< a branch to the link register, a register or an unknown absolute address takes effect
    kInvalid,     ///< the word is no instruction, or a branch with an undefined source: the thread hangs
    kUnreadable,  ///< there is no code at the address
    kTooLarge,    ///< more than Setting::most_nodes
  } gap = Gap::kNone;
  bool switches = false;                       ///< a thread switch takes effect, whichever way follows
  bool may_wait = false;                       ///< ... and the thread may wait at a barrier there
  uint32_t next = kNowhere, taken = kNowhere;  ///< blocks
  bool operator==(const Exit&) const = default;
};
const char* name(Exit::Gap gap);

/// Nodes that are executed one after the other: entered at the first only, left after the last only.
struct Block {
  uint32_t first, count;  ///< nodes; 1 or more
  Exit exit;
  bool resumes = false;  ///< some way to here has a thread switch: an entry point of resumed threads
  uint8_t loops = 0;     ///< loops around it, counted up to kMaxLoops
  Resources live;        ///< before the first node: what some way from here reads before it is destroyed
};

inline constexpr uint8_t kMaxLoops = 4;

/// How a program uses one register.
struct RegisterUse {
  uint32_t reads = 0, writes = 0;  ///< nodes
  /// The same, a node in n loops counted 16^n times.
  uint64_t weight = 0;
  /// Nodes, in their order, that a value is needed in, written by or landing in; first > last: unused.
  uint32_t first = kNowhere, last = 0;
};

/// One word that a node takes from the uniform streams.
struct UniformRead {
  uint32_t node;
  uint8_t event;  ///< of Access::events()
  Stream stream;
  /// Of the main stream: bytes from the thread's first uniform, the same on every way to here that keeps to
  /// Flow::uniform_jumps. kDynamic: not fixed, as with the other stream.
  int32_t offset;
};
inline constexpr int32_t kDynamic = INT32_MIN;

/// A branch that moves the main stream by the word at `offset`. Offsets after it hold if that word is
/// `distance`; only the uniforms themselves can tell.
struct UniformJump {
  uint32_t node;  ///< of the branch
  int32_t offset;
  int32_t distance;  ///< in bytes, from after the word
};

inline constexpr size_t kMaxNodes = 65536;

struct Setting {
  chip::Generation generation;
  bool final_section;  ///< the thread starts in its last section
  /// Address of the first instruction, a multiple of 8. Without it absolute branches are Gap::kComputed.
  std::optional<uint32_t> entry;
  /// So many nodes, and what they lead to, end in Gap::kTooLarge.
  size_t most_nodes = kMaxNodes;
};

/// The word of the instruction with an index from the entry; empty if there is none to read.
using CodeReader = std::function<std::optional<uint64_t>(int32_t index)>;

struct Flow {
  Setting setting{};
  /// Each instruction once, in the order of their indices, and what it touches.
  std::vector<Instruction> instructions;
  std::vector<Access> accesses;
  /// Blocks in the order of their first instructions, and the nodes of one after the other.
  std::vector<Node> nodes;
  std::vector<Block> blocks;
  uint32_t entry = kNowhere;  ///< block
  /// The program's words are [first_index, end_index): those that the walk read, all of its meaning.
  int32_t first_index = 0, end_index = 0;
  bool position_dependent = false;  ///< has absolute branches
  /// No block ends in a gap: the graph is all there is.
  bool complete = false;

  std::vector<UniformRead> uniforms;  ///< in the order of nodes and events
  std::vector<UniformJump> uniform_jumps;
  std::vector<RegisterUse> registers;  ///< kNumRegisters of them

  const Instruction* instruction(const Node& node) const {
    return node.instruction == kNowhere ? nullptr : &instructions[node.instruction];
  }
  /// Nothing for a node without instruction.
  const Access& access(const Node& node) const;
  /// The words that a node takes.
  std::span<const UniformRead> uniforms_of(uint32_t node) const;
  /// Whether no node follows in the block.
  bool is_last(uint32_t node) const {
    const Block& b = blocks[nodes[node].block];
    return node + 1 == b.first + b.count;
  }
  /// Calls fn(uint32_t) for the nodes that may follow a node: none, one, or two after a branch.
  template <typename Fn>
  void for_each_next(uint32_t node, const Fn& fn) const {
    if (!is_last(node)) return fn(node + 1);
    const Exit& exit = blocks[nodes[node].block].exit;
    if (exit.next != kNowhere) fn(blocks[exit.next].first);
    if (exit.taken != kNowhere) fn(blocks[exit.taken].first);
  }
};

Flow analyse(const Setting& setting, const CodeReader& reader);
/// @param words  the program; the entry is word 0
Flow analyse(const Setting& setting, std::span<const uint64_t> words);

/// Follows a thread through the graph.
class Cursor {
 public:
  explicit Cursor(const Flow& flow)
      : flow_(&flow), node_(flow.entry == kNowhere ? kNowhere : flow.blocks[flow.entry].first) {}
  /// The node of the next instruction; kNowhere after the end, or after a gap.
  uint32_t node() const { return node_; }
  /// It was executed. @param taken  of a branch
  void advance(bool taken);

 private:
  const Flow* flow_;
  uint32_t node_;
};

}  // namespace v3d::qpu::flow
