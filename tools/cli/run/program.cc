#include "tools/cli/run/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tools/cli/files/files.h"
#include "tools/cli/run/emulator.h"

namespace v3d::tools {
namespace {

struct Machine {
  uint16_t number;
  unsigned char elf_class;
  const char* name;
};
constexpr Machine kMachines[] = {
    {EM_X86_64, ELFCLASS64, "amd64"}, {EM_X86_64, ELFCLASS32, "x32"}, {EM_AARCH64, ELFCLASS64, "arm64"},
    {EM_386, ELFCLASS32, "i386"},     {EM_ARM, ELFCLASS32, "armhf"},  {EM_RISCV, ELFCLASS64, "riscv64"},
};

/// The part of a file in which all that is of interest lies: the ELF header and the program headers, or the
/// first line of a script.
std::string head_of(const std::string& path) {
  std::string head(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

bool is_elf(const std::string& head) {
  return head.size() >= sizeof(Elf64_Ehdr) && memcmp(head.data(), ELFMAG, SELFMAG) == 0;
}

std::string architecture_of(const std::string& head) {
  if (!is_elf(head)) return {};
  Elf64_Ehdr header;  // e_machine lies where that of 32-bit files does
  memcpy(&header, head.data(), sizeof header);
  for (const Machine& machine : kMachines)
    if (machine.number == header.e_machine && machine.elf_class == header.e_ident[EI_CLASS])
      return machine.name;
  return "machine " + std::to_string(header.e_machine);
}

/// Whether it names no dynamic linker.
template <typename Header, typename Part>
bool has_no_linker(const std::string& head) {
  Header header;
  memcpy(&header, head.data(), sizeof header);
  if (header.e_phnum == 0) return false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Part);
    if (at > head.size() || head.size() - at < sizeof(Part)) return false;  // unusual: not known
    Part part;
    memcpy(&part, head.data() + at, sizeof part);
    if (part.p_type == PT_INTERP) return false;
  }
  return true;
}

/// The linker itself, which preloads, is no such program.
bool is_static(const std::string& path, const std::string& head) {
  if (std::filesystem::path(path).filename().string().starts_with("ld")) return false;
  return head[EI_CLASS] == ELFCLASS32 ? has_no_linker<Elf32_Ehdr, Elf32_Phdr>(head)
                                      : has_no_linker<Elf64_Ehdr, Elf64_Phdr>(head);
}

/// The program gets rights that its user does not have: the dynamic linker then ignores LD_PRELOAD.
bool gains_rights(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  if ((info.st_mode & S_ISUID) && info.st_uid != geteuid()) return true;
  if ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP) && info.st_gid != getegid()) return true;
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// The interpreter of a script; empty if it is none.
std::string interpreter_of(const std::string& head) {
  if (!head.starts_with("#!")) return {};
  std::istringstream line(head.substr(2, head.find('\n') - 2));
  std::string interpreter;
  line >> interpreter;
  return interpreter;
}

/// "FILE", or "FILE, the interpreter of SCRIPT,".
std::string name_of(const std::string& path, const std::string& script) {
  return script.empty() ? path : path + ", the interpreter of " + script + ",";
}

std::string foreign_program(const std::string& name, const std::string& theirs, const std::string& ours) {
  std::string text = name + " is " + (theirs[0] == 'i' || theirs[0] == 'a' ? "an " : "a ") + theirs +
                     " program: libv3demu.so, built for " + ours + ", cannot be preloaded into it; ";
  return text + (find_foreign(theirs) ? "--arch " + theirs + " runs such programs"
                                      : "an " + ours + " build of it is needed");
}

}  // namespace

std::string find_in(const std::string& folders, const std::string& name) {
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    std::string path = folder.empty() ? "." : folder;
    path.append("/").append(name);
    if (access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path)) return path;
  }
  return {};
}

std::string find_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return exists(command) ? command : std::string();
  const std::string folders = variable("PATH");
  return find_in(folders.empty() ? "/bin:/usr/bin" : folders, command);  // as execvp()
}

std::string program_architecture(const std::string& path) { return architecture_of(head_of(path)); }

Verdict check_program(const std::string& path, const std::string& architecture) {
  std::string file = path, script, head = head_of(path);
  if (std::string interpreter = interpreter_of(head); !interpreter.empty()) {
    script = path;
    file = interpreter;
    head = head_of(file);
  }
  if (!is_elf(head)) return {};
  const std::string name = name_of(file, script), theirs = architecture_of(head);
  if (theirs != architecture) return {.error = foreign_program(name, theirs, architecture), .warning = {}};
  const std::string consequence = ": the emulated GPU is only there for what it starts";
  if (is_static(file, head))
    return {.error = {}, .warning = name + " is statically linked, nothing can be preloaded" + consequence};
  if (gains_rights(file))
    return {.error = {},
            .warning = name +
                       " gains rights (set-user-ID, set-group-ID or capabilities), which forbids "
                       "preloading" +
                       consequence};
  return {};
}

}  // namespace v3d::tools
