#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/left_out.h"
#include "gpu/base/log.h"
#include "gpu/base/work_meter.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/executor.h"
#include "gpu/cle/packet.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/render_list.h"
#include "gpu/cle/surfaces.h"
#include "gpu/pse/tile_renderer.h"

namespace v3d::cle {
namespace {

/// Packets and branches after which a list counts as running in circles: far more than a frame of 256
/// supertiles in 2048 layers needs. The kernel would never reset such a list, as its address moves.
constexpr uint32_t kMaxPackets = 1u << 22, kMaxBranches = 1u << 16;
constexpr size_t kMaxCalls = 4;
/// Tiles that are collected before they are run.
constexpr size_t kMaxPendingTiles = 1u << 16;
/// Numbers that TILE_LIST_SET_BASE can name.
constexpr size_t kListSets = 16;

struct TileId {
  uint16_t column, row;
};

/// What one slot of the pool works with.
struct Slot {
  explicit Slot(const JobContext& of) : job(of) {}

  JobContext job;  // with who watches its tile
  std::unique_ptr<tlb::TileBuffer> tile;
  std::unique_ptr<pse::TileRenderer> renderer;
  uint32_t contents = 0;  // number of the initial contents that the tile was made from
  bool dirty = true;      // contents differ from the initial ones
};

/// Of 32 bits, in all colours and samples.
uint32_t words_of_pixel(const tlb::Config& config) {
  uint32_t words = 0;
  for (const tlb::RenderTarget& target : config.targets)
    if (target.used) words += 1u << target.bpp;
  return words * (config.multisample ? 4 : 1);
}

class RenderExecutor {
 public:
  RenderExecutor(const JobContext& job, GpuAddr start, GpuAddr end, GpuAddr qma, const draw::BinResult* bin)
      : job_(job),
        generation_(job.profile->generation),
        pc_(start),
        end_(end),
        qma_(qma),
        bin_(bin),
        frame_(generation_),
        initial_(job.memory) {
    const auto count = static_cast<size_t>(job.pool->concurrency());
    slots_.reserve(count);
    for (size_t i = 0; i < count; ++i) slots_.emplace_back(job);
  }

  void run();
  /// A frame that comes without a list.
  void run(const SurfaceJob& job, const ClearValues& clear);

 private:
  bool step(const Packet& packet);
  bool configure(const Packet& packet);
  bool begin_explicit_tile(const Packet& packet);
  bool explicit_tile_packet(const Packet& packet);
  bool set_list_block(const Packet& packet);
  bool set_generic_list(const Packet& packet);
  bool add_supertile(const Packet& packet);
  bool run_pending_tiles();
  void watch_tile(size_t number, TileId id, size_t index);
  void run_tile(TileId id, Slot& slot, uint32_t tidx);
  bool run_watched(const TileCommand& command, TileId id, tlb::TileBuffer& tile, Slot& slot, uint32_t tidx);
  bool run_command(const TileCommand& command, TileId id, tlb::TileBuffer& tile, Slot& slot, uint32_t tidx);
  bool transfer(const TileCommand& command, tlb::TileBuffer& tile, TileWatch* watch, std::string* error);
  Slot& prepare_slot(int index);
  const std::vector<draw::ListEntry>* tile_list(TileId id, uint8_t set) const;
  bool has_primitives(TileId id) const;
  std::vector<uint32_t> entries_of_pending_tiles() const;
  void prepare_draws();
  void merge_counts();
  bool fail(const std::string& message) {
    job_.error->set("rendering list: " + message);
    return false;
  }

  const JobContext& job_;
  const chip::Generation generation_;
  GpuAddr pc_;
  const GpuAddr end_, qma_;
  const draw::BinResult* bin_;
  std::vector<GpuAddr> calls_;
  uint32_t branches_ = 0;  // calls are none
  uint32_t waits_ = 0;     // for the semaphore
  bool ended_ = false;

  FrameConfig frame_;
  tlb::Config config_;        // of the frame, when it is complete
  bool has_one_set_ = false;  // of tile lists: that of the binning thread, whatever the number
  SupertileConfig supertiles_;
  std::array<GpuAddr, kListSets> list_bases_{};
  uint32_t list_bytes_ = 64;  // of tile allocation memory that each tile's list starts with
  TileProgram program_;
  bool has_program_ = false;
  std::vector<TileId> pending_;

  /// Contents of the tile buffer at the start of every tile (cle-and-tiles.md 2.6); explicit tiles, the dummy
  /// ones among them, work on it directly.
  tlb::TileBuffer initial_;
  uint32_t contents_ = 1;  // how many initial contents there were
  TileId explicit_tile_{0, 0};
  bool in_explicit_tile_ = false;

  std::unique_ptr<pse::PreparedDraws> draws_;
  std::vector<Slot> slots_;
};

void RenderExecutor::run() {
  uint32_t packets = 0;
  while (!ended_ && (pc_ != end_ || !calls_.empty()) && !job_.stopped()) {
    Packet packet;
    if (!decode(job_.memory, pc_, generation_, &packet)) {
      fail(describe(packet));
      break;
    }
    if (++packets > kMaxPackets || branches_ > kMaxBranches) {
      job_.error->set_hang(absl::StrFormat("rendering list runs away at 0x%08x: %d packets, %d branches", pc_,
                                           packets, branches_));
      break;
    }
    job_.moved();
    pc_ += packet.length;
    if (job_.work) job_.work->packet();
    if (packet.opcode != Opcode::kSupertileCoordinates && !run_pending_tiles()) break;
    if (!step(packet)) break;
  }
  run_pending_tiles();
  merge_counts();
}

void RenderExecutor::run(const SurfaceJob& job, const ClearValues& clear) {
  std::string error;
  config_ = surface_config(job, clear);
  if (!initial_.configure(config_, &error) || !surface_program(job, &program_, &error)) {
    job_.error->set("surfaces: " + error);
    return;
  }
  has_one_set_ = true;
  if (job_.work) job_.work->begin_frame(words_of_pixel(config_));
  for (const SurfaceTile tile : surface_tiles(job)) pending_.push_back({tile.column, tile.row});
  run_pending_tiles();
  merge_counts();
}

bool RenderExecutor::step(const Packet& p) {
  switch (p.opcode) {
    case Opcode::kEndOfRendering:
    case Opcode::kHalt:
      ended_ = true;
      return true;
    case Opcode::kWaitForPreviousFrame:  // render jobs run one after another
      return true;
    case Opcode::kWaitOnSemaphore:  // the bin job of the submission is over
      if (waits_++ < (bin_ == nullptr ? 0 : bin_->semaphores)) return true;
      job_.error->set_hang(
          absl::StrFormat("rendering list: %s waits for more increments than the bin list has", describe(p)));
      return false;
    case Opcode::kTileListInitialBlockSize:
      return set_list_block(p);
    case Opcode::kBranchToSubList:
      if (calls_.size() == kMaxCalls) return fail("calls nest too deep: " + describe(p));
      calls_.push_back(pc_);
      pc_ = p.get(field("Branch", "address"));
      return true;
    case Opcode::kBranch:
      ++branches_;
      pc_ = p.get(field("Branch", "address"));
      return true;
    case Opcode::kReturnFromSubList:
      if (calls_.empty()) return fail("no caller to return to: " + describe(p));
      pc_ = calls_.back();
      calls_.pop_back();
      return true;
    case Opcode::kTileRenderingModeCfg:
      return configure(p);
    case Opcode::kMulticoreRenderingSupertileCfg:
      supertiles_ = decode_supertile_config(p);
      return true;
    case Opcode::kMulticoreRenderingTileListSetBase: {
      const uint32_t set = p.get(field("Multicore Rendering Tile List Set Base", "Tile List Set Number"));
      list_bases_[set] = p.get(field("Multicore Rendering Tile List Set Base", "address"));
      return true;
    }
    case Opcode::kStartAddressOfGenericTileList:
      return set_generic_list(p);
    case Opcode::kSupertileCoordinates:
      return add_supertile(p);
    case Opcode::kTileCoordinates:
      return begin_explicit_tile(p);
    default:
      return explicit_tile_packet(p);
  }
}

bool RenderExecutor::configure(const Packet& p) {
  std::string error;
  if (!frame_.apply(p, &error)) return fail(absl::StrFormat("%s in %s", error, describe(p)));
  if (!frame_.complete()) return true;
  config_ = frame_.config();
  if (!initial_.configure(config_, &error))
    return fail(absl::StrFormat("%s, frame ends with %s", error, describe(p)));
  merge_counts();
  if (job_.work) job_.work->begin_frame(words_of_pixel(config_));
  for (Slot& slot : slots_) slot = Slot(job_);  // renderers refer to draws_
  draws_.reset();
  ++contents_;
  return true;
}

bool RenderExecutor::begin_explicit_tile(const Packet& p) {
  if (!frame_.complete()) return fail("no frame configuration before " + describe(p));
  const tlb::Config& config = frame_.config();
  const uint32_t column = p.get(field("Tile Coordinates", "tile column number"));
  const uint32_t row = p.get(field("Tile Coordinates", "tile row number"));
  const bool inside = column * config.tile_width < std::max(config.width, 1u) &&
                      row * config.tile_height < std::max(config.height, 1u);
  if (!inside) return fail(absl::StrFormat("tile %d, %d is outside the frame, %s", column, row, describe(p)));
  explicit_tile_ = {static_cast<uint16_t>(column), static_cast<uint16_t>(row)};
  in_explicit_tile_ = true;
  initial_.begin_tile(column, row);
  if (job_.work) job_.work->add_tiles({0}, slots_.size());
  watch_tile(0, explicit_tile_, 0);
  return true;
}

bool RenderExecutor::explicit_tile_packet(const Packet& p) {
  if (p.opcode == Opcode::kEndOfTileMarker) {
    in_explicit_tile_ = false;
    ++contents_;
    return true;
  }
  TileCommand command;
  std::string error;
  switch (decode_tile_packet(p, generation_, &command, &error)) {
    case TilePacket::kNothing:
      return true;
    case TilePacket::kBad:
      return fail(error);
    case TilePacket::kOther:
      return fail(describe(p) + " has no place there");
    case TilePacket::kCommand:
      break;
  }
  if (!in_explicit_tile_) return fail("no tile coordinates before " + describe(p));
  if (command.kind == TileCommand::Kind::kDrawList) prepare_draws();
  return run_watched(command, explicit_tile_, initial_, slots_[0], job_.first_tidx);
}

/// Layers lie this far apart (Mesa: 64 bytes a tile; 128 since mid-2026, v3d_limits.h).
bool RenderExecutor::set_list_block(const Packet& p) {
  constexpr uint32_t kLargest = 2;
  const uint32_t size =
      p.get(field("Tile List Initial Block Size", "Size of first block in chained tile lists"));
  if (size > kLargest) return fail(absl::StrFormat("block size %d in %s", size, describe(p)));
  list_bytes_ = 64u << size;
  return true;
}

bool RenderExecutor::set_generic_list(const Packet& p) {
  constexpr std::string_view kOwner = "Start Address of Generic Tile List";
  std::string error;
  has_program_ = parse_generic_list(job_.memory, generation_, p.get(field(kOwner, "start")),
                                    p.get(field(kOwner, "end")), &program_, &error);
  return has_program_ || fail(error);
}

bool RenderExecutor::add_supertile(const Packet& p) {
  if (!frame_.complete()) return fail("no frame configuration before " + describe(p));
  if (supertiles_.width == 0) return fail("no supertile configuration before " + describe(p));
  if (!has_program_) return fail("no generic tile list before " + describe(p));
  const tlb::Config& config = frame_.config();
  const uint32_t columns =
      std::min((config.width + config.tile_width - 1) / config.tile_width, supertiles_.frame_columns);
  const uint32_t rows =
      std::min((config.height + config.tile_height - 1) / config.tile_height, supertiles_.frame_rows);
  const uint32_t left =
      p.get(field("Supertile Coordinates", "column number in supertiles")) * supertiles_.width;
  const uint32_t top = p.get(field("Supertile Coordinates", "row number in supertiles")) * supertiles_.height;
  for (uint32_t row = top; row < std::min(top + supertiles_.height, rows); ++row)
    for (uint32_t column = left; column < std::min(left + supertiles_.width, columns); ++column)
      pending_.push_back({static_cast<uint16_t>(column), static_cast<uint16_t>(row)});
  return pending_.size() < kMaxPendingTiles || run_pending_tiles();
}

/// The list that the PTB made for a tile of the layer at the base of that set, or null. The only core there
/// is makes one set of lists; whatever the number, the address tells which of them are meant.
const std::vector<draw::ListEntry>* RenderExecutor::tile_list(TileId id, uint8_t set) const {
  if (bin_ == nullptr) return nullptr;
  const uint64_t tiles = uint64_t{bin_->tiles_x} * bin_->tiles_y;
  if (tiles == 0 || id.column >= bin_->tiles_x || id.row >= bin_->tiles_y) return nullptr;
  const GpuAddr base = has_one_set_ ? qma_ : list_bases_[set];
  if (base < qma_) return nullptr;
  const uint64_t layer = (base - qma_) / (list_bytes_ * tiles);
  if (layer >= bin_->layers) return nullptr;
  return &bin_->tiles[layer * tiles + uint64_t{id.row} * bin_->tiles_x + id.column];
}

bool RenderExecutor::has_primitives(TileId id) const {
  return std::any_of(program_.commands.begin(), program_.commands.end(), [&](const TileCommand& command) {
    if (command.kind != TileCommand::Kind::kDrawList) return false;
    const std::vector<draw::ListEntry>* list = tile_list(id, command.list_set);
    return list != nullptr && !list->empty();
  });
}

std::vector<uint32_t> RenderExecutor::entries_of_pending_tiles() const {
  std::vector<uint32_t> entries;
  entries.reserve(pending_.size());
  for (const TileId id : pending_) {
    size_t sum = 0;
    for (const TileCommand& command : program_.commands)
      if (command.kind == TileCommand::Kind::kDrawList)
        if (const std::vector<draw::ListEntry>* list = tile_list(id, command.list_set)) sum += list->size();
    entries.push_back(static_cast<uint32_t>(sum));
  }
  return entries;
}

void RenderExecutor::prepare_draws() {
  if (draws_ == nullptr && bin_ != nullptr)
    draws_ = std::make_unique<pse::PreparedDraws>(job_, *bin_, config_);
}

bool RenderExecutor::run_pending_tiles() {
  if (pending_.empty()) return true;
  WorkMeter meter(&job_);
  const auto draws = [&](TileId id) {
    return meter.charge(static_cast<uint32_t>(program_.commands.size())) && has_primitives(id);
  };
  if (program_.draws && std::any_of(pending_.begin(), pending_.end(), draws))
    prepare_draws();
  else if (!program_.transfers)
    pending_.clear();  // as Mesa's frames around a dispatch
  if (job_.work) job_.work->add_tiles(entries_of_pending_tiles(), slots_.size());
  const auto run_one = [this](int i, int index) {
    if (job_.stopped()) return;
    const host_time::Scope host(host_time::Block::kTiles);
    watch_tile(static_cast<size_t>(i), pending_[static_cast<size_t>(i)], static_cast<size_t>(index));
    run_tile(pending_[static_cast<size_t>(i)], prepare_slot(index),
             job_.first_tidx + static_cast<uint32_t>(index));
    job_.moved();
  };
  if (program_.in_order)
    for (int i = 0; i < static_cast<int>(pending_.size()); ++i) run_one(i, 0);
  else
    job_.pool->parallel_for(static_cast<int>(pending_.size()), run_one, job_.control);
  pending_.clear();
  return !job_.stopped();
}

Slot& RenderExecutor::prepare_slot(int index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.tile == nullptr) {
    slot.tile = std::make_unique<tlb::TileBuffer>(job_.memory);
    slot.tile->configure(config_);
  }
  if (slot.contents != contents_) {
    slot.contents = contents_;
    slot.dirty = true;
  }
  return slot;
}

void RenderExecutor::watch_tile(size_t number, TileId id, size_t index) {
  if (job_.work == nullptr) return;
  JobContext& job = slots_[index].job;
  job.tile = &job_.work->begin_tile(number, index, id.column, id.row);
  job.watch = job.tile->threads();
}

void RenderExecutor::run_tile(TileId id, Slot& slot, uint32_t tidx) {
  slot.tile->begin_tile(id.column, id.row);
  if (slot.dirty) slot.tile->copy_from(initial_);
  slot.dirty = program_.writes;
  for (const TileCommand& command : program_.commands)
    if (!run_watched(command, id, *slot.tile, slot, tidx)) return;
}

bool RenderExecutor::transfer(const TileCommand& command, tlb::TileBuffer& tile, TileWatch* watch,
                              std::string* error) {
  const bool stores = command.kind == TileCommand::Kind::kStore;
  if (stores && is_left_out(Stage::kStores)) [[unlikely]]
    return true;
  const host_time::Scope host(stores ? host_time::Block::kStores : host_time::Block::kLoads);
  const perf::Counter counter = stores ? perf::kTlbWordsWritten : perf::kTlbWordsRead;
  const uint64_t before = tile.counts()[counter];
  if (stores ? !tile.store(command.transfer, error) : !tile.load(command.transfer, error)) return false;
  if (watch)
    watch->moved(stores, command.transfer.buffer >= tlb::kMaxRenderTargets,
                 (tile.counts()[counter] - before) * perf::kBusWord);
  return true;
}

bool RenderExecutor::run_watched(const TileCommand& command, TileId id, tlb::TileBuffer& tile, Slot& slot,
                                 uint32_t tidx) {
  TileWatch* const watch = slot.job.tile;
  if (watch) watch->before(command, tile);
  const bool good = run_command(command, id, tile, slot, tidx);
  if (watch) watch->after(command, tile);
  return good;
}

bool RenderExecutor::run_command(const TileCommand& command, TileId id, tlb::TileBuffer& tile, Slot& slot,
                                 uint32_t tidx) {
  std::string error;
  switch (command.kind) {
    case TileCommand::Kind::kLoad:
    case TileCommand::Kind::kStore:
      return transfer(command, tile, slot.job.tile, &error) || fail(error);
    case TileCommand::Kind::kClear:
      if (command.clear_colors) tile.clear_colors();
      if (command.clear_depth_stencil) tile.clear_depth_stencil();
      return true;
    case TileCommand::Kind::kDrawList: {
      const std::vector<draw::ListEntry>* list = tile_list(id, command.list_set);
      if (list == nullptr || list->empty() || draws_ == nullptr || is_left_out(Stage::kFragments))
        return true;
      if (slot.renderer == nullptr)
        slot.renderer = std::make_unique<pse::TileRenderer>(slot.job, *draws_, tidx);
      slot.dirty = true;
      tile.counts()[perf::kPseWordsRead] += perf::bus_words(list->size() * sizeof(draw::ListEntry));
      if (slot.job.tile) slot.job.tile->list(*list, *bin_);
      const host_time::Scope host(host_time::Block::kSetUp);
      slot.renderer->run(*list, tile, id.column, id.row);
      return !job_.stopped();
    }
  }
  return true;
}

void RenderExecutor::merge_counts() {
  perf::Counts total = initial_.counts();
  initial_.counts() = {};
  for (Slot& slot : slots_) {
    if (slot.tile != nullptr) {
      total.add(slot.tile->counts());
      slot.tile->counts() = {};
    }
    if (slot.renderer != nullptr) {
      total.add(slot.renderer->counts());
      slot.renderer->counts() = {};
    }
  }
  job_.counts->merge(total);
}

}  // namespace

void run_render_list(const JobContext& job, GpuAddr start, GpuAddr end, GpuAddr qma,
                     const draw::BinResult* bin) {
  RenderExecutor(job, start, end, qma, bin).run();
}

void run_surfaces(const JobContext& job, const SurfaceJob& surfaces, const draw::BinResult* bin,
                  ClearValues* clear) {
  clear->take(surfaces);
  if (debug_on(Debug::kCl))
    for (const std::string& line : describe_surfaces(surfaces)) log_line("cl", line);
  RenderExecutor(job, 0, 0, 0, bin).run(surfaces, *clear);
}

}  // namespace v3d::cle
