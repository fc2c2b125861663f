/// The engine says how tests of blocks run QPU programs: interpreted, or as V3DEMU_JIT says.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "gpu/qpu/jit/jit.h"

namespace v3d::qpu {

/// For ProgramCache and device::Context.
inline Compiler* compiler_of_tests() {
  static const std::unique_ptr<Compiler> kCompiler = [] {
    const char* const named = std::getenv("V3DEMU_JIT");
    std::string why;
    const auto engine = jit::find_engine(named ? named : "off", &why);
    if (!engine) {
      std::fprintf(stderr, "V3DEMU_JIT: %s\n", why.c_str());
      std::exit(2);
    }
    return jit::make_compiler(*engine);
  }();
  return kCompiler.get();
}

}  // namespace v3d::qpu
