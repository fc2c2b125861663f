/// @file Commands of `v3demu status` and its like.
#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "daemon/server.h"

namespace v3d::daemon {

int Server::command(const std::string& text, std::string* answer) {
  if (text == "status") {
    *answer = status_text();
    return 0;
  }
  if (text == "shutdown") {
    *answer = "leaving\n";
    stop();
    return 0;
  }
  *answer = "commands: status, shutdown\n";
  return EINVAL;
}

std::string Server::status_text() {
  const device::Profile& profile = kernel_.gpu().profile();
  std::string text =
      absl::StrFormat("v3demud pid %d, up %.1f s\ndevice %s: %s\nLinux %s, %d GPU resets\n", getpid(),
                      static_cast<double>(ioctl::monotonic_ns() - started_ns_) * 1e-9, profile.name,
                      profile.description, kernel_.abi().name, kernel_.resets.load());

  const auto queues = scheduler_.status();
  absl::StrAppendFormat(&text, "%-12s %8s %10s %12s\n", "queue", "queued", "jobs", "busy ms");
  for (size_t q = 0; q < queues.size(); ++q)
    absl::StrAppendFormat(&text, "%-12s %7d%c %10d %12.1f\n", ioctl::queue_name(static_cast<ioctl::Queue>(q)),
                          queues[q].queued, queues[q].running ? '*' : ' ', queues[q].jobs_done,
                          static_cast<double>(queues[q].busy_ns) * 1e-6);

  std::vector<std::shared_ptr<ioctl::File>> files;
  size_t connections, draining;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [token, open] : files_) files.push_back(open.file);
    connections = connections_.size();
    draining = draining_.size();
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a->client()->id < b->client()->id; });
  absl::StrAppendFormat(&text, "%d open nodes, %d connections, %d clients leaving\n", files.size(),
                        connections, draining);
  if (files.empty()) return text;
  absl::StrAppendFormat(&text, "%6s %-16s %8s %10s %7s %10s %9s %9s %9s %9s %9s %9s %7s %7s  %s\n", "client",
                        "program", "pid", "node", "BOs", "KiB", "bin", "render", "tfu", "csd", "clean", "cpu",
                        "faults", "failed", "name");
  for (const auto& file : files) {
    const ioctl::ClientInfo& client = *file->client();
    absl::StrAppendFormat(&text, "%6d %-16s %8d %10s %7d %10d", client.id, client.program, client.pid,
                          file->is_render() ? "renderD128" : absl::StrFormat("card%d", file->minor()),
                          file->memory_use().objects.load(), file->memory_use().bytes.load() >> 10);
    for (const auto& jobs : client.jobs_done) absl::StrAppendFormat(&text, " %9d", jobs.load());
    const std::string name = file->client_name();
    absl::StrAppendFormat(&text, " %7d %7d  %s\n", client.mmu_faults.load(), client.failed_jobs.load(),
                          name.empty() ? "-" : name);
  }
  return text;
}

}  // namespace v3d::daemon
