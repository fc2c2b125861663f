#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "gpu/qpu/flow/parts.h"

namespace v3d::qpu::flow {
namespace {

using Kind = Exit::Kind;
using Gap = Exit::Gap;

constexpr int32_t kWordBytes = 8;

// Addresses have 32 bits, so indices have 29.
int32_t wrapped(uint32_t index) { return static_cast<int32_t>(index << 3) >> 3; }
int32_t behind(int32_t index) { return wrapped(static_cast<uint32_t>(index) + 1); }

// A node while the graph grows. The ways of `exit` are nodes here.
struct Raw {
  int32_t index;
  InFlight in_flight;
  uint32_t instruction = kNowhere;
  Exit exit;
  uint32_t ways_in = 0;
  uint32_t in_block = 0;  // nodes of the block in front of it, if it has no other beginning
  bool starts_block = false, resumes = false;
};

// Nodes of a block at most: where one begins a thread may look at its job.
constexpr uint32_t kMostInBlock = 512;

struct NodeKey {
  int32_t index;
  InFlight in_flight;
  bool operator==(const NodeKey&) const = default;
};
struct NodeKeyHash {
  size_t operator()(const NodeKey& p) const {
    const InFlight& c = p.in_flight;
    uint64_t bits = static_cast<uint32_t>(p.index);
    bits = bits << 32 | static_cast<uint32_t>(c.branch);
    bits ^= uint64_t{c.switch_in} << 2 ^ uint64_t { c.end_in } << 4 ^ uint64_t { c.branch_in } << 6 ^
            uint64_t { c.vary } << 8 ^ uint64_t { c.sfu } << 10 ^ uint64_t { c.previous_was_thrsw } << 12 ^
            uint64_t { c.last_section } << 13 ^ uint64_t { c.barrier } << 14;
    const uint64_t h = bits * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(h ^ h >> 32);
  }
};

class Walk {
 public:
  Walk(const CodeReader& reader, Flow& flow) : reader_(reader), flow_(flow), setting_(flow.setting) {}

  void run() {
    InFlight start;
    start.last_section = setting_.final_section;
    const uint32_t entry = node_of(0, start);
    raw_[entry].starts_block = true;
    while (!open_.empty()) {
      const uint32_t node = open_.back();
      open_.pop_back();
      Raw r = raw_[node];  // raw_ grows meanwhile
      visit(r);
      raw_[node].instruction = r.instruction;
      raw_[node].exit = r.exit;
    }
    sort_instructions();
    make_blocks();
    flow_.entry = block_of_[entry];
  }

 private:
  uint32_t node_of(int32_t index, const InFlight& in_flight) {
    const auto [found, fresh] = ids_.try_emplace({index, in_flight}, static_cast<uint32_t>(raw_.size()));
    if (fresh) {
      raw_.push_back({.index = index, .in_flight = in_flight, .exit = {}});
      open_.push_back(found->second);
    }
    return found->second;
  }

  // Reads and decodes each index once.
  struct Read {
    uint32_t instruction = kNowhere;
    Gap gap = Gap::kUnreadable;  // why there is none
  };
  Read read(int32_t index) {
    const auto [found, fresh] = read_.try_emplace(index);
    Read& r = found->second;
    if (!fresh) return r;
    const auto word = reader_(index);
    if (!word) return r;
    r.gap = Gap::kInvalid;
    Instruction i;
    if (!decode(setting_.generation, *word, i)) return r;
    r = {static_cast<uint32_t>(flow_.instructions.size()), Gap::kNone};
    flow_.instructions.push_back(i);
    flow_.accesses.push_back(access_of(setting_.generation, i));
    return r;
  }

  void visit(Raw& r) {
    if (raw_.size() > setting_.most_nodes) {
      r.exit.gap = Gap::kTooLarge;
      return;
    }
    const Read found = read(r.index);
    r.instruction = found.instruction;
    r.exit.gap = found.gap;
    if (r.instruction != kNowhere) follow(r);
  }

  static bool hangs(const Branch& b) {
    return b.uniforms && b.uniform_target > static_cast<uint8_t>(BranchTarget::kRegister);
  }

  // What follows an instruction.
  void follow(Raw& r) {
    const Instruction& i = flow_.instructions[r.instruction];
    const Access& access = flow_.accesses[r.instruction];
    if (i.is_branch && hangs(i.branch)) {
      r.exit.gap = Gap::kInvalid;
      return;
    }
    const Advance behind_it = advance(r.in_flight, i, access);
    InFlight c = behind_it.in_flight;
    r.exit.switches = behind_it.switches;
    if (behind_it.ends) {
      r.exit = {Kind::kEnd, Gap::kNone, false, false, kNowhere, kNowhere};
      return;
    }
    if (r.exit.switches) r.exit.may_wait = std::exchange(c.barrier, false);
    if (!i.is_branch) return go_on(r, c, Kind::kNext);

    const bool always = i.branch.cond <= BranchCond::kUndefined;
    r.exit.kind = Kind::kBranch;
    r.exit.gap = Gap::kNone;
    if (i.branch.target == BranchTarget::kAbsolute) flow_.position_dependent = true;
    InFlight taken = c;  // an earlier branch that is under way is forgotten
    taken.branch_in = kBranchDelay;
    taken.branch = r.index;
    r.exit.taken = link(r, behind(r.index), taken);
    if (!always) go_on(r, c, Kind::kBranch);
  }

  // To the next instruction, or to where the branch under way leads.
  void go_on(Raw& r, InFlight c, Kind kind) {
    int32_t to = behind(r.index);
    const bool jumps = c.branch_in != 0 && --c.branch_in == 0;
    if (jumps) {
      const auto target = target_of(c.branch);
      if (!target) {
        r.exit.kind = Kind::kGap;
        r.exit.gap = Gap::kComputed;
        r.exit.taken = kNowhere;
        return;
      }
      to = *target;
      c.branch = 0;
    }
    r.exit.gap = Gap::kNone;
    r.exit.kind = kind == Kind::kNext && jumps ? Kind::kJump : kind;
    r.exit.next = link(r, to, c);
  }

  std::optional<int32_t> target_of(int32_t index) {
    const Branch& b = flow_.instructions[read(index).instruction].branch;
    const uint32_t words = b.offset / kWordBytes;
    if (b.target == BranchTarget::kRelative) return wrapped(static_cast<uint32_t>(index) + 4 + words);
    if (b.target == BranchTarget::kAbsolute && setting_.entry)
      return wrapped(words - *setting_.entry / kWordBytes);
    return {};
  }

  uint32_t link(const Raw& from, int32_t index, const InFlight& in_flight) {
    const uint32_t to = node_of(index, in_flight);
    Raw& r = raw_[to];
    if (++r.ways_in == 1 && from.exit.kind == Kind::kNext && !from.exit.switches)
      r.in_block = (from.in_block + 1) % kMostInBlock;
    r.resumes = r.resumes || from.exit.switches;
    r.starts_block = r.starts_block || from.exit.switches || from.exit.kind != Kind::kNext || r.ways_in > 1 ||
                     r.in_block == 0;
    return to;
  }

  void sort_instructions() {
    std::vector<uint32_t> order, moved(flow_.instructions.size());
    bool any = false;
    for (const auto& [index, r] : read_) {
      if (r.gap == Gap::kUnreadable) continue;
      if (!std::exchange(any, true)) flow_.first_index = index;
      flow_.end_index = index + 1;
      if (r.instruction == kNowhere) continue;
      moved[r.instruction] = static_cast<uint32_t>(order.size());
      order.push_back(r.instruction);
    }
    if (std::is_sorted(order.begin(), order.end())) return;
    std::vector<Instruction> instructions;
    std::vector<Access> accesses;
    for (const uint32_t n : order) {
      instructions.push_back(flow_.instructions[n]);
      accesses.push_back(flow_.accesses[n]);
    }
    for (Raw& r : raw_)
      if (r.instruction != kNowhere) r.instruction = moved[r.instruction];
    flow_.instructions = std::move(instructions);
    flow_.accesses = std::move(accesses);
  }

  void make_blocks() {
    std::vector<uint32_t> starts;
    for (uint32_t n = 0; n < raw_.size(); ++n)
      if (raw_[n].starts_block) starts.push_back(n);
    std::stable_sort(starts.begin(), starts.end(),
                     [&](uint32_t a, uint32_t b) { return raw_[a].index < raw_[b].index; });
    block_of_.resize(raw_.size(), kNowhere);
    for (uint32_t b = 0; b < starts.size(); ++b) block_of_[starts[b]] = b;
    flow_.complete = true;
    for (uint32_t b = 0; b < starts.size(); ++b) make_block(b, starts[b]);
  }

  void make_block(uint32_t number, uint32_t start) {
    Block block{};
    block.first = static_cast<uint32_t>(flow_.nodes.size());
    block.resumes = raw_[start].resumes;
    uint32_t n = start;
    for (;;) {
      const Raw& r = raw_[n];
      flow_.nodes.push_back({r.index, r.instruction, number, r.in_flight});
      if (r.exit.kind != Kind::kNext || raw_[r.exit.next].starts_block) break;
      n = r.exit.next;
    }
    block.count = static_cast<uint32_t>(flow_.nodes.size()) - block.first;
    block.exit = raw_[n].exit;
    for (uint32_t* way : {&block.exit.next, &block.exit.taken})
      if (*way != kNowhere) *way = block_of_[*way];
    if (block.exit.kind == Kind::kGap) flow_.complete = false;
    flow_.blocks.push_back(block);
  }

  const CodeReader& reader_;
  Flow& flow_;
  const Setting setting_;
  std::vector<Raw> raw_;
  std::vector<uint32_t> open_, block_of_;
  absl::flat_hash_map<NodeKey, uint32_t, NodeKeyHash> ids_;
  absl::btree_map<int32_t, Read> read_;
};

}  // namespace

void walk(const CodeReader& reader, Flow& flow) { Walk(reader, flow).run(); }

}  // namespace v3d::qpu::flow
