#include "tools/cli/run/emulator.h"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <span>

#include "tools/cli/files/files.h"
#include "tools/cli/run/program.h"

namespace v3d::tools {
namespace {

constexpr ForeignArchitecture kForeign[] = {
    {"arm64", "aarch64-linux-gnu", "qemu-aarch64"},
    {"armhf", "arm-linux-gnueabihf", "qemu-arm"},
};

}  // namespace

std::span<const ForeignArchitecture> foreign_architectures() { return kForeign; }

const ForeignArchitecture* find_foreign(const std::string& name) {
  for (const ForeignArchitecture& one : kForeign)
    if (name == one.name) return &one;
  return nullptr;
}

std::string find_emulator(const ForeignArchitecture& architecture) {
  const std::string name = architecture.emulator;
  for (const std::string& file : {name, name + "-static"})
    if (std::string path = find_in(variable("PATH"), file); !path.empty()) return path;
  return {};
}

std::string find_root(const ForeignArchitecture& architecture, const std::string& name) {
  const auto of_suite = [&](const std::string& suite) {
    return cache_folder() + "/" + architecture.name + "-" + suite;
  };
  if (name.find('/') != std::string::npos) return exists(name + "/usr") ? name : std::string();
  if (!name.empty()) return exists(of_suite(name)) ? of_suite(name) : std::string();
  for (const char* suite : {"trixie", "sid"})
    if (exists(of_suite(suite))) return of_suite(suite);
  return {};
}

std::string find_foreign_program(const ForeignArchitecture& architecture, const std::string& root,
                                 const std::string& command, std::string* error) {
  std::string path = command;
  if (command.find('/') == std::string::npos) {
    path = find_in(root + "/usr/bin:" + root + "/usr/games:" + variable("PATH"), command);
  } else if (command[0] == '/' && exists(root + command)) {
    path = root + command;
  }
  if (!exists(path)) {
    *error = command + ": no such program, neither in " + root + " nor here";
    return {};
  }
  if (program_architecture(path) == architecture.name) return path;
  *error = path + " is not an " + architecture.name + " program";
  return {};
}

void exec_foreign(const std::string& emulator, const std::string& root, const std::string& program,
                  const std::vector<std::string>& arguments) {
  setenv("QEMU_LD_PREFIX", root.c_str(), 1);
  std::vector<std::string> line = {emulator};
  // What the dynamic linker of the program reads must not reach that of the emulator.
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH"}) {
    if (variable(name).empty()) continue;
    line.insert(line.end(), {"-E", std::string(name) + "=" + variable(name)});
    unsetenv(name);
  }
  line.push_back(program);
  line.insert(line.end(), arguments.begin() + 1, arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(line.size() + 1);
  for (std::string& word : line) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(emulator.c_str(), pointers.data());
}

}  // namespace v3d::tools
