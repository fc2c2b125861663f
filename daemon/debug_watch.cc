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

std::unique_ptr<qpu::Watch> debug_watch(chip::Generation generation, const WatchSelection& selection,
                                        qpu::PartCompiler* compiler) {
  qpu::WatchOptions options;
  std::string error;
  if (debug_on(Debug::kQpu)) {
    options.trace = qpu::TraceSelection::parse(selection.trace, &error);
    if (!options.trace) log_error("V3DEMU_TRACE_QPU: %s", error);
    options.trace_sink = log_sink("qpu");
  }
  options.strict = debug_on(Debug::kStrict);
  if (options.strict || debug_on(Debug::kHazard)) {
    const auto kinds = qpu::parse_hazard_kinds(selection.hazards, &error);
    if (!kinds) log_error("V3DEMU_HAZARDS: %s", error);
    if (kinds) options.hazard_sink = log_sink(options.strict ? "qpu-strict" : "qpu-hazard");
    options.hazards = kinds.value_or(0);
    // Where only what is wrong counts, nobody asked for the rest.
    if (kinds && selection.hazards.empty() && options.strict && !debug_on(Debug::kHazard))
      options.hazards = qpu::kWrongHazardKinds;
    if (!options.strict) options.compiler = compiler;  // strict threads are seen all along
  }
  if (!options.trace && !options.hazard_sink) return nullptr;
  return std::make_unique<qpu::Watch>(generation, std::move(options));
}

}  // namespace v3d::daemon
