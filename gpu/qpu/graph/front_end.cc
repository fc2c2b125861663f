#include "gpu/qpu/graph/front_end.h"

#include <algorithm>
#include <utility>

#include "gpu/qpu/graph/alu_nodes.h"
#include "gpu/qpu/run/alu.h"
#include "gpu/qpu/run/alu_lanes.h"

namespace v3d::qpu::graph {
namespace {

/// Of the configuration of an access to memory: only lanes with a sample take part.
constexpr uint8_t kPerPixel = 0x80;
/// That are executed: loops are unrolled.
constexpr uint32_t kMostInstructions = 1024;

}  // namespace

void FrontEnd::refuse(const char* why) {
  if (why_ == nullptr) why_ = why;
}

void FrontEnd::execute_all() {
  using Kind = flow::Exit::Kind;
  if (!flow_.complete || flow_.entry == flow::kNowhere) return refuse("unknown code");
  for (uint32_t block = flow_.entry; why_ == nullptr;) {
    const flow::Block& b = flow_.blocks[block];
    for (uint32_t n = b.first; n < b.first + b.count && why_ == nullptr; ++n) execute(flow_.nodes[n]);
    if (b.exit.kind == Kind::kEnd || why_ != nullptr) return;
    if (b.exit.may_wait) return refuse("a barrier");
    if (b.exit.kind == Kind::kJump) uniforms_.jump();
    block = b.exit.kind == Kind::kBranch && branches_ ? b.exit.taken : b.exit.next;
    if (block == flow::kNowhere) return refuse("a branch");
  }
}

void FrontEnd::execute(const Branch& branch) {
  branches_ = true;
  const bool is_always = branch.cond == BranchCond::kAlways;
  if (!is_always) {
    const bool all = graph_.is_constant(flag_a_.id, ~0u), none = graph_.is_constant(flag_a_.id, 0);
    const bool is_inverted = branch.cond == BranchCond::kNa0 || branch.cond == BranchCond::kAnyna ||
                             branch.cond == BranchCond::kAllna;
    branches_ = all != is_inverted;
    if (!all && !none) is_cut_ ? decide(branch) : expect_none(branch);
  }
  if (const char* const why = uniforms_.branch(branch, branches_); why != nullptr) refuse(why);
}

void FrontEnd::expect_none(const Branch& branch) {
  branches_ = false;
  if (!of_batches() || branch.cond == BranchCond::kA0 || branch.cond == BranchCond::kNa0)
    return refuse("a branch");
  if (accesses_.has_stored()) return refuse("a branch behind a store");
  const bool of_some = branch.cond == BranchCond::kAnya || branch.cond == BranchCond::kAnyna,
             inverted = branch.cond == BranchCond::kAlla || branch.cond == BranchCond::kAnyna;
  Value lanes = inverted ? ~flag_a_ : flag_a_;
  if (branch.msfign != Msfign::kNone) lanes = lanes & lookups_.lanes(branch.msfign == Msfign::kP);
  effect(Op::kExpect, lanes, of_some ? kExpectNone : kExpectSome);
}

void FrontEnd::land(const flow::InFlight& in_flight) {
  if (in_flight.vary & 1) {
    // Of the two that may be under way the older one.
    const uint32_t before = in_flight.vary >> 1 & 1;
    reg(isa_.implicit) = varying_c(varyings_ - 1 - before);
  }
  land_sfu_result((in_flight.sfu & 1) != 0);
}

Value FrontEnd::varying_c(uint32_t number) {
  return number < key_.components ? source(Op::kVaryingC, number) : bits(0);
}

Value FrontEnd::next_varying() {
  const uint32_t number = varyings_++;
  if (number >= key_.components || (key_.flat >> number & 1)) return bits(0);
  return source(Op::kPlane, kFirstComponent + number);
}

Value FrontEnd::next_indirect() {
  if (is_cut_ && address_.id != kNoNode)
    return accesses_.load_word(
        address_, std::exchange(address_offset_, address_offset_ + static_cast<uint32_t>(sizeof(uint32_t))));
  const Value v = uniforms_.next_indirect();
  if (v.id == kNoNode) refuse("a uniform without address");
  return v;
}

void FrontEnd::execute(const flow::Node& node) {
  const Instruction* const instruction = flow_.instruction(node);
  if (instruction == nullptr) return refuse("unknown code");
  const Instruction& i = *instruction;
  constexpr uint16_t kOfAll = kThrsw | kLdunif | kLdunifrf | kLdunifa | kLdunifarf,
                     kOfFragments = kLdvary | kLdtmu | kWrtmuc;
  const uint16_t known = of_vertices() ? kOfAll : kOfAll | kOfFragments;
  if (of_batches() && (i.signals & kLdvary)) return refuse("varyings");
  if (of_vertices() && (i.signals & kWrtmuc)) return refuse("lookups");
  if (i.signals & ~known) return refuse("memory or the tile buffer read");
  if (++instructions_ > kMostInstructions) return refuse(kTooManyInstructions);
  land(node.in_flight);
  if (i.is_branch) return of_vertices() ? refuse("a branch") : execute(i.branch);
  const Result add = compute(i.add), mul = compute(i.mul);
  if (why_ != nullptr) return;
  Value loaded = bits(0), implicitly = bits(0);
  if (i.signals & kLdtmu) loaded = next_result();
  if (loaded.id == kNoNode) return refuse("a result of no lookup");
  if (i.signals & kLdvary) loaded = next_varying();
  if (i.signals & kLdunifrf) loaded = uniforms_.next();
  if (!is_cut_ && accesses_.has_stored() && (i.signals & (kLdunifarf | kLdunifa)))
    return refuse("a uniform by an address behind a store");
  if (i.signals & kLdunifarf) loaded = next_indirect();
  if (i.signals & kLdunif) implicitly = uniforms_.next();
  if (i.signals & kLdunifa) implicitly = next_indirect();
  if (why_ != nullptr) return;
  if (i.signals & kWrtmuc) lookups_.configure(uniforms_.take());
  commit(i.add, add);
  commit(i.mul, mul);
  if (i.signals & (kLdunif | kLdunifa)) reg(isa_.implicit) = implicitly;
  if (i.signals & kSignalsWithAddress) write(i.signal_magic, i.signal_waddr, Pack::kNone, loaded, bits(~0u));
  const std::array<Value, 2> flags = {flag_a_, flag_b_};
  if (add.runs) set_flags(i.add, add, flags);
  if (mul.runs) set_flags(i.mul, mul, flags);
  if (!add.runs || i.add.op != QpuOp::kSetmsf) return;
  msf_ = choose(add.exec, add.value, msf_);
  sets_samples_ = true;
  lookups_.set_live(~equal_words(msf_, bits(0)), true);
}

Value FrontEnd::state_of_stage(QpuOp op) {
  if (is_cut_ && op == QpuOp::kBarrierid) return bits(kBarrierToken);
  if (of_batches()) return op == QpuOp::kEidx ? source(Op::kLaneIndex) : Value{};
  return of_vertices() ? Value{} : state_of_pixels(op);
}

Value FrontEnd::operation(const AluHalf& half, Result& r) {
  if (of_vertices() && (info(half.op).traits & kVpm) != 0) return reach_row(half.op, r);
  if (half.op == QpuOp::kSetmsf) {
    if (stage_ != Stage::kFragments) refuse("lanes that end");
    if (half.pack != Pack::kNone) refuse("samples of halves");
    return r.a;
  }
  const Value result = function(half.op, r.a, r.b);
  return result.id == kNoNode ? state_of_stage(half.op) : result;
}

Value FrontEnd::reach_row(QpuOp op, const Result& r) {
  const bool loads = op == QpuOp::kLdvpmvIn;
  const std::optional<uint32_t> row = row_of(r.a);
  if ((!loads && op != QpuOp::kStvpmv) || !row) {
    refuse(row ? info(op).mnemonic : "a computed row");
    return bits(0);
  }
  std::vector<uint32_t>& known = loads ? rows_.in : rows_.out;
  if (std::find(known.begin(), known.end(), *row) == known.end()) known.push_back(*row);
  if (loads) return source(Op::kLoadAttribute, *row);
  if (!graph_.is_constant(r.exec.id, ~0u)) refuse("a conditional store");
  effect(Op::kStoreOutput, r.b, *row);
  return bits(0);
}

std::optional<uint32_t> FrontEnd::row_of(Value number) {
  const Node& node = graph_[number.id];
  if (node.op == Op::kConst) return std::min(node.immediate, kMostRow);
  if (node.op == Op::kUniformWord) return VertexRows::kByUniform + node.immediate;
  return {};
}

void FrontEnd::write_port(const WaddrInfo& port, uint8_t /*waddr*/, Pack pack, Value v, Value exec) {
  if (pack != Pack::kNone) v = packed(pack, v, bits(0));
  if (of_vertices() && !starts_sfu(port.effect) && port.effect != Effect::kUnifa)
    return refuse(port.name != nullptr ? port.name : "an unknown port");
  if (port.effect == Effect::kTlb && !of_batches())
    return port.takes_uniform ? test_late(exec) : write_tile(v, exec);
  if (port.effect == Effect::kUnifa) return set_address(v, exec);
  if (port.effect == Effect::kTmuData) return of_batches() ? accesses_.add_data(v) : scratch_.add_data(v);
  if (port.effect == Effect::kGeneral) {
    const std::optional<uint8_t> configuration = begin_access(port.takes_uniform);
    if (!configuration) return;
    return of_batches() ? access_memory(*configuration, v, exec) : access_scratch(*configuration, v, exec);
  }
  if (starts_sfu(port.effect)) return start_sfu(sfu_operation(port.effect), v);
  if (is_cut_ && port.effect == Effect::kBarrier) return wait(v, exec);
  if (is_cut_ && starts_lookup(port.effect)) return refuse("a lookup in a program that is cut");
  if (starts_lookup(port.effect) && scratch_.has_data()) return refuse("an image store");
  if (const char* why = nullptr; lookups_.write(port.effect, v, exec, &why)) {
    if (why != nullptr) refuse(why);
    return;
  }
  refuse(port.name != nullptr ? port.name : "an unknown port");
}

bool FrontEnd::starts_lookup(Effect effect) {
  return effect == Effect::kTexture || effect == Effect::kTextureCube || effect == Effect::kTextureFetch ||
         effect == Effect::kTextureLod;
}

void FrontEnd::set_address(Value v, Value exec) {
  if (is_cut_ && graph_.is_constant(exec.id, ~0u)) {
    address_ = v & ~3u;
    address_offset_ = 0;
    return;
  }
  const char* const why =
      graph_.is_constant(exec.id, ~0u) ? uniforms_.set_address(v) : "a conditional address of uniforms";
  if (why != nullptr) refuse(why);
}

std::optional<uint8_t> FrontEnd::begin_access(bool is_configured) {
  if (is_configured) scratch_.configure(uniforms_.known_word(uniforms_.take()));
  const uint8_t configuration = scratch_.take_configuration();
  if (!lookups_.has_parameters()) return configuration;
  refuse("parameters of memory");
  return {};
}

void FrontEnd::access_memory(uint8_t configuration, Value address, Value exec) {
  const Value lanes = lookups_.lanes((configuration & kPerPixel) != 0) & exec;
  MemoryAccesses::Loaded loaded;
  // What the configuration is, is not known where uniforms are only found.
  if (const char* const why = accesses_.access(configuration, address, lanes, loaded); why != nullptr)
    return finds_ ? void() : refuse(why);
  if (finds_) return;
  for (size_t n = 0; n < loaded.count; ++n)
    if (!lookups_.add_result(loaded.words[n])) refuse("many results of lookups");
}

void FrontEnd::access_scratch(uint8_t configuration, Value address, Value exec) {
  has_scratch_ = true;
  if (finds_) {
    scratch_.skip();
    return uniforms_.know_all_of(address);
  }
  Value loaded;
  const Value lanes = lookups_.lanes((configuration & kPerPixel) != 0) & exec;
  if (const char* const why = scratch_.access(configuration, address, lanes, &loaded); why != nullptr)
    return refuse(why);
  if (loaded.id == kNoNode) return;
  if (!lookups_.add_result(sees_dead_lanes() ? choose(lanes, loaded, bits(0)) : loaded))
    refuse("many results of lookups");
}

bool FrontEnd::sees_dead_lanes() const {
  const auto crosses = [](const Instruction& i) {
    return i.add.op == QpuOp::kFdx || i.add.op == QpuOp::kFdy || i.add.op == QpuOp::kSetmsf;
  };
  const auto has_footprint = [](const tmu::LookupKind& kind) {
    return kind.levels != tmu::LookupKind::Levels::kBase || kind.most_probes > 1;
  };
  return std::any_of(flow_.instructions.begin(), flow_.instructions.end(), crosses) ||
         std::any_of(key_.lookups.begin(), key_.lookups.end(), has_footprint);
}

/// What a register held that had no value, and is written in part, does not matter.
Value FrontEnd::unwritten(Register r, bool is_read) {
  return is_read || is_payload(r) ? payload(r) : bits(0);
}

bool FrontEnd::is_payload(Register r) const {
  return stage_ == Stage::kFragments &&
         (r == isa_.fragment_w || r == isa_.fragment_centroid_w || r == isa_.fragment_z);
}

}  // namespace v3d::qpu::graph
