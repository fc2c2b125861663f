/// An emulator runs programs for another architecture: a user-mode emulator, and a root with their libraries.
#pragma once

#include <string>
#include <vector>

namespace v3d::tools {

/// Debian's qemu-aarch64. Empty if there is none in PATH.
std::string find_arm64_emulator();

/// The folder of a root that packaging/arm64-root made. `name` is a folder (with a slash), a suite ("sid"),
/// or empty for the first that is there of trixie and sid. Empty if there is none.
std::string find_arm64_root(const std::string& name);

/// A command as the shell would find it, in the root first. Empty, with the reason in `error`, if it is
/// missing or no arm64 program.
std::string find_arm64_program(const std::string& root, const std::string& command, std::string* error);

/// Replaces this process by the emulator, which runs the program with this process's environment. Absolute
/// paths that the program opens are looked for in the root first. Returns only on failure, with the reason in
/// errno.
void exec_arm64(const std::string& emulator, const std::string& root, const std::string& program,
                const std::vector<std::string>& arguments);

}  // namespace v3d::tools
