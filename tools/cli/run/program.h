/// This is what must be known of a program before it is started with the preload library.
#pragma once

#include <cstdint>
#include <string>

namespace v3d::tools {

/// The first file of that name that may be executed in folders of a list separated by colons. Empty if there
/// is none.
std::string find_in(const std::string& folders, const std::string& name);

/// A command as execvp() finds it. Empty if it finds none.
std::string find_program(const std::string& command);

/// The architecture of an ELF program by Debian's name ("i386"), or "machine NUMBER". Empty for other files.
std::string program_architecture(const std::string& path);

struct Verdict {
  std::string error;    ///< why the library cannot be loaded into the program; empty: it can, or nobody knows
  std::string warning;  ///< why it is not loaded into this program, though perhaps into what that one starts
};

/// Whether a library for an architecture (Debian's name) can be preloaded into the program, or, if that is a
/// script, into its interpreter.
Verdict check_program(const std::string& path, const std::string& architecture);

}  // namespace v3d::tools
