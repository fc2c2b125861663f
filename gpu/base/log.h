/// Messages of the GPU model. Categories are the folder names; V3DEMU_DEBUG=cle,qpu,... switches them on.
#pragma once

#include <cstdint>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace v3d {

enum class Debug : uint32_t {
  kMmu = 1u << 0,
  kCl = 1u << 1,
  kQpu = 1u << 2,
  kVpm = 1u << 3,
  kPtb = 1u << 4,
  kPse = 1u << 5,
  kTmu = 1u << 6,
  kTlb = 1u << 7,
  kTfu = 1u << 8,
  kCsd = 1u << 9,
  kPerf = 1u << 10,
  kIoctl = 1u << 11,
  kSched = 1u << 12,
  kDaemon = 1u << 13,
  kHazard = 1u << 14,
};

/// Parses a list such as "cl,qpu"; unknown names are reported once on the log. "help" prints the names.
void set_debug(absl::string_view list);
extern uint32_t g_debug_mask;
inline bool debug_on(Debug category) { return (g_debug_mask & static_cast<uint32_t>(category)) != 0; }

/// One line on stderr (or V3DEMU_LOG=FILE), with a time stamp and the tag.
void log_line(absl::string_view tag, absl::string_view text);

template <typename... Args>
void log_error(const absl::FormatSpec<Args...>& format, const Args&... args) {
  log_line("error", absl::StrFormat(format, args...));
}
template <typename... Args>
void log_warning(const absl::FormatSpec<Args...>& format, const Args&... args) {
  log_line("warning", absl::StrFormat(format, args...));
}
template <typename... Args>
void log_debug(Debug category, const absl::FormatSpec<Args...>& format, const Args&... args) {
  if (debug_on(category)) log_line("debug", absl::StrFormat(format, args...));
}

}  // namespace v3d
