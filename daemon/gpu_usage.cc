/// @file Who uses the GPU, as the kernel shows it: gpu_stats and fdinfo.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/server.h"

namespace v3d::daemon {
namespace {

/// In the largest unit of which it is a whole number (Linux drm_file.c).
std::string memory_size(uint64_t bytes) {
  const char* unit = "";
  for (const char* larger : {" KiB", " MiB"}) {
    if (bytes == 0 || bytes % 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return absl::StrCat(bytes, unit);
}

}  // namespace

bool Server::gpu_is_active() {
  const auto queues = scheduler_.status();
  return std::any_of(queues.begin(), queues.end(), [](const auto& queue) { return queue.queued > 0; });
}

std::string Server::gpu_stats_text() {
  std::string text = "queue\ttimestamp\tjobs\truntime\n";
  const auto queues = scheduler_.status();
  for (size_t q = 0; q < queues.size(); ++q)
    absl::StrAppendFormat(&text, "%s\t%d\t%d\t%d\n", ioctl::queue_name(static_cast<ioctl::Queue>(q)),
                          ioctl::monotonic_ns(), queues[q].jobs_done, queues[q].busy_ns);
  return text;
}

std::string Server::fdinfo_text(ino_t inode) {
  std::shared_ptr<ioctl::File> file;
  {
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(files_.begin(), files_.end(),
                                 [inode](const auto& entry) { return entry.second.inode == inode; });
    if (it != files_.end()) file = it->second.file;
  }
  if (!file) return {};
  std::string text = absl::StrCat(file->minor(), "\n");
  if (file->device().modeset) return text;  // vc4 has no show_fdinfo
  // v3d_drv.c (v3d_show_fdinfo) and drm_file.c (drm_show_fdinfo, drm_show_memory_stats).
  const ioctl::ClientInfo& client = *file->client();
  absl::StrAppendFormat(&text, "drm-driver:\t%s\ndrm-client-id:\t%d\n", file->device().name, client.id);
  if (const std::string name = file->client_name(); !name.empty())
    absl::StrAppendFormat(&text, "drm-client-name:\t%s\n", name);
  for (size_t q = 0; q < client.busy_ns.size(); ++q) {
    const char* queue = ioctl::queue_name(static_cast<ioctl::Queue>(q));
    absl::StrAppendFormat(&text, "drm-engine-%s: \t%d ns\nv3d-jobs-%s: \t%d jobs\n", queue,
                          client.busy_ns[q].load(), queue, client.jobs_done[q].load());
  }
  const ioctl::File::MemoryShown memory = file->memory_shown();
  absl::StrAppendFormat(&text, "drm-total-memory:\t%s\ndrm-shared-memory:\t%s\ndrm-active-memory:\t%s\n",
                        memory_size(memory.total), memory_size(memory.shared), memory_size(memory.active));
  return text;
}

}  // namespace v3d::daemon
