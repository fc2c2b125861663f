/// A listing shows QPU programs in memory as text, with the uniforms that they read.
#pragma once

#include <set>
#include <string>

#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"

namespace v3d::tools {

/// A program and the streams of uniforms that it is started with.
struct ListedProgram {
  std::string stage;  ///< "fragment"
  GpuAddr code;
  bool final_section;  ///< it starts in its last section
  std::set<GpuAddr> uniforms;
};

/// A line for each instruction: address, word, text; after it where a branch leads, and the value of the
/// uniforms that it takes from the first stream. Then the words of the other streams, and of the first if the
/// place of some is not the same on all ways through the program. Lines end with '\n'.
std::string program_listing(Memory memory, chip::Generation generation, const ListedProgram& program);

}  // namespace v3d::tools
