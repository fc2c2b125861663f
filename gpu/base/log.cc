#include "gpu/base/log.h"

#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace v3d {

uint32_t g_debug_mask = 0;

namespace {

struct DebugName {
  const char* name;
  Debug category;
  const char* help;
};

constexpr DebugName kNames[] = {
    {"mmu", Debug::kMmu, "mappings and faults"},
    {"cl", Debug::kCl, "control lists, packet by packet"},
    {"qpu", Debug::kQpu, "QPU threads, instruction by instruction; V3DEMU_TRACE_QPU selects them"},
    {"vpm", Debug::kVpm, "attribute fetch and vertex shading"},
    {"ptb", Debug::kPtb, "primitive assembly, clipping, binning"},
    {"pse", Debug::kPse, "primitive set-up and rasterisation"},
    {"tmu", Debug::kTmu, "texture and memory lookups"},
    {"tlb", Debug::kTlb, "tile loads and stores"},
    {"tfu", Debug::kTfu, "texture formatting jobs"},
    {"csd", Debug::kCsd, "compute dispatches"},
    {"perf", Debug::kPerf, "performance counters"},
    {"ioctl", Debug::kIoctl, "every ioctl with its result"},
    {"sched", Debug::kSched, "jobs and fences"},
    {"daemon", Debug::kDaemon, "connections"},
    {"hazard", Debug::kHazard, "rules of the QPU that a program breaks; V3DEMU_HAZARDS selects their kinds"},
    {"strict", Debug::kStrict,
     "the same in every thread, with poison where the chip leaves any value; programs that break one fail"},
    {"jit", Debug::kJit, "compiled QPU programs, each instruction with its host code"},
};

std::string& log_path() {
  static std::string path;
  return path;
}
FILE* log_file() {
  static FILE* file = [] {
    FILE* opened = log_path().empty() ? nullptr : std::fopen(log_path().c_str(), "ae");
    return opened ? opened : stderr;
  }();
  return file;
}

thread_local const LogClient* t_client = nullptr;

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

struct Limits {
  std::mutex mutex;
  LogLimiter limiter;
};
Limits& limits() {
  static Limits limits;
  return limits;
}

void write_left_out(const std::vector<LogLimiter::LeftOut>& all) {
  for (const LogLimiter::LeftOut& l : all) {
    LineBuffer line;
    absl::Format(&line, "%d more of this kind of %s were left out: %s", l.lines, l.client, l.kind);
    log_line("limit", {line.text, line.size});
  }
}

}  // namespace

std::string debug_names(uint32_t mask) {
  std::string list;
  for (const DebugName& n : kNames)
    if (mask & static_cast<uint32_t>(n.category)) absl::StrAppend(&list, list.empty() ? "" : ",", n.name);
  return list.empty() ? "nothing" : list;
}

std::string debug_help() {
  std::string text = "categories of V3DEMU_DEBUG, a list with commas:\n";
  for (const DebugName& n : kNames) absl::StrAppendFormat(&text, "  %-8s %s\n", n.name, n.help);
  return text + "  all      all of them\n";
}

absl::StatusOr<DebugRequest> parse_debug(absl::string_view list) {
  DebugRequest request;
  for (absl::string_view word : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    uint32_t category = word == "all" ? ~0u : 0;
    for (const DebugName& n : kNames)
      if (word == n.name) category = static_cast<uint32_t>(n.category);
    if (word == "help")
      request.help = true;
    else if (!category)
      return absl::InvalidArgumentError(absl::StrCat("V3DEMU_DEBUG: no category \"", word, "\"; there are ",
                                                     debug_names(~0u), ",all,help"));
    request.mask |= category;
  }
  return request;
}

absl::Status set_debug(absl::string_view list) {
  const auto request = parse_debug(list);
  if (request.ok()) g_debug_mask |= request->mask;
  return request.status();
}

const LogClient* log_client() { return t_client; }
LogScope::LogScope(const LogClient* client) : before_(t_client) { t_client = client; }
LogScope::~LogScope() { t_client = before_; }

bool admit_line(const char* format) {
  if (!t_client) return true;
  std::vector<LogLimiter::LeftOut> ended;
  bool admitted;
  {
    const std::lock_guard lock(limits().mutex);
    admitted = limits().limiter.admit(*t_client, format, now_ns(), &ended);
  }
  write_left_out(ended);
  return admitted;
}

void report_left_out() {
  std::vector<LogLimiter::LeftOut> ended;
  {
    const std::lock_guard lock(limits().mutex);
    limits().limiter.end_windows(now_ns(), &ended);
  }
  write_left_out(ended);
}

void report_left_out(const LogClient& client) {
  std::vector<LogLimiter::LeftOut> left_out;
  {
    const std::lock_guard lock(limits().mutex);
    limits().limiter.leave(client.id, &left_out);
  }
  write_left_out(left_out);
}

void log_to(std::string path) { log_path() = std::move(path); }

void log_line(absl::string_view tag, absl::string_view text) {
  static std::mutex mutex;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::lock_guard lock(mutex);
  std::fprintf(log_file(), "v3demu %ld.%06ld %.*s: %.*s\n", static_cast<long>(now.tv_sec), now.tv_nsec / 1000,
               static_cast<int>(tag.size()), tag.data(), static_cast<int>(text.size()), text.data());
  std::fflush(log_file());
}

}  // namespace v3d
