#include "gpu/cle/tile_size.h"

#include <string_view>

#include "gpu/cle/packet_table.h"
#include "gpu/cle/vc4_draw_packets.h"

namespace v3d::cle {

BinningSizes binning_sizes(const Packet& p, chip::Generation generation) {
  constexpr std::string_view kOwner = "Tile Binning Mode Cfg";
  switch (generation) {
    case chip::Generation::k21: {
      const Vc4Binning binning = vc4_binning(p);
      return {binning.tiles_x * binning.tile_size,
              binning.tiles_y * binning.tile_size,
              {binning.tile_size, binning.tile_size},
              binning.unsupported};
    }
    case chip::Generation::k42:
      return {p.get(field(kOwner, "Width (in pixels)", k42)), p.get(field(kOwner, "Height (in pixels)", k42)),
              tile_size_42(p.get(field(kOwner, "Number of Render Targets", k42)),
                           p.get(field(kOwner, "Maximum BPP of all render targets", k42)),
                           p.flag(field(kOwner, "Multisample Mode (4x)", k42)),
                           p.flag(field(kOwner, "Double-buffer in non-ms mode", k42)))};
    case chip::Generation::k71:
      return {p.get(field(kOwner, "Width (in pixels)", k71)),
              p.get(field(kOwner, "Height (in pixels)", k71)),
              {8u << p.get(field(kOwner, "Log2 Tile Width", k71)),
               8u << p.get(field(kOwner, "Log2 Tile Height", k71))}};
  }
  chip::no_such_generation();
}

}  // namespace v3d::cle
