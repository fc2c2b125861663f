#include "daemon/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace v3d::daemon {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;

/// The number at the start of a file; unlimited when there is none ("max").
uint64_t read_number(const std::string& path) {
  uint64_t value = 0;
  return std::ifstream(path) >> value ? value : kUnlimited;
}

/// The least that a cgroup and those above it allow. A container may see its own as the root of the tree.
uint64_t least_of_cgroup(const std::string& tree, std::filesystem::path group, const std::string& file) {
  uint64_t least = read_number(tree + "/" + file);
  for (; group.has_relative_path(); group = group.parent_path())
    least = std::min(least, read_number(absl::StrCat(tree, group.string(), "/", file)));
  return least;
}

/// @param v1, v2  the names of the file in the two versions
uint64_t cgroup_limit(const std::string& controller, const std::string& v1, const std::string& v2) {
  uint64_t least = kUnlimited;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (fields[1].empty())
      least = std::min(least, least_of_cgroup("/sys/fs/cgroup", fields[2], v2));
    else if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end())
      least = std::min(least, least_of_cgroup("/sys/fs/cgroup/" + controller, fields[2], v1));
  }
  return least;
}

/// /proc/meminfo's "MemTotal:  24684212 kB".
uint64_t physical_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string name; info >> name;) {
    uint64_t kibibytes = 0;
    if (name == "MemTotal:" && info >> kibibytes) return kibibytes << 10;
    info.ignore(1 << 10, '\n');
  }
  return kUnlimited;
}

uint64_t soft_limit(__rlimit_resource resource) {
  rlimit limit;
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : kUnlimited;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const uint64_t most = read_number("/proc/sys/fs/nr_open");
  const rlimit root = {most, most};
  limit.rlim_cur = limit.rlim_max;
  if (most == kUnlimited || most <= limit.rlim_max || setrlimit(RLIMIT_NOFILE, &root) != 0)
    setrlimit(RLIMIT_NOFILE, &limit);
}

ioctl::HostRoom read_host_room() {
  ioctl::HostRoom room;
  room.memory = std::min(physical_memory(), cgroup_limit("memory", "memory.limit_in_bytes", "memory.max"));
  room.descriptors = soft_limit(RLIMIT_NOFILE);
  room.mappings = read_number("/proc/sys/vm/max_map_count");
  room.threads =
      std::min(read_number("/proc/sys/kernel/threads-max"), cgroup_limit("pids", "pids.max", "pids.max"));
  if (geteuid() != 0) room.threads = std::min(room.threads, soft_limit(RLIMIT_NPROC));  // root has none
  return room;
}

absl::Status set_limit(const std::string& text, ioctl::ResourceLimits* limits) {
  const std::vector<std::string> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  ioctl::Resource resource;
  if (!ioctl::find_resource(sides[0], &resource)) {
    std::string names;
    for (size_t i = 0; i < ioctl::kNumResources; ++i)
      absl::StrAppend(&names, i ? ", " : "", ioctl::resource_row(static_cast<ioctl::Resource>(i)).name);
    return absl::InvalidArgumentError(absl::StrFormat("no limit \"%s\"; there are %s", sides[0], names));
  }
  const std::vector<std::string> numbers = absl::StrSplit(sides.size() > 1 ? sides[1] : "", ':');
  uint64_t per_client = 0, in_all = (*limits)[resource].in_all;
  if (numbers.size() > 2 || !absl::SimpleAtoi(numbers[0], &per_client) ||
      (numbers.size() == 2 && !absl::SimpleAtoi(numbers[1], &in_all)))
    return absl::InvalidArgumentError(
        absl::StrFormat("no limit of the form NAME=CLIENT[:ALL]: \"%s\"", text));
  (*limits)[resource].per_client = per_client;
  (*limits)[resource].in_all = in_all;
  return absl::OkStatus();
}

}  // namespace v3d::daemon
