#include "daemon/debug_watch.h"

#include <string>
#include <utility>

#include "gpu/base/log.h"

namespace v3d::daemon {
namespace {

qpu::TraceSink log_sink(const char* tag) {
  return [tag](std::string_view text) { log_line(tag, absl::string_view(text.data(), text.size())); };
}

}  // namespace

std::unique_ptr<qpu::Watch> debug_watch(int version, std::string_view selection) {
  qpu::WatchOptions options;
  if (debug_on(Debug::kQpu)) {
    std::string error;
    options.trace = qpu::TraceSelection::parse(selection, &error);
    if (!options.trace) log_error("V3DEMU_TRACE_QPU: %s", error);
    options.trace_sink = log_sink("qpu");
  }
  if (debug_on(Debug::kHazard)) options.hazard_sink = log_sink("qpu-hazard");
  if (!options.trace && !options.hazard_sink) return nullptr;
  return std::make_unique<qpu::Watch>(version, std::move(options));
}

}  // namespace v3d::daemon
