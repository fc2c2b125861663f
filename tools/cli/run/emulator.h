/// An emulator runs programs for another architecture: a user-mode emulator, and a root with their libraries.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace v3d::tools {

/// What `run --arch` knows, by Debian's names.
struct ForeignArchitecture {
  const char* name;
  const char* triplet;   ///< of folders with libraries, and of the package of its cross compiler
  const char* emulator;  ///< of Debian's package qemu-user
};
std::span<const ForeignArchitecture> foreign_architectures();
/// Null: there is none of that name.
const ForeignArchitecture* find_foreign(const std::string& name);

/// Empty if there is none in PATH.
std::string find_emulator(const ForeignArchitecture& architecture);

/// The folder of a root that packaging/debian-root made. `name` is a folder (with a slash), a suite ("sid"),
/// or empty for the first that is there of trixie and sid. Empty if there is none.
std::string find_root(const ForeignArchitecture& architecture, const std::string& name);

/// A command as the shell would find it, in the root first. Empty, with the reason in `error`, if it is
/// missing or no program of the architecture.
std::string find_foreign_program(const ForeignArchitecture& architecture, const std::string& root,
                                 const std::string& command, std::string* error);

/// Replaces this process by the emulator, which runs the program with this process's environment. Absolute
/// paths that the program opens are looked for in the root first. Returns only on failure, with the reason in
/// errno.
void exec_foreign(const std::string& emulator, const std::string& root, const std::string& program,
                  const std::vector<std::string>& arguments);

}  // namespace v3d::tools
