#include "gpu/qpu/graph/program_front_end.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "gpu/qpu/graph/alu_nodes.h"
#include "gpu/qpu/graph/block_targets.h"
#include "gpu/qpu/graph/lookups.h"
#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/graph/scratch.h"
#include "gpu/qpu/graph/uniform_streams.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/alu_lanes.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kOne = 0x3f800000, kHalf = 0x3f000000;
constexpr uint32_t kColorWords = 2;
/// Of the configuration of an access to memory: only lanes with a sample take part.
constexpr uint8_t kPerPixel = 0x80;
/// That are executed: loops are unrolled.
constexpr uint32_t kMostInstructions = 1024;
/// On doubles they take long.
constexpr uint32_t kMostSpecial = 2;

using QpuOp = qpu::Op;
/// Sums and products with a uniform as their second operand, as hosts take words of memory: of two NaNs the
/// first one is the result.
VertexGraph with_uniforms_last(const VertexGraph& of) {
  VertexGraph result = of;
  result.graph = {};
  const auto is_uniform = [&](Id id) { return of.graph[id].op == Op::kUniformWord; };
  for (Node node : of.graph.nodes()) {
    const bool commutes = node.op == Op::kFloatSum || node.op == Op::kFloatProduct;
    if (commutes && is_uniform(node.operands[0]) && !is_uniform(node.operands[1])) {
      result.numbers.push_back(of.graph[node.operands[0]].immediate);
      std::swap(node.operands[0], node.operands[1]);
    }
    result.graph.append(node);
  }
  return result;
}

/// Executes a program on nodes in place of lanes, in the order of the interpreter (qpu.md 3.3): a fragment
/// program, or of vertices a coordinate or vertex program, or of batches of dispatches a compute program.
class FrontEnd {
 public:
  /// @param finds  lookups and known uniforms are found only
  FrontEnd(const flow::Flow& flow, const BlockKey& key, bool finds)
      : flow_(flow),
        generation_(flow.setting.generation),
        isa_(isa(generation_)),
        key_(key),
        finds_(finds),
        accesses_(graph_, tmu::lookup_properties(generation_).wrap16),
        lookups_(graph_, finds ? nullptr : &key.lookups, accesses_),
        uniforms_(graph_, flow, finds ? nullptr : &key.known),
        scratch_(graph_) {}

  std::optional<BlockGraph> make(const char** why) {
    execute(why);
    if (why_ != nullptr) return {};
    if (colors_ != 0) store_colors(graph_, key_.target, {color_, color_exec_}, uniforms_.count());
    BlockGraph made = {without_dead(graph_), uniforms_.count(), uniforms_.indirect(),
                       depth_configuration_, instructions_,     specials_ > kMostSpecial};
    if (const char* const seen = unknown_source(made.graph); seen != nullptr) {
      *why = seen;
      return {};
    }
    return made;
  }
  std::optional<BlockLookups> find_lookups(const char** why) {
    execute(why);
    if (why_ != nullptr) return {};
    return BlockLookups{lookups_.found(), uniforms_.found(), {}, has_scratch_};
  }
  std::optional<VertexGraph> make_vertices(const char** why) {
    stage_ = Stage::kVertices;
    execute_all();
    if (graph_.is_full()) refuse("too many operations");
    *why = why_;
    if (why_ != nullptr) return {};
    return with_uniforms_last({without_dead(graph_), uniforms_.count(), instructions_, rows_, {}});
  }
  /// @param is_whole  as in BatchKey
  std::optional<BatchGraph> make_batches(bool is_whole, const char** why) {
    execute_batch(is_whole, why);
    if (why_ != nullptr) return {};
    return BatchGraph{without_dead(graph_), uniforms_.count(), uniforms_.indirect(), instructions_};
  }
  std::optional<BlockLookups> find_batch_lookups(const char** why) {
    execute_batch(false, why);
    if (why_ != nullptr) return {};
    return BlockLookups{lookups_.found(), uniforms_.found(), {}, false};
  }

 private:
  enum class Stage : uint8_t { kFragments, kVertices, kBatches };
  bool of_vertices() const { return stage_ == Stage::kVertices; }
  bool of_batches() const { return stage_ == Stage::kBatches; }

  struct Result {
    Value a, b, value, exec;
    bool runs = false;
  };

  /// All of it, up to the colour.
  void execute(const char** why) {
    test_depth();
    execute_all();
    if (key_.is_late && !depth_configuration_) refuse("no depth, which tests wait for");
    if (!scratch_.is_all_loaded()) refuse("stores that nothing loads");
    check_limits();
    *why = why_;
  }
  void execute_batch(bool is_whole, const char** why) {
    stage_ = Stage::kBatches;
    coverage_ = is_whole ? bits(~0u) : source(Op::kCovered);
    cover_samples();
    registers_[isa_.workgroup_xy] = source(Op::kPayload, 0);
    registers_[isa_.workgroup_z_index] = source(Op::kPayload, 1);
    execute_all();
    check_limits();
    *why = why_;
  }
  void check_limits() {
    if (graph_.is_full()) refuse("too many operations");
    if (uniforms_.count() > kMostUniforms || uniforms_.indirect().size() > kMostIndirect)
      refuse("many uniforms");
    if (uniforms_.found().size() > (finds_ ? BlockLookups::kMostKnown : 0))
      refuse("many uniforms that have to be known");
  }

  /// The first reason counts.
  void refuse(const char* why) {
    if (why_ == nullptr) why_ = why;
  }
  /// What another order of quads, or another thread, would change. @return  null: nothing does
  static const char* unknown_source(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (node.op == Op::kThreadIndex) return "tidx";
      if (node.op == Op::kLaneIndex) return "eidx";
    }
    return nullptr;
  }

  // ---- Nodes

  Value value(Id id) { return {&graph_, id}; }
  Value bits(uint32_t word) { return constant(graph_, word); }
  Value source(Op op, uint32_t immediate = 0) {
    return value(graph_.make({.op = op, .immediate = immediate}));
  }
  void effect(Op op, Value v, uint32_t immediate = 0) {
    graph_.make({.op = op, .operands = {v.id, kNoNode, kNoNode}, .immediate = immediate});
  }

  // ---- Around the program

  /// tlb::to_stored_depth().
  Value stored_depth(Value z) {
    using Depth = BlockKey::Depth;
    const Value zero = bits(0);
    if (key_.depth == Depth::k32F) return min_floats(max_floats(z, zero), bits(kOne));
    const bool wide = key_.depth == Depth::k24;
    const Value scaled = float_product(z, bits(wide ? 0x4b800000u : 0x47800000u)),  // 2^24, 2^16
        most = bits(wide ? 0x4b7fffffu : 0x477fff00u);
    return truncated(min_floats(max_floats(scaled, zero), most));
  }

  /// A program goes by what the rasteriser covers, or what passed before it. Where all pixels would fail
  /// behind it, it is not executed: nobody sees what it does.
  void test_depth() {
    coverage_ = source(Op::kCovered);
    Value may_pass = coverage_;
    if (key_.depth != BlockKey::Depth::kNone) {
      depth_ = stored_depth(source(Op::kPlane, kPlaneZ));
      stored_ = source(Op::kLoadTile, kTileDepth);
      passes_ = compared(key_.test, depth_, stored_, key_.depth == BlockKey::Depth::k32F);
      may_pass = coverage_ & passes_;
    }
    if (!key_.is_late) pass(may_pass);
    effect(Op::kShade, may_pass);
    if (!key_.is_late) effect(Op::kPassed, may_pass);
    cover_samples();
  }

  void cover_samples() {
    msf_ = coverage_ & 1u;
    sets_samples_ = false;
    lookups_.set_live(coverage_, false);
  }

  void pass(Value passed) {
    coverage_ = passed;
    if (key_.depth != BlockKey::Depth::kNone && key_.writes_depth)
      effect(Op::kStoreTile, choose(passed, depth_, stored_), kTileDepth);
  }

  /// The write of the rasteriser's depth.
  void test_late(Value exec) {
    if (depth_configuration_.has_value() || color_words_ % kColorWords != 0)
      return refuse("several writes with a configuration");
    if (!graph_.is_constant(exec.id, ~0u)) return refuse("a conditional write of depth");
    depth_configuration_ = uniforms_.take();
    if (!key_.is_late) return;
    pass(key_.depth != BlockKey::Depth::kNone ? alive() & passes_ : alive());
    effect(Op::kPassed, coverage_);
    cover_samples();
  }

  /// The pixels whose one sample is covered, and was not discarded.
  Value alive() { return sets_samples_ ? coverage_ & ~equal_words(msf_ & 1u, bits(0)) : coverage_; }

  // ---- Instructions

  /// In their order; where a branch leads has to be known.
  void execute_all() {
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

  /// One that all lanes take, or none; lanes without a sample see nothing of it.
  void execute(const Branch& branch) {
    branches_ = true;
    const bool is_always = branch.cond == BranchCond::kAlways;
    if (!is_always) {
      const bool all = graph_.is_constant(flag_a_.id, ~0u), none = graph_.is_constant(flag_a_.id, 0);
      const bool is_inverted = branch.cond == BranchCond::kNa0 || branch.cond == BranchCond::kAnyna ||
                               branch.cond == BranchCond::kAllna;
      branches_ = all != is_inverted;
      if (!all && !none) expect_none(branch);
    }
    if (const char* const why = uniforms_.branch(branch, branches_); why != nullptr) refuse(why);
  }

  /// A branch that lanes decide on is taken for one that none takes: those over what only some do. Other
  /// batches go another way, as long as nothing was stored.
  void expect_none(const Branch& branch) {
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

  void land(const flow::InFlight& in_flight) {
    if (in_flight.vary & 1) {
      // Of the two that may be under way the older one.
      const uint32_t before = in_flight.vary >> 1 & 1;
      reg(isa_.implicit) = varying_c(varyings_ - 1 - before);
    }
    if (in_flight.sfu & 1) {
      reg(kSfuResult) = sfu_results_[0];
      sfu_results_ = {sfu_results_[1], Value{}};
    }
  }

  Value varying_c(uint32_t number) {
    return number < key_.components ? source(Op::kVaryingC, number) : bits(0);
  }
  Value next_varying() {
    const uint32_t number = varyings_++;
    if (number >= key_.components || (key_.flat >> number & 1)) return bits(0);
    return source(Op::kPlane, kFirstComponent + number);
  }
  /// Where lookups are only found, of batches something that nobody knows.
  Value next_result() { return finds_ && of_batches() ? source(Op::kPayload, 0) : lookups_.take(); }
  Value next_indirect() {
    const Value v = uniforms_.next_indirect();
    if (v.id == kNoNode) refuse("a uniform without address");
    return v;
  }

  void execute(const flow::Node& node) {
    const Instruction* const instruction = flow_.instruction(node);
    if (instruction == nullptr) return refuse("unknown code");
    const Instruction& i = *instruction;
    constexpr uint16_t kOfAll = kThrsw | kLdunif | kLdunifrf,
                       kOfFragments = kLdvary | kLdunifa | kLdunifarf | kLdtmu | kWrtmuc;
    const uint16_t known = of_vertices() ? kOfAll : kOfAll | kOfFragments;
    if (of_batches() && (i.signals & kLdvary)) return refuse("varyings");
    if (of_vertices() && (i.signals & kWrtmuc)) return refuse("lookups");
    if (i.signals & ~known) return refuse("memory or the tile buffer read");
    if (++instructions_ > kMostInstructions) return refuse("too many instructions");
    land(node.in_flight);
    if (i.is_branch) return of_vertices() ? refuse("a branch") : execute(i.branch);
    const Result add = compute(i.add), mul = compute(i.mul);
    if (why_ != nullptr) return;
    Value loaded = bits(0), implicitly = bits(0);
    if (i.signals & kLdtmu) loaded = next_result();
    if (loaded.id == kNoNode) return refuse("a result of no lookup");
    if (i.signals & kLdvary) loaded = next_varying();
    if (i.signals & kLdunifrf) loaded = uniforms_.next();
    if (accesses_.has_stored() && (i.signals & (kLdunifarf | kLdunifa)))
      return refuse("a uniform by an address behind a store");
    if (i.signals & kLdunifarf) loaded = next_indirect();
    if (i.signals & kLdunif) implicitly = uniforms_.next();
    if (i.signals & kLdunifa) implicitly = next_indirect();
    if (why_ != nullptr) return;
    if (i.signals & kWrtmuc) lookups_.configure(uniforms_.take());
    commit(i.add, add);
    commit(i.mul, mul);
    if (i.signals & (kLdunif | kLdunifa)) reg(isa_.implicit) = implicitly;
    if (i.signals & kSignalsWithAddress)
      write(i.signal_magic, i.signal_waddr, Pack::kNone, loaded, bits(~0u));
    const std::array<Value, 2> flags = {flag_a_, flag_b_};
    if (add.runs) set_flags(i.add, add, flags);
    if (mul.runs) set_flags(i.mul, mul, flags);
    if (!add.runs || i.add.op != QpuOp::kSetmsf) return;
    msf_ = choose(add.exec, add.value, msf_);
    sets_samples_ = true;
    lookups_.set_live(~equal_words(msf_, bits(0)), true);
  }

  // ---- Operands and results

  Value& reg(Register r) { return registers_[r]; }

  Value payload(Register r) {
    if (stage_ != Stage::kFragments) {
      refuse("a register without a value");
      return bits(0);
    }
    if (r == isa_.fragment_w || r == isa_.fragment_centroid_w)
      return float_quotient(bits(kOne), source(Op::kPlane, kPlaneR));
    if (r == isa_.fragment_z) return source(Op::kPlane, kPlaneZ);
    refuse("a register without a value");
    return bits(0);
  }
  Value operand(const Operand& o) {
    Value v;
    if (o.kind == Operand::Kind::kImmediate) {
      v = bits(small_immediate(o.index));
    } else if (o.kind == Operand::Kind::kNone) {
      refuse("an operand that there is not");
      return bits(0);
    } else {
      Value& held = reg(o.reg());
      if (held.id == kNoNode) held = payload(o.reg());
      v = held;
    }
    return alu_operand(o.unpack, v);
  }

  /// TIDX and EIDX, which tell in which order quads came, may be of addresses of scratch alone.
  /// @return  no node: it is none of these
  Value state_of(QpuOp op) {
    switch (op) {
      case QpuOp::kVfla:
        return flag_a_ & 0x10001u;
      case QpuOp::kVflna:
        return ~flag_a_ & 0x10001u;
      case QpuOp::kVflb:
        return flag_b_ & 0x10001u;
      case QpuOp::kVflnb:
        return ~flag_b_ & 0x10001u;
      case QpuOp::kTmuwt:  // accesses are done at once
      case QpuOp::kVpmwt:  // and what is written to rows is there
      case QpuOp::kNop:
        return bits(0);
      default:
        if (of_batches()) return op == QpuOp::kEidx ? source(Op::kLaneIndex) : Value{};
        return of_vertices() ? Value{} : state_of_pixels(op);
    }
  }
  Value state_of_pixels(QpuOp op) {
    switch (op) {
      case QpuOp::kTidx:
        return source(Op::kThreadIndex);
      case QpuOp::kEidx:
        return source(Op::kLaneIndex);
      case QpuOp::kXcd:
        return source(Op::kPixel, 0);
      case QpuOp::kYcd:
        return source(Op::kPixel, 1);
      case QpuOp::kFxcd:
        return float_sum(nearest_float(source(Op::kPixel, 0)), bits(kHalf));
      case QpuOp::kFycd:
        return float_sum(nearest_float(source(Op::kPixel, 1)), bits(kHalf));
      case QpuOp::kMsf:
        return msf_;
      case QpuOp::kRevf:
        return source(Op::kBackFacing) & 1u;
      default:
        return {};
    }
  }

  Value function(QpuOp op, Value a, Value b) {
    if (const Value result = alu_result(op, a, b); result.id != kNoNode) return result;
    if (op == QpuOp::kMultop) return rtop_ = cross_products(a, b);
    if (op == QpuOp::kUmul24) return product_of_24_bits(a, b, std::exchange(rtop_, bits(0)));
    const Value special = special_function(op, a);
    if (special.id == kNoNode) return state_of(op);
    ++specials_;
    return special;
  }

  Value lanes_where(Cond cond) {
    if (cond == Cond::kNone) return bits(~0u);
    const Value flag = info(cond).of_b ? flag_b_ : flag_a_;
    return info(cond).inverted ? ~flag : flag;
  }

  Result compute(const AluHalf& half) {
    Result r;
    if (flow::is_idle(generation_, half)) return r;
    r.runs = true;
    r.a = r.b = bits(0);
    if (info(half.op).operands > 0) r.a = operand(half.a);
    if (info(half.op).operands > 1) r.b = operand(half.b);
    r.exec = lanes_where(half.cond);
    if (of_vertices() && (info(half.op).traits & kVpm) != 0) {
      r.value = reach_row(half.op, r);
      return r;
    }
    if (stage_ != Stage::kFragments && half.op == QpuOp::kSetmsf) refuse("lanes that end");
    r.value = half.op == QpuOp::kSetmsf ? r.a : function(half.op, r.a, r.b);
    if (half.op == QpuOp::kSetmsf && half.pack != Pack::kNone) refuse("samples of halves");
    if (r.value.id == kNoNode) refuse(info(half.op).mnemonic);
    return r;
  }

  // ---- Rows of vertices

  /// Loads or stores one that is the same for all lanes.
  Value reach_row(QpuOp op, const Result& r) {
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
  static constexpr uint32_t kMostRow = VertexRows::kByUniform - 1;
  std::optional<uint32_t> row_of(Value number) {
    const Node& node = graph_[number.id];
    if (node.op == Op::kConst) return std::min(node.immediate, kMostRow);
    if (node.op == Op::kUniformWord) return VertexRows::kByUniform + node.immediate;
    return {};
  }

  void commit(const AluHalf& half, const Result& r) {
    if (r.runs && half.op == QpuOp::kSetmsf) return;  // behind the flags
    if (r.runs && info(half.op).has_destination) write(half.magic, half.waddr, half.pack, r.value, r.exec);
  }

  void write(bool magic, uint8_t waddr, Pack pack, Value v, Value exec) {
    if (!magic) return write_register(Register{waddr}, pack, v, exec);
    const WaddrInfo& port = waddr_info(generation_, waddr);
    if (port.effect == Effect::kNothing) return;
    if (port.effect == Effect::kRegister) return write_register(port.reg, pack, v, exec);
    if (pack != Pack::kNone) v = packed(pack, v, bits(0));
    if (of_vertices() && !starts_sfu(port.effect))
      return refuse(port.name != nullptr ? port.name : "an unknown port");
    if (port.effect == Effect::kTlb && !of_batches())
      return port.takes_uniform ? test_late(exec) : write_tile(v, exec);
    if (port.effect == Effect::kUnifa) return set_address(v, exec);
    if (port.effect == Effect::kTmuData) return of_batches() ? accesses_.add_data(v) : scratch_.add_data(v);
    if (port.effect == Effect::kGeneral)
      return of_batches() ? access_memory(port.takes_uniform, v, exec)
                          : access_scratch(port.takes_uniform, v, exec);
    if (starts_sfu(port.effect)) return start_sfu(sfu_operation(port.effect), v);
    if (starts_lookup(port.effect) && scratch_.has_data()) return refuse("an image store");
    if (const char* why = nullptr; lookups_.write(port.effect, v, exec, &why)) {
      if (why != nullptr) refuse(why);
      return;
    }
    refuse(port.name != nullptr ? port.name : "an unknown port");
  }

  static bool starts_lookup(Effect effect) {
    return effect == Effect::kTexture || effect == Effect::kTextureCube || effect == Effect::kTextureFetch ||
           effect == Effect::kTextureLod;
  }

  void set_address(Value v, Value exec) {
    const char* const why =
        graph_.is_constant(exec.id, ~0u) ? uniforms_.set_address(v) : "a conditional address of uniforms";
    if (why != nullptr) refuse(why);
  }

  void access_memory(bool is_configured, Value address, Value exec) {
    if (is_configured) scratch_.configure(uniforms_.known_word(uniforms_.take()));
    const uint8_t configuration = scratch_.take_configuration();
    if (lookups_.has_parameters()) return refuse("parameters of memory");
    const Value lanes = lookups_.lanes((configuration & kPerPixel) != 0) & exec;
    MemoryAccesses::Loaded loaded;
    // What the configuration is, is not known where uniforms are only found.
    if (const char* const why = accesses_.access(configuration, address, lanes, loaded); why != nullptr)
      return finds_ ? void() : refuse(why);
    for (size_t n = 0; n < loaded.count; ++n)
      if (!lookups_.add_result(loaded.words[n])) refuse("many results of lookups");
  }

  void access_scratch(bool is_configured, Value address, Value exec) {
    if (is_configured) scratch_.configure(uniforms_.known_word(uniforms_.take()));
    const uint8_t configuration = scratch_.take_configuration();
    if (lookups_.has_parameters()) return refuse("parameters of memory");
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

  /// Whether what a lane without a sample holds may come to others, or it may get one.
  bool sees_dead_lanes() const {
    const auto crosses = [](const Instruction& i) {
      return i.add.op == QpuOp::kFdx || i.add.op == QpuOp::kFdy || i.add.op == QpuOp::kSetmsf;
    };
    const auto has_footprint = [](const tmu::LookupKind& kind) {
      return kind.levels != tmu::LookupKind::Levels::kBase || kind.most_probes > 1;
    };
    return std::any_of(flow_.instructions.begin(), flow_.instructions.end(), crosses) ||
           std::any_of(key_.lookups.begin(), key_.lookups.end(), has_footprint);
  }

  /// What a register held that had no value does not matter.
  void write_register(Register r, Pack pack, Value v, Value exec) {
    Value& held = reg(r);
    const bool is_whole = pack == Pack::kNone && graph_.is_constant(exec.id, ~0u);
    if (held.id == kNoNode && !is_whole) held = is_payload(r) ? payload(r) : bits(0);
    if (pack != Pack::kNone) v = packed(pack, v, held);
    held = is_whole ? v : choose(exec, v, held);
  }
  bool is_payload(Register r) const {
    return stage_ == Stage::kFragments &&
           (r == isa_.fragment_w || r == isa_.fragment_centroid_w || r == isa_.fragment_z);
  }

  /// Without a configuration, a colour is two words.
  void write_tile(Value v, Value exec) {
    if (colors_ != 0) return refuse("several colours");
    if (key_.is_late && !depth_configuration_) return refuse("colours before depth");
    color_exec_ = color_words_ == 0 ? exec : color_exec_ & exec;
    color_[color_words_++] = v;
    if (color_words_ != kColorWords) return;
    ++colors_;
    color_exec_ = alive() & color_exec_;
  }

  void start_sfu(QpuOp op, Value v) {
    const Value result = function(op, v, v);
    if (result.id == kNoNode) return refuse(info(op).mnemonic);
    // The first place that is free: one at most is under way.
    (sfu_results_[0].id == kNoNode ? sfu_results_[0] : sfu_results_[1]) = result;
  }

  /// @param before  A and B before the instruction
  void set_flags(const AluHalf& half, const Result& r, const std::array<Value, 2>& before) {
    using Combination = FlagWriteInfo::Combination;
    const FlagWriteInfo& write = info(half.flags);
    if (write.combination == Combination::kNone) return;
    const Value x = alu_flag(half.op, write.flag, r.a, r.b, r.value), old = before[0];
    flag_b_ = write.combination == Combination::kPush ? old : before[1];
    switch (write.combination) {
      case Combination::kAnd:
        flag_a_ = old & x;
        return;
      case Combination::kAndNot:
        flag_a_ = old & ~x;
        return;
      case Combination::kNor:
        flag_a_ = ~(old | x);
        return;
      case Combination::kNorNot:
        flag_a_ = ~(old | ~x);
        return;
      default:
        flag_a_ = x;
        return;
    }
  }

  const flow::Flow& flow_;
  const chip::Generation generation_;
  const IsaProperties& isa_;
  const BlockKey& key_;
  const bool finds_;
  Stage stage_ = Stage::kFragments;
  VertexRows rows_;  // of vertices, each once
  Graph graph_;
  const char* why_ = nullptr;
  std::array<Value, kNumRegisters> registers_;
  Value flag_a_ = bits(0), flag_b_ = bits(0);
  Value depth_, stored_, passes_;  // of the test
  Value coverage_, msf_;       // a mask of what the rasteriser and tests left, and what programs see of it
  bool sets_samples_ = false;  // since it was the same
  std::array<Value, kColorWords> color_;
  Value color_exec_;
  uint32_t color_words_ = 0, colors_ = 0;
  std::array<Value, 2> sfu_results_;
  Value rtop_ = bits(0);
  std::optional<uint32_t> depth_configuration_;
  MemoryAccesses accesses_;  // of batches
  Lookups lookups_;
  UniformStreams uniforms_;
  Scratch scratch_;
  bool has_scratch_ = false;
  bool branches_ = false;                                    // the branch that was executed last
  uint32_t varyings_ = 0, instructions_ = 0, specials_ = 0;  // that came so far
};

}  // namespace

std::optional<BlockGraph> block_graph(const flow::Flow& flow, const BlockKey& key, const char** why) {
  return FrontEnd(flow, key, false).make(why);
}

std::optional<BlockLookups> find_lookups(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, true).find_lookups(why);
}

std::optional<BatchGraph> batch_graph(const flow::Flow& flow, const BatchKey& key, const char** why) {
  const BlockKey taken = {.lookups = key.lookups, .known = key.known};
  return FrontEnd(flow, taken, false).make_batches(key.is_whole, why);
}

std::optional<BlockLookups> find_batch_lookups(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, true).find_batch_lookups(why);
}

std::optional<VertexGraph> vertex_graph(const flow::Flow& flow, const char** why) {
  return FrontEnd(flow, {}, false).make_vertices(why);
}

}  // namespace v3d::qpu::graph
