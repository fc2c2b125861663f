#include "ioctl/vc4/binning.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "ioctl/vc4/shader_record.h"

namespace v3d::ioctl::vc4 {
namespace {

/// No packet of the hardware: names BOs for the packets after it, and is not copied.
constexpr uint8_t kGemHandles = 254;
constexpr uint8_t kHalt = 0;

/// Flags of TILE_BINNING_MODE_CONFIG.
constexpr uint8_t k64BitColor = 2, kAutoInitTileState = 4, kBlockSizes = 0x78, kDoubleBuffer = 0x80;
constexpr uint8_t kInitialBlocksOf32 = 0, kBlocksOf128 = 2 << 5;

/// The walk over the packets of a list.
class ListWalk {
 public:
  ListWalk(const BinningSource& source, JobBos bos, uint32_t records_address, bool refuse_too_many_tiles,
           Binning* out)
      : source_(source),
        bos_(bos),
        refuse_too_many_tiles_(refuse_too_many_tiles),
        next_record_(records_address),
        out_(*out) {}

  absl::Status run();
  const std::vector<ShaderState>& states() const { return states_; }

 private:
  using Rule = absl::Status (ListWalk::*)(std::span<const uint8_t> packet, std::span<uint8_t> copy);
  struct Row {
    uint8_t opcode;
    const char* name;
    uint8_t bytes;
    Rule rule;  ///< null: the packet is copied as it is
  };
  static const Row kRows[];
  static const Row* find_row(uint8_t opcode);

  absl::Status flush(std::span<const uint8_t>, std::span<uint8_t>);
  absl::Status start_tile_binning(std::span<const uint8_t>, std::span<uint8_t>);
  absl::Status increment_semaphore(std::span<const uint8_t>, std::span<uint8_t>);
  absl::Status indexed_primitive(std::span<const uint8_t> packet, std::span<uint8_t> copy);
  absl::Status array_primitive(std::span<const uint8_t> packet, std::span<uint8_t>);
  absl::Status shader_state(std::span<const uint8_t> packet, std::span<uint8_t> copy);
  absl::Status binning_mode(std::span<const uint8_t> packet, std::span<uint8_t> copy);
  absl::Status gem_handles(std::span<const uint8_t> packet, std::span<uint8_t>);

  static absl::Status refuse(const char* rule) { return absl::InvalidArgumentError(rule); }
  /// Whether the packet is the byte that far from the end of the list.
  bool is_at_end(size_t bytes) const { return at_ + bytes == source_.list.size(); }
  void use_index(uint32_t index) { states_.back().max_index = std::max(states_.back().max_index, index); }

  const BinningSource& source_;
  const JobBos bos_;
  const bool refuse_too_many_tiles_;
  uint32_t next_record_;  // GPU address
  Binning& out_;
  size_t at_ = 0;
  std::vector<ShaderState> states_;
  uint32_t handle_ = 0;  // the first of the last GEM_HANDLES; the second has no use in any packet
  bool configured_ = false, started_ = false, counted_ = false, flushed_ = false;
};

const ListWalk::Row ListWalk::kRows[] = {
    {kHalt, "HALT", 1, nullptr},
    {1, "NOP", 1, nullptr},
    {4, "FLUSH", 1, &ListWalk::flush},
    {5, "FLUSH_ALL", 1, nullptr},
    {6, "START_TILE_BINNING", 1, &ListWalk::start_tile_binning},
    {7, "INCREMENT_SEMAPHORE", 1, &ListWalk::increment_semaphore},
    {32, "GL_INDEXED_PRIMITIVE", 14, &ListWalk::indexed_primitive},
    {33, "GL_ARRAY_PRIMITIVE", 10, &ListWalk::array_primitive},
    {56, "PRIMITIVE_LIST_FORMAT", 2, nullptr},
    {64, "GL_SHADER_STATE", 5, &ListWalk::shader_state},
    {96, "CONFIGURATION_BITS", 4, nullptr},
    {97, "FLAT_SHADE_FLAGS", 5, nullptr},
    {98, "POINT_SIZE", 5, nullptr},
    {99, "LINE_WIDTH", 5, nullptr},
    {100, "RHT_X_BOUNDARY", 3, nullptr},
    {101, "DEPTH_OFFSET", 5, nullptr},
    {102, "CLIP_WINDOW", 9, nullptr},
    {103, "VIEWPORT_OFFSET", 5, nullptr},
    {105, "CLIPPER_XY_SCALING", 9, nullptr},
    {106, "CLIPPER_Z_SCALING", 9, nullptr},
    {112, "TILE_BINNING_MODE_CONFIG", 16, &ListWalk::binning_mode},
    {kGemHandles, "GEM_HANDLES", 9, &ListWalk::gem_handles},
};

const ListWalk::Row* ListWalk::find_row(uint8_t opcode) {
  static const auto kByOpcode = [] {
    std::array<const Row*, 256> rows{};
    for (const Row& row : kRows) rows[row.opcode] = &row;
    return rows;
  }();
  return kByOpcode[opcode];
}

absl::Status ListWalk::run() {
  while (at_ < source_.list.size()) {
    const auto rest = source_.list.subspan(at_);
    const Row* row = find_row(rest[0]);
    if (!row)
      return absl::InvalidArgumentError(absl::StrFormat("byte %d: packet %d may not be used", at_, rest[0]));
    if (row->bytes > rest.size())
      return absl::InvalidArgumentError(absl::StrFormat("byte %d: %s is not all there", at_, row->name));
    std::span<uint8_t> copy;
    if (row->opcode != kGemHandles) {
      copy = std::span(out_.bytes).subspan(out_.list_bytes, row->bytes);
      std::copy_n(rest.begin(), row->bytes, copy.begin());
      out_.list_bytes += row->bytes;
    }
    if (row->rule)
      if (auto status = (this->*row->rule)(rest.first(row->bytes), copy); !status.ok())
        return absl::InvalidArgumentError(
            absl::StrFormat("byte %d: %s: %s", at_, row->name, status.message()));
    at_ += row->bytes;
    if (row->opcode == kHalt) break;
  }
  if (!started_) return refuse("the binning list has no START_TILE_BINNING");
  if (!counted_ || !flushed_)
    return refuse("the binning list does not end with INCREMENT_SEMAPHORE and FLUSH");
  return absl::OkStatus();
}

absl::Status ListWalk::flush(std::span<const uint8_t>, std::span<uint8_t>) {
  if (!is_at_end(1)) return refuse("not at the end of the list");
  flushed_ = true;
  return absl::OkStatus();
}

absl::Status ListWalk::start_tile_binning(std::span<const uint8_t>, std::span<uint8_t>) {
  if (started_) return refuse("the second one");
  started_ = true;
  return configured_ ? absl::OkStatus() : refuse("before TILE_BINNING_MODE_CONFIG");
}

absl::Status ListWalk::increment_semaphore(std::span<const uint8_t>, std::span<uint8_t>) {
  if (!is_at_end(2)) return refuse("not the last but one of the list");
  counted_ = true;
  return absl::OkStatus();
}

absl::Status ListWalk::indexed_primitive(std::span<const uint8_t> packet, std::span<uint8_t> copy) {
  const uint32_t bytes = get<uint8_t>(packet, 1) >> 4 ? 2 : 1;  // of an index
  const auto count = get<uint32_t>(packet, 2), offset = get<uint32_t>(packet, 6);
  if (states_.empty()) return refuse("before GL_SHADER_STATE");
  use_index(get<uint32_t>(packet, 10));
  const auto bo = use_bo(bos_, handle_);
  if (!bo.ok()) return bo.status();
  if (offset > (*bo)->size || ((*bo)->size - offset) / bytes < count)
    return refuse("its indices reach beyond their BO");
  put(copy, 6, (*bo)->address + offset);
  out_.reads.insert(handle_);
  return absl::OkStatus();
}

absl::Status ListWalk::array_primitive(std::span<const uint8_t> packet, std::span<uint8_t>) {
  const auto count = get<uint32_t>(packet, 2), first = get<uint32_t>(packet, 6);
  if (states_.empty()) return refuse("before GL_SHADER_STATE");
  if (count > std::numeric_limits<uint32_t>::max() - first) return refuse("its indices wrap");
  use_index(first + count - 1);  // of none from 0: the highest there is
  return absl::OkStatus();
}

absl::Status ListWalk::shader_state(std::span<const uint8_t> packet, std::span<uint8_t> copy) {
  if (states_.size() >= source_.num_records) return refuse("more than there are shader records");
  const ShaderState state{get<uint32_t>(packet, 1)};
  if (state.bits & ~kShaderStateBits) return refuse("more than the number of attributes");
  states_.push_back(state);
  put(copy, 1, next_record_ + state.bits);
  next_record_ += state.placed_bytes();
  return absl::OkStatus();
}

absl::Status ListWalk::binning_mode(std::span<const uint8_t> packet, std::span<uint8_t> copy) {
  if (configured_) return refuse("the second one");
  configured_ = true;
  out_.tiles_x = packet[13];
  out_.tiles_y = packet[14];
  const uint8_t flags = packet[15];
  if (!out_.tiles_x || !out_.tiles_y) return refuse("no tiles");
  if (flags & (k64BitColor | kDoubleBuffer)) return refuse("a double buffer, or colors of 64 bits");
  if (refuse_too_many_tiles_ && uint32_t{out_.tiles_x} * out_.tiles_y > kMaxTilesOfSlot)
    return refuse("more tiles than binning has memory for");
  // What the binner of the model keeps of tiles is its own, so there is no memory to name.
  std::fill_n(copy.begin() + 1, 12, 0);
  copy[15] =
      static_cast<uint8_t>((flags & ~kBlockSizes) | kAutoInitTileState | kInitialBlocksOf32 | kBlocksOf128);
  return absl::OkStatus();
}

absl::Status ListWalk::gem_handles(std::span<const uint8_t> packet, std::span<uint8_t>) {
  handle_ = get<uint32_t>(packet, 1);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Binning> check_binning(const BinningSource& source, JobBos bos, uint32_t address,
                                      bool refuse_too_many_tiles) {
  const BinningLayout layout = layout_of(source.list.size(), source.records.size(), source.uniforms.size());
  Binning binning;
  binning.bytes.resize(layout.size);
  const auto place_of = [&](uint64_t offset) { return address + static_cast<uint32_t>(offset); };
  ListWalk walk(source, bos, place_of(layout.records), refuse_too_many_tiles, &binning);
  if (auto status = walk.run(); !status.ok()) return status;

  const std::span<uint8_t> bytes(binning.bytes);
  CopyCursor records{source.records, bytes.subspan(layout.records, source.records.size()),
                     place_of(layout.records)};
  CopyCursor uniforms{source.uniforms, bytes.subspan(layout.uniforms), place_of(layout.uniforms)};
  for (const ShaderState& state : walk.states())
    if (auto status = relocate_shader_record(state, bos, &records, &uniforms, &binning.reads); !status.ok())
      return status;
  return binning;
}

void place_list(const Binning& binning, uint32_t address, device::SurfaceJob* job) {
  job->list_start = address;
  job->list_end = address + binning.list_bytes;
  job->tiles_x = binning.tiles_x;
  job->tiles_y = binning.tiles_y;
}

}  // namespace v3d::ioctl::vc4
