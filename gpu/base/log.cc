#include "gpu/base/log.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

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
    {"hazard", Debug::kHazard, "rules of the QPU that a program breaks"},
};

FILE* log_file() {
  static FILE* file = [] {
    const char* path = std::getenv("V3DEMU_LOG");
    FILE* opened = path ? std::fopen(path, "ae") : nullptr;
    return opened ? opened : stderr;
  }();
  return file;
}

}  // namespace

void set_debug(absl::string_view list) {
  for (absl::string_view word : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    bool found = word == "help";
    if (word == "all") {
      g_debug_mask = ~0u;
      found = true;
    }
    for (const DebugName& n : kNames) {
      if (word == "help") log_line("help", absl::StrFormat("%-8s %s", n.name, n.help));
      if (word == n.name) {
        g_debug_mask |= static_cast<uint32_t>(n.category);
        found = true;
      }
    }
    if (!found)
      log_line("warning",
               absl::StrFormat("V3DEMU_DEBUG: no category \"%s\" (\"help\" lists them)", std::string(word)));
  }
}

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
