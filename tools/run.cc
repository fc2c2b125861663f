/// v3demu run: a program with the emulated GPU and the drivers for it.

#include "tools/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ioctl/wire.h"
#include "shim/config.h"
#include "shim/presentation.h"
#include "tools/commands.h"
#include "tools/emulator.h"
#include "tools/files.h"

namespace v3d::tools {
namespace {

/// What the user set, stays; an empty value is none.
void set_default(const char* name, const std::string& value) {
  if (variable(name).empty()) setenv(name, value.c_str(), 1);
}

/// Adds to a list separated by colons.
void extend(const char* name, const std::string& value, bool in_front) {
  std::string old = variable(name);
  std::string list = old.empty() ? value : in_front ? value + ":" + old : old + ":" + value;
  setenv(name, list.c_str(), 1);
}

/// The driver's manifest, which Mesa itself names after the processor and distributions may not.
std::string driver_manifest(const std::string& prefix, const std::string& processor) {
  const std::string stem = prefix + "/share/vulkan/icd.d/broadcom_icd";
  const std::string plain = stem + ".json";
  return exists(plain) ? plain : stem + "." + processor + ".json";
}

/// Whether the environment names drivers already, as it does in Mesa's development shell (meson devenv).
bool names_drivers() {
  for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "LIBGL_DRIVERS_PATH", "GBM_BACKENDS_PATH",
                           "__EGL_VENDOR_LIBRARY_FILENAMES"})
    if (!variable(name).empty()) return true;
  return false;
}

/// Points the loaders of Vulkan, EGL, GLX and GBM at the drivers under `prefix`, but for those that the
/// environment points elsewhere. With `first` its libraries are found before any other.
bool use_mesa(const std::string& prefix, const std::string& architecture, bool first) {
  std::string libraries;
  for (const std::string& folder : {std::string("/lib"), "/lib/" + architecture, std::string("/lib64")}) {
    std::string path = prefix;
    path += folder;
    if (exists(path + "/libvulkan_broadcom.so")) libraries = path;
  }
  if (libraries.empty()) return false;
  const std::string icd = driver_manifest(prefix, architecture.substr(0, architecture.find('-')));
  extend("LD_LIBRARY_PATH", libraries, first);
  // Two names of one setting: the older loaders know only the second.
  if (variable("VK_DRIVER_FILES").empty() && variable("VK_ICD_FILENAMES").empty()) {
    set_default("VK_DRIVER_FILES", icd);
    set_default("VK_ICD_FILENAMES", icd);
  }
  if (variable("__EGL_VENDOR_LIBRARY_DIRS").empty()) {
    set_default("__EGL_VENDOR_LIBRARY_FILENAMES", prefix + "/share/glvnd/egl_vendor.d/50_mesa.json");
  }
  set_default("__GLX_VENDOR_LIBRARY_NAME", "mesa");
  set_default("LIBGL_DRIVERS_PATH", libraries + "/dri");
  set_default("GBM_BACKENDS_PATH", libraries + "/gbm");
  return true;
}

/// A daemon models one device under one kernel: each pair asked for by name gets a socket, and so a daemon,
/// of its own.
bool use_board(const std::string& device, const std::string& kernel) {
  std::string socket = "/socket";
  for (const auto& [name, value] : {std::pair("V3DEMU_DEVICE", device), std::pair("V3DEMU_KERNEL", kernel)}) {
    if (value.empty()) continue;
    if (value.find('/') != std::string::npos) return false;
    setenv(name, value.c_str(), 1);
    socket += "-" + value;
  }
  if (!variable(wire::kSocketVariable).empty()) return true;
  const shim::Config& config = shim::config();
  if (shim::make_runtime_dir() != 0) return false;
  set_default(wire::kSocketVariable, config.runtime_dir.c_str() + socket);
  return true;
}

void choose_presentation() {
  if (variable("V3DEMU_WSI") != "native" && variable("MESA_VK_WSI_DEBUG").empty() &&
      shim::needs_software_presentation(true)) {
    set_default("MESA_VK_WSI_DEBUG", "sw");
  }
  // Vulkan needs nothing without a display (VK_EXT_headless_surface); EGL would look for an X server.
  if (variable("DISPLAY").empty() && variable("WAYLAND_DISPLAY").empty()) {
    set_default("EGL_PLATFORM", "surfaceless");
  }
}

int fail(const std::string& what) {
  fprintf(stderr, "v3demu run: %s\n", what.c_str());
  return 127;
}

}  // namespace

int run_program(const RunOptions& options) {
  const bool arm64 = options.arch == "arm64";
  const std::string emulator = arm64 ? find_arm64_emulator() : std::string();
  const std::string root = arm64 ? find_arm64_root(options.root) : std::string();
  std::string program, error;
  if (arm64) {
    if (emulator.empty()) return fail("qemu-aarch64 not found; it is in Debian's package qemu-user");
    if (root.empty()) return fail("no root with arm64 libraries; packaging/arm64-root makes one");
    program = find_arm64_program(root, options.command[0], &error);
    if (program.empty()) return fail(error);
  }
  const std::string architecture = arm64 ? kArm64Architecture : kHostArchitecture;
  const std::string shim = find_shim(architecture);
  if (!exists(shim)) {
    return fail("libv3demu.so not found beside this program" +
                std::string(arm64 ? " for arm64; building it needs g++-aarch64-linux-gnu" : "") +
                "; name it in V3DEMU_SHIM");
  }
  if (!(options.device + options.kernel).empty() && !use_board(options.device, options.kernel)) {
    return fail("cannot use the folder " + std::string(shim::config().runtime_dir.c_str()) + " for device '" +
                options.device + "' and kernel '" + options.kernel + "'");
  }
  const std::string mesa = !options.mesa.empty() ? options.mesa : arm64 ? root + "/usr" : default_mesa();
  // Drivers that the user named by the loaders' variables find their own libraries before ours.
  if (!use_mesa(mesa, architecture, !options.mesa.empty() || !names_drivers())) {
    if (!options.mesa.empty()) return fail("no libvulkan_broadcom.so under " + mesa);
    fprintf(stderr, "v3demu run: no Mesa with Broadcom drivers in %s; the system's is used\n", mesa.c_str());
  }
  choose_presentation();
  extend("LD_PRELOAD", shim, false);
  if (arm64) {
    exec_arm64(emulator, root, program, options.command);
    return fail(emulator + ": " + strerror(errno));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return fail(options.command[0] + ": " + strerror(errno));
}

void add_run_options(CLI::App* command, RunOptions* options) {
  command->add_option("--device", options->device, "rpi5 (default) or rpi5-16");
  command->add_option("--kernel", options->kernel,
                      "Linux whose driver interface is answered with: 7.3 (default) or 6.12");
  command->add_option("--mesa", options->mesa,
                      "Prefix of a Mesa with Broadcom drivers; default " + default_mesa());
  command->add_option("--arch", options->arch, "arm64: run an arm64 program, by qemu-aarch64")
      ->check(CLI::IsMember({"arm64"}));
  command->add_option("--root", options->root,
                      "Libraries of arm64 programs: a folder, or a suite of packaging/arm64-root");
  command->prefix_command();  // the first word that is no option, and all that follow, are the program
}

void add_run(CLI::App* app, int* exit_code) {
  static RunOptions options;
  CLI::App* command = app->add_subcommand("run", "Run a program with the emulated GPU");
  add_run_options(command, &options);
  command->callback([command, exit_code] {
    options.command = command->remaining();
    *exit_code = options.command.empty() ? fail("no program given") : run_program(options);
  });
}

void adapt_arguments(std::vector<char*>* arguments) {
  size_t at = 1;
  if (arguments->size() < 2) return;
  const std::string command = (*arguments)[at++];
  if (command == "replay") {
    static char default_trace[] = "--trace-qpu=batch=0";
    for (char*& argument : *arguments)
      if (strcmp(argument, "--trace-qpu") == 0) argument = default_trace;
  }
  if (command != "run" && command != "capture") return;
  // All options of both but --help take a value.
  while (at < arguments->size() && (*arguments)[at][0] == '-' && strcmp((*arguments)[at], "--") != 0) {
    std::string option = (*arguments)[at];
    at += option == "-h" || option == "--help" || option.find('=') != std::string::npos ? 1 : 2;
  }
  if (at < arguments->size() && strcmp((*arguments)[at], "--") == 0) {
    arguments->erase(arguments->begin() + static_cast<ptrdiff_t>(at));
  }
}

}  // namespace v3d::tools
