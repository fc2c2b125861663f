/// The log takes the messages of the GPU model. Those for debugging have categories, by and large the folders
/// of gpu/, which whoever runs the model switches on (v3demud --debug).
#pragma once

#include <cstdint>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "gpu/base/log_limiter.h"

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
  kJit = 1u << 15,
  kStrict = 1u << 16,
};

/// What a list such as "cl,qpu" asks for.
struct DebugRequest {
  uint32_t mask = 0;
  bool help = false;  ///< "help" is among them: whoever reads the list prints debug_help()
};
/// InvalidArgument, naming those that there are, for a category that does not exist.
absl::StatusOr<DebugRequest> parse_debug(absl::string_view list);
/// A line for each category.
std::string debug_help();
/// As a list that parse_debug() reads; "nothing" for none.
std::string debug_names(uint32_t mask);

/// Switches categories on; none if one of them does not exist (as parse_debug()).
absl::Status set_debug(absl::string_view list);
extern uint32_t g_debug_mask;
inline bool debug_on(Debug category) { return (g_debug_mask & static_cast<uint32_t>(category)) != 0; }

/// Lines go to the end of this file, which the first one opens; to stderr when it cannot be opened, and
/// without such a call. Before other threads log.
void log_to(std::string path);
/// One line with a time stamp and the tag.
void log_line(absl::string_view tag, absl::string_view text);

/// On behalf of whom this thread works: errors and warnings are limited per client and kind (LogLimiter).
/// What is on nobody's behalf, and what V3DEMU_DEBUG asks for, is not limited.
const LogClient* log_client();
class LogScope {
 public:
  /// @param client  may be nullptr; outlives the scope
  explicit LogScope(const LogClient* client);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  const LogClient* const before_;
};
/// Writes how many lines the limit left out in the windows that have ended. To be called now and then.
void report_left_out();
/// The same of a client that leaves.
void report_left_out(const LogClient& client);

/// Whether an error or warning may be written now. @param format  its kind; lives as long as the program
bool admit_line(const char* format);

/// Text of at most its size; what is longer is cut off. Absl's formatting into strings ends the program when
/// there is no memory.
struct LineBuffer {
  char text[4096];
  size_t size = 0;

  // NOLINTNEXTLINE(readability-identifier-naming): absl looks for this name
  friend void AbslFormatFlush(LineBuffer* line, absl::string_view part) {
    const size_t count = part.copy(line->text + line->size, sizeof(line->text) - line->size);
    line->size += count;
  }
};

/// Needs no memory but what the count of lines takes; without that nothing is counted.
template <typename... Args>
void log_limited(absl::string_view tag, const char* format, const Args&... args) {
  try {
    if (!admit_line(format)) return;
  } catch (const std::bad_alloc&) {  // then it is written
  }
  LineBuffer line;
  if (absl::FormatUntyped(&line, absl::UntypedFormatSpec(format), {absl::FormatArg(args)...}))
    log_line(tag, {line.text, line.size});
  else
    log_line(tag, format);
}

/// @param format  a literal
template <typename... Args>
void log_error(const char* format, const Args&... args) {
  log_limited("error", format, args...);
}
template <typename... Args>
void log_warning(const char* format, const Args&... args) {
  log_limited("warning", format, args...);
}
template <typename... Args>
void log_debug(Debug category, const absl::FormatSpec<Args...>& format, const Args&... args) {
  if (debug_on(category)) log_line("debug", absl::StrFormat(format, args...));
}

}  // namespace v3d
