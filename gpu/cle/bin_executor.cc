/// The binning thread: runs a bin control list (cle-and-tiles.md 2.2, 2.3, 2.7).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/dump.h"
#include "gpu/cle/executor.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/shader_record.h"
#include "gpu/cle/state_packets.h"
#include "gpu/cle/tile_size.h"
#include "gpu/ptb/binner.h"
#include "gpu/ptb/primitive_assembler.h"

namespace v3d::cle {

namespace {

/// Packets and branches after which a list counts as running in circles. The longest lists of conformance
/// tests have some hundred thousand packets; drivers branch from one BO to the next.
constexpr uint32_t kMaxPackets = 1u << 24, kMaxBranches = 1u << 16;
/// Drivers nest one level (cle-and-tiles.md 2.2).
constexpr size_t kMaxCallDepth = 4;

/// Modes of draws "with transform feedback" name the same primitives: specs, not modes, turn it on (Mesa
/// v3dx_draw.c, v3d_draw_vbo).
constexpr draw::Mode primitive_mode(uint32_t mode) {
  constexpr uint32_t kFirst = 16, kLast = 22;
  return static_cast<draw::Mode>(mode >= kFirst && mode <= kLast ? mode - kFirst : mode);
}

/// What looking at an indirect draw record costs of the job's allowance, in vertices.
constexpr uint64_t kRecordCost = 16;

/// Indirect draw records in memory (cle-and-tiles.md 1.5.5).
/// Of a packet that draws what records in memory say.
struct RecordFields {
  Field count, stride, address;
};
struct ArrayRecord {
  uint32_t count, instances, first_vertex, base_instance;
};
struct IndexedRecord {
  uint32_t count, instances, first_index;
  int32_t vertex_offset;
  uint32_t base_instance;
};

class BinExecutor {
 public:
  BinExecutor(const JobContext& job, GpuAddr start, GpuAddr end)
      : job_(job), generation_(job.profile->generation), pc_(start), end_(end), binner_(job) {}

  std::shared_ptr<draw::BinResult> run();

 private:
  void execute(const Packet& packet);
  bool execute_flow(const Packet& packet);
  bool execute_draw(const Packet& packet);
  bool execute_feedback(const Packet& packet);
  void call(GpuAddr to, GpuAddr back);
  void configure_binning(const Packet& packet);
  draw::DrawCall draw_call(const Packet& packet) const;
  /// @param fill  puts into the call what only this kind of Record says
  template <typename Record, typename Fill>
  void draw_records(const Packet& packet, const RecordFields& fields, Fill fill);
  void draw_indirect_arrays(const Packet& packet);
  void draw_indirect_indexed(const Packet& packet);
  void draw(const draw::DrawCall& call);
  void load_record();
  void set_feedback_specs(const Packet& packet);
  void transfer_counts(const Packet& packet);
  void fail(const Packet& packet, const std::string& why);

  const JobContext& job_;
  const chip::Generation generation_;
  GpuAddr pc_, end_;
  std::vector<GpuAddr> calls_;
  uint32_t branches_ = 0;  // calls are none

  draw::DrawState state_ = initial_state();
  uint32_t layers_ = 1;
  GpuAddr index_buffer_ = 0;
  uint32_t index_buffer_size_ = 0;
  int32_t base_vertex_ = 0;  // both for the next draw only
  uint32_t base_instance_ = 0;
  uint32_t semaphores_ = 0;
  uint32_t other_stream_ = 0;  // that transform feedback is to capture, besides 0; 0: none
  std::shared_ptr<const draw::ShaderRecord> record_;  // of state_.shader_record; null: not yet read
  ptb::Binner binner_;
};

void BinExecutor::fail(const Packet& packet, const std::string& why) {
  job_.error->set(absl::StrFormat("packet %d (%s) at 0x%08x: %s", packet.number,
                                  packet.info ? packet.info->name : "unknown", packet.address, why));
}

std::shared_ptr<draw::BinResult> BinExecutor::run() {
  uint32_t packets = 0;
  Packet packet;
  while ((pc_ != end_ || !calls_.empty()) && !job_.stopped()) {
    if (++packets > kMaxPackets || branches_ > kMaxBranches) {
      job_.error->set_hang(absl::StrFormat("bin list does not reach its end 0x%08x: %d packets, %d branches",
                                           end_, packets, branches_));
      break;
    }
    job_.moved();
    if (!decode(job_.memory, pc_, generation_, &packet)) {
      fail(packet, "this generation has no such packet");
      break;
    }
    pc_ += packet.length;
    if (job_.work) job_.work->packet();
    execute(packet);
  }
  std::shared_ptr<draw::BinResult> result = binner_.finish();
  result->semaphores = semaphores_;
  return result;
}

void BinExecutor::execute(const Packet& p) {
  std::string error;
  if (apply_state(p, generation_, &state_, &error)) {
    if (!error.empty()) return fail(p, error);
    if (p.opcode == Opcode::kGlShaderState || p.opcode == Opcode::kGlShaderStateIncludingGs)
      record_ = nullptr;
    return;
  }
  if (execute_draw(p) || execute_flow(p) || execute_feedback(p)) return;
  switch (p.opcode) {
    case Opcode::kNumberOfLayers:
      layers_ = p.get(field("Number of Layers", "Number of Layers"));
      return;
    case Opcode::kTileBinningModeCfg:
      configure_binning(p);
      return;
    case Opcode::kBaseVertexBaseInstance:
      base_vertex_ = static_cast<int32_t>(p.get(field("Base Vertex Base Instance", "Base Vertex")));
      base_instance_ = p.get(field("Base Vertex Base Instance", "Base Instance"));
      return;
    case Opcode::kIndexBufferSetup:
      index_buffer_ = p.get(field("Index Buffer Setup", "Address"));
      index_buffer_size_ = p.get(field("Index Buffer Setup", "Size"));
      return;
    case Opcode::kIncrementSemaphore:
      ++semaphores_;
      return;
    // Nothing to do: caches are coherent, and what binning waits for has happened.
    case Opcode::kNop:
    case Opcode::kFlush:
    case Opcode::kFlushAllState:
    case Opcode::kStartTileBinning:
    case Opcode::kFlushVcdCache:
    case Opcode::kVcmCacheSize:
    case Opcode::kL1CacheFlushControl:
    case Opcode::kL2TCacheFlushControl:
      return;
    default:
      fail(p, "not implemented in bin lists");
  }
}

bool BinExecutor::execute_flow(const Packet& p) {
  switch (p.opcode) {
    case Opcode::kBranch:
      ++branches_;
      pc_ = p.get(field("Branch", "address"));
      return true;
    case Opcode::kBranchToSubList:
      if (calls_.size() == kMaxCallDepth) {
        fail(p, "too many nested sub-lists");
        return true;
      }
      calls_.push_back(pc_);
      pc_ = p.get(field("Branch to Sub-list", "address"));
      return true;
    case Opcode::kReturnFromSubList:
      if (calls_.empty()) {
        fail(p, "not in a sub-list");
        return true;
      }
      pc_ = calls_.back();
      calls_.pop_back();
      return true;
    default:
      return false;
  }
}

void BinExecutor::configure_binning(const Packet& p) {
  if (binner_.has_frame()) return fail(p, "a second one in the list");
  ptb::BinFrame frame;
  frame.layers = layers_;
  const BinningSizes sizes = binning_sizes(p, generation_);
  if (sizes.unsupported != nullptr)
    return fail(p, absl::StrFormat("%s is not implemented", sizes.unsupported));
  if (sizes.tile.width > 64 || sizes.tile.height > 64) return fail(p, "tiles larger than 64 x 64 pixels");
  frame.width = sizes.width;
  frame.height = sizes.height;
  frame.tile_width = sizes.tile.width;
  frame.tile_height = sizes.tile.height;
  binner_.set_frame(frame);
}

/// The fields of direct draws; indirect ones fill in what their records hold.
draw::DrawCall BinExecutor::draw_call(const Packet& p) const {
  if (const std::optional<draw::DrawCall> complete = complete_draw_call(p, generation_)) return *complete;
  draw::DrawCall c;
  c.index_buffer = index_buffer_;
  c.index_buffer_size = index_buffer_size_;
  c.base_instance = base_instance_;
  const auto indexed = [&](const Field& mode, const Field& type, const Field& restart) {
    c.indexed = true;
    c.mode = primitive_mode(p.get(mode));
    c.index_size = static_cast<uint8_t>(1u << p.get(type));
    c.restart = p.flag(restart);
    c.base_vertex = base_vertex_;
  };
  switch (p.opcode) {
    case Opcode::kIndexedPrimList: {
      constexpr std::string_view kOwner = "Indexed Prim List";
      indexed(field(kOwner, "mode"), field(kOwner, "Index type"), field(kOwner, "Enable Primitive Restarts"));
      c.count = p.get(field(kOwner, "Length"));
      c.index_offset = p.get(field(kOwner, "Index Offset"));
      break;
    }
    case Opcode::kIndexedInstancedPrimList: {
      constexpr std::string_view kOwner = "Indexed Instanced Prim List";
      indexed(field(kOwner, "mode"), field(kOwner, "Index type"), field(kOwner, "Enable Primitive Restarts"));
      c.count = p.get(field(kOwner, "Instance Length"));
      c.instances = p.get(field(kOwner, "Number of Instances"));
      c.index_offset = p.get(field(kOwner, "Index Offset"));
      break;
    }
    case Opcode::kIndirectIndexedInstancedPrimList: {
      constexpr std::string_view kOwner = "Indirect Indexed Instanced Prim List";
      indexed(field(kOwner, "mode"), field(kOwner, "Index type"), field(kOwner, "Enable Primitive Restarts"));
      break;
    }
    case Opcode::kVertexArrayPrims:
      c.mode = primitive_mode(p.get(field("Vertex Array Prims", "mode")));
      c.count = p.get(field("Vertex Array Prims", "Length"));
      c.first_vertex = p.get(field("Vertex Array Prims", "Index of First Vertex"));
      break;
    case Opcode::kVertexArrayInstancedPrims:
      c.mode = primitive_mode(p.get(field("Vertex Array Instanced Prims", "mode")));
      c.count = p.get(field("Vertex Array Instanced Prims", "Instance Length"));
      c.instances = p.get(field("Vertex Array Instanced Prims", "Number of Instances"));
      c.first_vertex = p.get(field("Vertex Array Instanced Prims", "Index of First Vertex"));
      break;
    case Opcode::kVertexArraySingleInstancePrims: {
      constexpr std::string_view kOwner = "Vertex Array Single Instance Prims";
      c.mode = primitive_mode(p.get(field(kOwner, "mode")));
      c.count = p.get(field(kOwner, "Instance Length"));
      c.first_instance = p.get(field(kOwner, "Instance ID"));
      c.first_vertex = p.get(field(kOwner, "Index of First Vertex"));
      break;
    }
    default:
      c.mode = primitive_mode(p.get(field("Indirect Vertex Array Instanced Prims", "mode")));
      break;
  }
  return c;
}

bool BinExecutor::execute_draw(const Packet& p) {
  switch (p.opcode) {
    case Opcode::kIndexedPrimList:
    case Opcode::kIndexedInstancedPrimList:
    case Opcode::kIndirectIndexedInstancedPrimList:
    case Opcode::kVertexArrayPrims:
    case Opcode::kVertexArrayInstancedPrims:
    case Opcode::kVertexArraySingleInstancePrims:
    case Opcode::kIndirectVertexArrayInstancedPrims:
      break;
    default:
      return false;
  }
  const draw::DrawCall call = draw_call(p);
  if (!binner_.has_frame()) {
    fail(p, "draw before Tile Binning Mode Cfg");
  } else if (state_.shader_record == 0) {
    fail(p, "draw before GL Shader State");
  } else if (draw::topology(call.mode).vertices == 0) {
    fail(p, absl::StrFormat("primitive mode %d is not implemented", static_cast<int>(call.mode)));
  } else if (call.indexed && call.index_size > 4) {
    fail(p, "index type 3 does not exist");
  } else {
    load_record();
    if (other_stream_ != 0 && record_->has_gs) {
      fail(p,
           absl::StrFormat("transform feedback of stream %d, which geometry programs name in a way that is "
                           "not known, is not implemented",
                           other_stream_));
    } else if (p.opcode == Opcode::kIndirectVertexArrayInstancedPrims) {
      draw_indirect_arrays(p);
    } else if (p.opcode == Opcode::kIndirectIndexedInstancedPrimList) {
      draw_indirect_indexed(p);
    } else {
      draw(call);
    }
  }
  base_vertex_ = 0;
  base_instance_ = 0;
  return true;
}

void BinExecutor::load_record() {
  if (record_) return;
  record_ =
      std::make_shared<const draw::ShaderRecord>(load_shader_record(job_.memory, state_, *job_.profile));
}

void BinExecutor::draw(const draw::DrawCall& call) { binner_.draw(state_, call, record_); }

template <typename Record, typename Fill>
void BinExecutor::draw_records(const Packet& p, const RecordFields& fields, Fill fill) {
  const uint32_t records = p.get(fields.count);
  const uint32_t stride = 4 * p.get(fields.stride);
  GpuAddr address = p.get(fields.address);
  draw::DrawCall call = draw_call(p);
  for (uint32_t i = 0; i < records && !job_.stopped() && binner_.spend(kRecordCost); ++i, address += stride) {
    const auto r = job_.memory.load<Record>(address);
    call.count = r.count;
    call.instances = r.instances;
    call.base_instance = r.base_instance;
    call.draw_index = i;
    fill(r, &call);
    draw(call);
  }
}

void BinExecutor::draw_indirect_arrays(const Packet& p) {
  constexpr std::string_view kOwner = "Indirect Vertex Array Instanced Prims";
  constexpr RecordFields kFields = {field(kOwner, "Number of Draw Indirect Array Records"),
                                    field(kOwner, "Stride in Multiples of 4 Bytes"),
                                    field(kOwner, "Address")};
  draw_records<ArrayRecord>(
      p, kFields, [](const ArrayRecord& r, draw::DrawCall* call) { call->first_vertex = r.first_vertex; });
}

void BinExecutor::draw_indirect_indexed(const Packet& p) {
  constexpr std::string_view kOwner = "Indirect Indexed Instanced Prim List";
  constexpr RecordFields kFields = {field(kOwner, "Number of Draw Indirect Indexed Records"),
                                    field(kOwner, "Stride in Multiples of 4 Bytes"),
                                    field(kOwner, "Address")};
  draw_records<IndexedRecord>(p, kFields, [](const IndexedRecord& r, draw::DrawCall* call) {
    const uint64_t offset = uint64_t{r.first_index} * call->index_size;
    // Offsets of 4 GiB and more lie beyond any index buffer; so does this one.
    call->index_offset = static_cast<uint32_t>(std::min<uint64_t>(offset, ~0u));
    call->base_vertex = r.vertex_offset;
  });
}

bool BinExecutor::execute_feedback(const Packet& p) {
  switch (p.opcode) {
    case Opcode::kTransformFeedbackSpecs:
      set_feedback_specs(p);
      return true;
    case Opcode::kTransformFeedbackBuffer: {
      constexpr std::string_view kOwner = "Transform Feedback Buffer";
      binner_.feedback().set_buffer(p.get(field(kOwner, "Buffer Number")),
                                    p.get(field(kOwner, "Buffer Address")),
                                    p.get(field(kOwner, "Buffer Size in 32-bit words")));
      return true;
    }
    case Opcode::kPrimitiveCountsFeedback:
      transfer_counts(p);
      return true;
    case Opcode::kTransformFeedbackFlushAndCount:
    case Opcode::kFlushTransformFeedbackData:
    case Opcode::kWaitForTransformFeedback:
      return true;  // words are in memory as soon as their draw is done
    default:
      return false;
  }
}

/// Reads the specs that follow the packet in the list.
void BinExecutor::set_feedback_specs(const Packet& p) {
  constexpr std::string_view kOwner = "Transform Feedback Specs";
  constexpr const RecordInfo& kSpec = record("Transform Feedback Output Data Spec");
  other_stream_ = 0;
  if (!p.flag(field(kOwner, "Enable"))) return binner_.feedback().disable();
  std::vector<ptb::TransformFeedback::Spec> specs;
  const uint32_t count = p.get(field(kOwner, "Number of 16-bit Output Data Specs following"));
  for (uint32_t i = 0; i < count; ++i) {
    Record r;
    r.load(job_.memory, p.address + p.info->length + i * kSpec.length, kSpec);
    if (const uint32_t stream = r.get(field(kSpec.name, "Stream number")); stream != 0) {
      other_stream_ = stream;
      continue;  // only geometry programs can send vertices there
    }
    specs.push_back(
        {.first_word = static_cast<uint8_t>(r.get(field(kSpec.name, "First Shaded Vertex Value to output"))),
         .num_words = static_cast<uint8_t>(
             r.get(field(kSpec.name, "Number of consecutive Vertex Values to output as 32-bit values"))),
         .buffer = static_cast<uint8_t>(r.get(field(kSpec.name, "Output Buffer to write to")))});
  }
  binner_.feedback().set_specs(std::move(specs));
}

/// Nothing is outstanding: loads of buffer state, which name how many stores not to wait for, are all alike,
/// and so are the two kinds of store.
void BinExecutor::transfer_counts(const Packet& p) {
  enum Op : uint32_t {
    kStore = 0,
    kStoreAndZero = 1,
    kStoreBuffers = 2,
    kStoreBuffersCl = 3,
    kLoadBuffers = 8
  };
  const uint32_t op = p.get(field("Primitive Counts Feedback", "op"));
  const GpuAddr address = p.get(field("Primitive Counts Feedback", "address"));
  ptb::TransformFeedback& feedback = binner_.feedback();
  switch (op) {
    case kStore:
      return feedback.store_counters(address);
    case kStoreAndZero:
      feedback.store_counters(address);
      return feedback.reset_counters();
    case kStoreBuffers:
    case kStoreBuffersCl:
      return feedback.store_buffers(address);
    default:
      if (op < kLoadBuffers) return fail(p, absl::StrFormat("op %d does not exist", op));
      return feedback.load_buffers(address);
  }
}

}  // namespace

std::shared_ptr<draw::BinResult> run_bin_list(const JobContext& job, GpuAddr start, GpuAddr end) {
  if (debug_on(Debug::kCl)) {
    dump_list(job.memory, start, end, *job.profile, {.line = [](std::string_view line) {
                log_line("cl", {line.data(), line.size()});
              }});
  }
  return BinExecutor(job, start, end).run();
}

}  // namespace v3d::cle
