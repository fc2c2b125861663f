/// getenv, for one variable: Mesa asks for MESA_VK_WSI_DEBUG once, when it sets up the presentation of a
/// Vulkan device. Answering then costs other programs nothing, changes no environment (which would race with
/// other threads and reach child processes), and can look at the servers that really run.

#include <cstdlib>
#include <cstring>

#include "shim/interpose/interpose.h"
#include "shim/process/config.h"
#include "shim/process/presentation.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

char* find(const char* name) {
  char* value = const_cast<char*>(environment_variable(name));
  if (value || strcmp(name, "MESA_VK_WSI_DEBUG") != 0 || config().native_wsi) return value;
  raw::KeepErrno keep;
  static char software[] = "sw";
  return needs_software_presentation(false) ? software : nullptr;
}

}  // namespace

V3D_INTERPOSE(char*, variable_found, "getenv", (const char* name)) { return find(name); }

}  // namespace v3d::shim
