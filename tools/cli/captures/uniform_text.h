/// These functions write uniforms as listings show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/base/memory.h"

namespace v3d::tools {

/// Hexadecimal, and as a float if it may well be one.
std::string uniform_text(Memory memory, GpuAddr at);

/// The words of a stream, up to `extent` bytes from its start, in lines of eight. @param number  of the
/// stream among those that are shown, from 1 @return  false, with a line that says how many there are in all,
/// when that is one too many
bool append_stream(Memory memory, GpuAddr stream, uint32_t extent, size_t streams, size_t number,
                   std::string* text);

}  // namespace v3d::tools
