/// A FrontEnd executes a program on nodes in place of lanes, in the order of the interpreter (qpu.md 3.3): a
/// fragment program, or of vertices a coordinate or vertex program, or of batches of dispatches a compute
/// program or a stretch of one. program_front_end.h and stretches.h say what becomes of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/alu_front_end.h"
#include "gpu/qpu/graph/lookups.h"
#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/scratch.h"
#include "gpu/qpu/graph/stretches.h"
#include "gpu/qpu/graph/uniform_streams.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/qpu/run/vertex_code.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::graph {

class FrontEnd final : public AluFrontEnd {
 public:
  /// @param finds  lookups and known uniforms are found only
  FrontEnd(const flow::Flow& flow, const BlockKey& key, bool finds, const Host& host = {})
      : AluFrontEnd(flow.setting.generation),
        flow_(flow),
        key_(key),
        finds_(finds),
        accesses_(graph_, tmu::lookup_properties(generation_).wrap16),
        lookups_(graph_, finds ? nullptr : &key.lookups, accesses_, host.picks_lanes),
        uniforms_(graph_, flow, finds ? nullptr : &key.known),
        scratch_(graph_) {}

  std::optional<BlockGraph> make(const char** why);
  std::optional<BlockLookups> find_lookups(const char** why);
  std::optional<VertexGraph> make_vertices(const char** why);
  /// @param is_whole  as in BatchKey
  std::optional<BatchGraph> make_batches(bool is_whole, const char** why);
  std::optional<BlockLookups> find_batch_lookups(const char** why);
  std::optional<TracedStretch> trace(const StretchBegin& begin, bool is_whole, BlockLookups* found,
                                     const char** why);

 private:
  static constexpr uint32_t kColorWords = 2;

  enum class Stage : uint8_t { kFragments, kVertices, kBatches };
  bool of_vertices() const { return stage_ == Stage::kVertices; }
  bool of_batches() const { return stage_ == Stage::kBatches; }

  /// All of it, up to the colour.
  void execute(const char** why);
  void begin_batch(bool is_whole);
  void execute_batch(bool is_whole, const char** why);
  void check_limits();

  void refuse(const char* why) override;
  /// What another order of quads, or another thread, would change. @return  null: nothing does
  static const char* unknown_source(const Graph& graph);

  // ---- Around the program

  /// tlb::to_stored_depth().
  Value stored_depth(Value z);

  /// A program goes by what the rasteriser covers, or what passed before it. Where all pixels would fail
  /// behind it, it is not executed: nobody sees what it does.
  void test_depth();

  void cover_samples();

  void pass(Value passed);

  /// The write of the rasteriser's depth.
  void test_late(Value exec);

  /// The pixels whose one sample is covered, and was not discarded.
  Value alive() { return sets_samples_ ? coverage_ & ~equal_words(msf_ & 1u, bits(0)) : coverage_; }

  // ---- Instructions

  /// In their order; where a branch leads has to be known.
  void execute_all();

  // ---- Stretches

  /// What a stretch finds when it begins.
  void take_up(const StretchBegin& begin);
  Value value_of(const Held& held);
  Value& place_of(uint16_t item);

  /// From block to block, up to a barrier, or a branch of which nobody knows where it leads.
  void follow(const StretchBegin& begin, TracedStretch& made);
  void fork(const flow::Exit& exit, bool waits, TracedStretch& made);
  StretchPoint point_at(uint32_t block, std::optional<uint32_t> target);
  std::map<uint16_t, Id> values_behind();

  /// Lanes decide on a branch: what follows is another stretch.
  void decide(const Branch& branch);

  /// The barrier of the supergroup, at the next thread switch.
  void wait(Value token, Value exec);

  /// One that all lanes take, or none; lanes without a sample see nothing of it.
  void execute(const Branch& branch);

  /// A branch that lanes decide on is taken for one that none takes: those over what only some do. Other
  /// batches go another way, as long as nothing was stored.
  void expect_none(const Branch& branch);

  void land(const flow::InFlight& in_flight);

  Value varying_c(uint32_t number);
  Value next_varying();
  /// Where lookups are only found, of batches something that nobody knows.
  Value next_result() { return finds_ && of_batches() ? source(Op::kPayload, 0) : lookups_.take(); }
  Value next_indirect();

  void execute(const flow::Node& node);

  // ---- Operands and results

  Value unwritten(Register r, bool is_read) override;
  Value payload(Register r);

  Value operation(const AluHalf& half, Result& r) override;
  /// TIDX and EIDX, which tell in which order quads came, may be of addresses of scratch alone.
  /// @return  no node: it is none of these
  Value state_of_stage(QpuOp op);
  Value state_of_pixels(QpuOp op);

  // ---- Rows of vertices

  /// Loads or stores one that is the same for all lanes.
  Value reach_row(QpuOp op, const Result& r);
  static constexpr uint32_t kMostRow = VertexRows::kByUniform - 1;
  std::optional<uint32_t> row_of(Value number);

  void write_port(const WaddrInfo& port, uint8_t waddr, Pack pack, Value v, Value exec) override;

  static bool starts_lookup(Effect effect);

  void set_address(Value v, Value exec);

  // ---- Accesses to memory, of batches to any, of fragments to scratch

  /// Takes the configuration. @return  empty: there can be no access
  std::optional<uint8_t> begin_access(bool is_configured);
  void access_memory(uint8_t configuration, Value address, Value exec);
  void access_scratch(uint8_t configuration, Value address, Value exec);

  /// Whether what a lane without a sample holds may come to others, or it may get one.
  bool sees_dead_lanes() const;

  bool is_payload(Register r) const;

  /// Without a configuration, a colour is two words.
  void write_tile(Value v, Value exec);

  const flow::Flow& flow_;
  const BlockKey& key_;
  const bool finds_;
  Stage stage_ = Stage::kFragments;
  VertexRows rows_;  // of vertices, each once
  const char* why_ = nullptr;
  Value depth_, stored_, passes_;  // of the test
  Value coverage_, msf_;       // a mask of what the rasteriser and tests left, and what programs see of it
  bool sets_samples_ = false;  // since it was the same
  std::array<Value, kColorWords> color_;
  Value color_exec_;
  uint32_t color_words_ = 0, colors_ = 0;
  std::optional<uint32_t> depth_configuration_;
  MemoryAccesses accesses_;  // of batches
  Lookups lookups_;
  UniformStreams uniforms_;
  Scratch scratch_;
  bool has_scratch_ = false;
  // Of stretches
  bool is_cut_ = false, at_barrier_ = false;
  Value condition_;  // of the branch that was executed last, if nobody knows where it leads
  bool some_take_ = false;
  Value address_;  // of the second stream, and how far that has come
  uint32_t address_offset_ = 0;
  std::vector<Value> taken_up_;  // results of the TMU

  bool branches_ = false;                     // the branch that was executed last
  uint32_t varyings_ = 0, instructions_ = 0;  // that came so far
};

}  // namespace v3d::qpu::graph
