/// A host key names a draw for the profile of the host's time.
#pragma once

#include <cstdint>

#include "gpu/base/host_time.h"
#include "gpu/draw/state.h"

namespace v3d::draw {

inline host_time::DrawKey host_key(const ShaderRecord& record, const DrawCall& call) {
  return {record.vs.code, record.fs.code, uint64_t{call.count} * call.instances};
}

}  // namespace v3d::draw
