/// @file Commands of `v3demu status`, the preload library and their like.
#include <algorithm>
#include <cerrno>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/capture_window.h"
#include "daemon/node_name.h"
#include "daemon/server.h"
#include "gpu/base/log.h"
#include "gpu/base/work_meter.h"
#include "ioctl/display/connector_files.h"

namespace v3d::daemon {
namespace {

constexpr std::string_view kDebugCommand = "debug ", kSysfsCommand = "sysfs ",
                           kConnectorCommand = "connector ", kFdinfoCommand = "fdinfo ",
                           kDebugfsCommand = "debugfs ";
/// Holders of one resource that `status` names.
constexpr size_t kMostHolders = 16;

/// What a client that asks for debug output must know; nothing when this daemon writes all that it asks for.
/// The daemon does not follow: what it writes is of all clients, and watches are set up when the device is
/// made.
std::string compare_debug(absl::string_view list) {
  const auto request = parse_debug(list);
  if (!request.ok()) return absl::StrCat(request.status().message(), "\n");
  std::string text = request->help ? debug_help() : "";
  if (request->mask & ~g_debug_mask)
    absl::StrAppendFormat(
        &text,
        "the daemon that runs (pid %d) logs %s, not %s as V3DEMU_DEBUG asks: end it (kill %d) "
        "or name another V3DEMU_SOCKET\n",
        getpid(), debug_names(g_debug_mask), debug_names(request->mask), getpid());
  return text;
}

std::string amount(uint64_t value) { return value >= UINT64_MAX / 4 ? "-" : absl::StrCat(value); }

/// The last GPU errors, if there were any: program, job, what happened, and where.
void append_errors(const GpuErrors& errors, std::string* text) {
  const std::vector<GpuErrors::Error> last = errors.last();
  if (last.empty()) return;
  for (size_t kind = 0; kind < kNumGpuErrorKinds; ++kind)
    absl::StrAppendFormat(text, "%s%d %s",
                          kind ? ", " : "GPU errors: ", errors.count(static_cast<GpuErrorKind>(kind)),
                          kGpuErrorKinds[kind].short_text);
  absl::StrAppendFormat(text, "; the last %d:\n", last.size());
  for (const GpuErrors::Error& error : last)
    absl::StrAppendFormat(text, "  %.1f s ago, %s (pid %d), %s job %d: %s: %s\n",
                          static_cast<double>(ioctl::monotonic_ns() - error.time_ns) * 1e-9, error.program,
                          error.pid, ioctl::queue_name(error.queue), error.job, row_of(error.kind).word,
                          error.text);
}

/// What may be held and is, and by whom.
void append_limits(ioctl::Budget& budget, std::string* text) {
  absl::StrAppendFormat(text, "%-15s %14s %14s %14s %14s  %s\n", "limit", "per client", "guaranteed",
                        "in all", "set aside", "holders");
  const auto accounts = budget.accounts();
  for (size_t i = 0; i < ioctl::kNumResources; ++i) {
    const auto resource = static_cast<ioctl::Resource>(i);
    const ioctl::ResourceLimit& limit = budget.limit(resource);
    absl::StrAppendFormat(text, "%-15s %14s %14s %14s %14d ", ioctl::resource_row(resource).name,
                          amount(limit.per_client), amount(limit.guaranteed), amount(limit.in_all),
                          budget.used(resource));
    size_t told = 0;
    for (const auto& account : accounts) {
      const uint64_t used = account->used(resource), refusals = account->refusals(resource);
      if (used == 0 && refusals == 0) continue;
      if (++told > kMostHolders) break;
      absl::StrAppendFormat(text, " %s %d", account->name(), used);
      if (refusals) absl::StrAppendFormat(text, " (%d refused)", refusals);
      absl::StrAppend(text, ";");
    }
    absl::StrAppend(text, told == 0 ? " -\n" : told > kMostHolders ? " ...\n" : "\n");
  }
}

}  // namespace

int Server::command(const std::string& text, std::string* answer) {
  if (text == "gpu_stats") {
    *answer = gpu_stats_text();
    return 0;
  }
  if (text == "gpu_active") {
    *answer = gpu_is_active() ? "1\n" : "0\n";
    return 0;
  }
  if (text == "status") {
    *answer = status_text();
    return 0;
  }
  if (text == "status json") {
    *answer = status_json();
    return 0;
  }
  if (text == "capture toggle") {
    if (options_.capture.empty() || !options_.capture_window) return ENOTSUP;
    *answer = options_.capture_window->toggle() ? "on" : "off";
    return 0;
  }
  if (text == "shutdown") {
    *answer = "leaving\n";
    stop();
    return 0;
  }
  if (text.starts_with(place::kCompareCommand)) {
    *answer =
        compare_settings(options_.settings, std::string_view(text).substr(sizeof place::kCompareCommand - 1));
    return 0;
  }
  if (text.starts_with(kDebugCommand)) {
    *answer = compare_debug(text.substr(kDebugCommand.size()));
    return 0;
  }
  if (text.starts_with(kSysfsCommand))
    return ioctl::kms::read_connector_file(kernel_.display(), text.substr(kSysfsCommand.size()), answer)
               ? 0
               : ENOENT;
  if (text.starts_with(kDebugfsCommand))
    return debugfs_text(std::string_view(text).substr(kDebugfsCommand.size()), answer) ? 0 : ENOENT;
  if (text == "connector") {
    *answer = ioctl::kms::list_connectors(kernel_.display());
    return 0;
  }
  if (text.starts_with(kConnectorCommand))
    return ioctl::kms::plug_monitor(kernel_.display(), text.substr(kConnectorCommand.size()),
                                    kernel_.has_display_master(), answer)
               ? 0
               : EINVAL;
  if (uint64_t inode; text.starts_with(kFdinfoCommand) &&
                      absl::SimpleAtoi(absl::string_view(text).substr(kFdinfoCommand.size()), &inode)) {
    *answer = fdinfo_text(inode);
    return answer->empty() ? ENOTTY : 0;
  }
  *answer =
      "commands: status, status json, gpu_stats, gpu_active, fdinfo INODE, capture toggle, shutdown, "
      "settings, debug "
      "LIST, sysfs FILE, debugfs FILE, "
      "connector [NAME on|off]\n";
  return EINVAL;
}

Server::Overview Server::overview() {
  Overview all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [token, open] : files_) all.files.push_back(open.file);
    all.connections = connections_.size();
    all.draining = draining_.size();
  }
  std::sort(all.files.begin(), all.files.end(),
            [](const auto& a, const auto& b) { return a->client()->id < b->client()->id; });
  return all;
}

std::string Server::status_text() {
  const chip::Profile& profile = kernel_.gpu().profile();
  std::string text =
      absl::StrFormat("v3demud pid %d, up %.1f s\ndevice %s: %s\nLinux %s, %d GPU resets\n", getpid(),
                      static_cast<double>(ioctl::monotonic_ns() - started_ns_) * 1e-9, profile.name,
                      profile.description, kernel_.abi().name, kernel_.resets.load());
  if (!options_.capture.empty()) absl::StrAppendFormat(&text, "captures to %s\n", options_.capture);

  text += kernel_.gpu().status();
  const auto queues = scheduler_.status();
  absl::StrAppendFormat(&text, "%-12s %8s %10s %12s\n", "queue", "queued", "jobs", "busy ms");
  for (size_t q = 0; q < queues.size(); ++q)
    absl::StrAppendFormat(&text, "%-12s %7d%c %10d %12.1f\n", ioctl::queue_name(static_cast<ioctl::Queue>(q)),
                          queues[q].queued, queues[q].in_flight ? '*' : ' ', queues[q].jobs_done,
                          static_cast<double>(queues[q].busy_ns) * 1e-6);

  absl::StrAppendFormat(&text,
                        "longest work between two looks: %d units charged, %d compiled; slices of %d\n",
                        g_longest_charged.cost(), g_longest_compiled.cost(), WorkMeter::kSlice);
  const auto [files, connections, draining] = overview();
  absl::StrAppendFormat(&text, "%d open nodes, %d connections, %d clients leaving\n", files.size(),
                        connections, draining);
  append_errors(errors_, &text);
  append_limits(kernel_.budget(), &text);
  if (files.empty()) return text;
  absl::StrAppendFormat(&text, "%6s %-16s %8s %10s %7s %10s %9s %9s %9s %9s %9s %9s %7s %7s  %s\n", "client",
                        "program", "pid", "node", "BOs", "KiB", "bin", "render", "tfu", "csd", "clean", "cpu",
                        "faults", "failed", "name");
  for (const auto& file : files) {
    const ioctl::ClientInfo& client = *file->client();
    const std::shared_ptr<const ioctl::User> user = client.user();
    absl::StrAppendFormat(&text, "%6d %-16s %8d %10s %7d %10d", client.id, user->program, user->pid,
                          node_name(*file), file->memory_use().objects.load(),
                          file->memory_use().bytes.load() >> 10);
    for (const auto& jobs : client.jobs_done) absl::StrAppendFormat(&text, " %9d", jobs.load());
    const std::string name = file->client_name();
    absl::StrAppendFormat(&text, " %7d %7d  %s\n", client.mmu_faults.load(), client.failed_jobs.load(),
                          name.empty() ? "-" : name);
  }
  return text;
}

}  // namespace v3d::daemon
