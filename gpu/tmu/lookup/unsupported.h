/// These functions name what a lookup asks for and the model does not do: one line on the log for each, per
/// process.
#pragma once

#include "gpu/chip/generation.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

void report_unsupported_format(chip::Generation generation, TextureType type);
/// @param name  string constant
void report_unsupported(const char* name);

}  // namespace v3d::tmu
