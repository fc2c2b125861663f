/// These functions find mappings of BOs whose memory is elsewhere now.
#pragma once

#include <cstdint>

#include "ioctl/link/wire.h"

namespace v3d::shim {

/// Changes whenever mappings are replaced: who mapped a slab's descriptor and finds another number than
/// before asking for it has to ask again.
uint32_t mappings_epoch();

/// Does what a Move asks for, in this process. Another thread that unmaps the same memory meanwhile, or maps
/// it away, races with this; a child that inherited the mapping keeps the old memory.
void replace_mappings(const wire::Move& move, int memfd);

}  // namespace v3d::shim
