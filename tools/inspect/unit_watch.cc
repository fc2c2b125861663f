#include "tools/inspect/unit_watch.h"

#include "gpu/cle/render_list.h"

namespace v3d::inspect {

bool LayerTile::stores_first(const cle::TileCommand& command) {
  if (command.kind != cle::TileCommand::Kind::kStore || command.transfer.buffer == kNoBuffer || is_stored_)
    return false;
  is_stored_ = true;
  watch_.stored();
  return true;
}

}  // namespace v3d::inspect
