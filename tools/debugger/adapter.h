/// An Adapter answers the requests of an editor that debugs a kernel (the Debug Adapter Protocol, 1.55).
#pragma once

#include "tools/debugger/messages.h"

namespace v3d::debugger {

/// Until the editor disconnects or the input ends. @return false: what came was no message of the protocol
bool serve_editor(Messages& messages);

}  // namespace v3d::debugger
