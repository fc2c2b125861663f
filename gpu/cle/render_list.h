/// The packets of a rendering list set up the frame, the supertiles, and the commands of one tile
/// (cle-and-tiles.md 1.4, 2.3).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/cle/packet.h"
#include "gpu/cle/tile_size.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::cle {

/// The forms of TILE_RENDERING_MODE_CFG on their way to a tlb::Config. COMMON comes first, ZS_CLEAR_VALUES
/// last, forms in between keep their earlier value when absent.
class FrameConfig {
 public:
  explicit FrameConfig(chip::Generation generation) : generation_(generation) {}

  /// Applies a form. @return  false, with a message in *error, for values that do not exist
  bool apply(const Packet& packet, std::string* error);
  /// ZS_CLEAR_VALUES has been seen since the last COMMON.
  bool complete() const { return complete_; }
  const tlb::Config& config() const { return config_; }

 private:
  bool apply_71(const Packet& packet, std::string* error);
  bool apply_42(const Packet& packet, std::string* error);
  template <chip::Generation kGeneration>
  bool common(const Packet& packet, std::string* error);
  void clear_values(const Packet& packet);
  bool target_71(const Packet& packet, std::string* error);
  bool colors_42(const Packet& packet, std::string* error);
  void set_tile_size(TileSize size);

  const chip::Generation generation_;
  bool complete_ = false;
  tlb::Config config_;
};

/// MULTICORE_RENDERING_SUPERTILE_CFG.
struct SupertileConfig {
  uint32_t width = 0, height = 0;              ///< of a supertile, tiles; 0 = not set yet
  uint32_t frame_columns = 0, frame_rows = 0;  ///< tiles
};
SupertileConfig decode_supertile_config(const Packet& packet);

/// One step in the life of a tile.
struct TileCommand {
  enum class Kind : uint8_t { kLoad, kDrawList, kStore, kClear } kind;
  tlb::LoadStore transfer{};  ///< of loads and stores
  uint8_t list_set = 0;       ///< of kDrawList: number of a tile list set, 0..15
  bool clear_colors = false;  ///< of clears
  bool clear_depth_stencil = false;
};

/// Turns a packet into the command it stands for.
enum class TilePacket : uint8_t {
  kCommand,  ///< *command is set
  kNothing,  ///< belongs to a tile and does nothing
  kOther,    ///< not a packet of a tile
  kBad,      ///< *error is set
};
TilePacket decode_tile_packet(const Packet& packet, chip::Generation generation, TileCommand* command,
                              std::string* error);

/// A generic tile list, parsed once and run for thousands of tiles.
struct TileProgram {
  std::vector<TileCommand> commands;
  bool draws = false;      ///< has kDrawList
  bool transfers = false;  ///< has loads or stores
  bool writes = false;     ///< changes the tile buffer, even for a tile without primitives
  /// Tiles are to run one after another: the same contents are stored to two places. One is the copy that
  /// Mesa puts into a job of which it is to be made (v3d_blit.c, v3d_tlb_blit_fast), even if the programs of
  /// the job sample the texture that is copied to; what they find there then depends on the order of the
  /// tiles.
  bool in_order = false;
};

/// Parses [start, end). Clears that no later command of the list can see are left out: the next tile starts
/// from its own state (cle-and-tiles.md 2.6).
/// @return  false, with a message in *error, for unknown packets and lists that run away
bool parse_generic_list(Memory memory, chip::Generation generation, GpuAddr start, GpuAddr end,
                        TileProgram* program, std::string* error);

/// "<name> (opcode n) at 0x........", or the number alone when the packet is unknown.
std::string describe(const Packet& packet);

}  // namespace v3d::cle
