/// Assembles a program of VideoCore IV.
///
///     assemble PROGRAM.qasm PROGRAM.bin

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "gpu/qpu/isa/vc4_assembler.h"

int main(int, char** arguments) {
  std::ifstream text(arguments[1]);
  const std::string program((std::istreambuf_iterator<char>(text)), {});
  const v3d::qpu::Assembly assembly = v3d::qpu::vc4::assemble(program);
  for (const v3d::qpu::AssemblyError& error : assembly.errors)
    std::fprintf(stderr, "%s:%s\n", arguments[1], v3d::qpu::to_string(error).c_str());
  if (!assembly.errors.empty()) return 1;
  std::ofstream words(arguments[2], std::ios::binary);
  words.write(reinterpret_cast<const char*>(assembly.words.data()),
              static_cast<std::streamsize>(assembly.words.size() * sizeof(uint64_t)));
  return words ? 0 : 1;
}
