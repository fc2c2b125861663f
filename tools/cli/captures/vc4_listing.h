/// vc4_program_listing() is program_listing() of VideoCore IV.
#pragma once

#include <string>

#include "tools/cli/captures/program_listing.h"

namespace v3d::tools {

std::string vc4_program_listing(Memory memory, const ListedProgram& program);

}  // namespace v3d::tools
