#include "gpu/cle/tile_size.h"

#include <string_view>

#include "gpu/cle/packet_table.h"

namespace v3d::cle {

TileSize binning_tile_size(const Packet& p, int version) {
  constexpr std::string_view kOwner = "Tile Binning Mode Cfg";
  switch (chip::generation(version)) {
    case chip::Generation::k42:
      return tile_size_42(p.get(field(kOwner, "Number of Render Targets", 42)),
                          p.get(field(kOwner, "Maximum BPP of all render targets", 42)),
                          p.flag(field(kOwner, "Multisample Mode (4x)", 42)),
                          p.flag(field(kOwner, "Double-buffer in non-ms mode", 42)));
    case chip::Generation::k71:
      return {8u << p.get(field(kOwner, "Log2 Tile Width", 71)),
              8u << p.get(field(kOwner, "Log2 Tile Height", 71))};
  }
  chip::no_such_generation();
}

}  // namespace v3d::cle
