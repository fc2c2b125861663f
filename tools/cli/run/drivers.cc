#include "tools/cli/run/drivers.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/files/files.h"
#include "tools/cli/files/list_path.h"

namespace v3d::tools {
namespace {

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

/// With `first` the libraries of the prefix are found before any other.
void use_mesa(const std::string& prefix, const std::string& libraries, const std::string& architecture,
              bool first) {
  const std::string icd = driver_manifest(prefix, architecture.substr(0, architecture.find('-')));
  extend_list("LD_LIBRARY_PATH", libraries, first);
  // Two names of one setting: the older loaders know only the second.
  if (variable("VK_DRIVER_FILES").empty() && variable("VK_ICD_FILENAMES").empty()) {
    set_default("VK_DRIVER_FILES", icd);
    set_default("VK_ICD_FILENAMES", icd);
  }
  if (variable("__EGL_VENDOR_LIBRARY_DIRS").empty())
    set_default("__EGL_VENDOR_LIBRARY_FILENAMES", prefix + "/share/glvnd/egl_vendor.d/50_mesa.json");
  set_default("__GLX_VENDOR_LIBRARY_NAME", "mesa");
  set_default("LIBGL_DRIVERS_PATH", libraries + "/dri");
  set_default("GBM_BACKENDS_PATH", libraries + "/gbm");
}

std::string remedy() {
  return absl::StrCat(
      "looked in ", absl::StrJoin(mesa_places(), ", "),
      "; install the package v3demu-mesa, run packaging/setup, or name one with --mesa PREFIX "
      "or $V3DEMU_MESA (--mesa system uses the distribution's)");
}

}  // namespace

void set_default(const char* name, const std::string& value) {
  if (variable(name).empty()) setenv(name, value.c_str(), 1);
}

void extend_list(const char* name, const std::string& value, bool in_front) {
  const std::string old = variable(name);
  const std::string list = old.empty() ? value : in_front ? value + ":" + old : old + ":" + value;
  setenv(name, list.c_str(), 1);
}

absl::Status use_drivers(const std::string& named, const std::string& usual,
                         const std::string& architecture) {
  if (named == kSystemMesa) return absl::OkStatus();
  const std::string& mesa = named.empty() ? usual : named;
  if (broadcom_libraries(mesa, architecture).empty()) {
    if (named.empty() && names_drivers()) return absl::OkStatus();
    return mesa.empty() ? absl::NotFoundError("no Mesa with Broadcom drivers: " + remedy())
                        : absl::NotFoundError("no libvulkan_broadcom.so under " + mesa);
  }
  const auto prefix = list_path(std::filesystem::absolute(mesa));
  if (!prefix.ok()) return prefix.status();
  // Drivers that the user named by the loaders' variables find their own libraries before ours.
  use_mesa(*prefix, broadcom_libraries(*prefix, architecture), architecture,
           !named.empty() || !names_drivers());
  return absl::OkStatus();
}

}  // namespace v3d::tools
