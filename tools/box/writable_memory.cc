#include "tools/box/writable_memory.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace v3d::box {
namespace {

/// Linux 6.11: PROCMAP_QUERY of linux/fs.h. Says of a file /proc/PID/maps what lies at an address.
struct MapsQuery {
  uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
  uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
  uint64_t vma_name_addr, build_id_addr;
};
constexpr unsigned long kMapsQuery = _IOWR(0x66, 17, MapsQuery);
constexpr uint64_t kWritable = 2;

/// Of a line of /proc/PID/maps.
struct Mapping {
  uint64_t begin = 0, end = 0;
  bool writable = false;
};

std::optional<Mapping> find_by_query(int maps, uint64_t address) {
  MapsQuery query{};
  query.size = sizeof query;
  query.query_addr = address;
  if (::ioctl(maps, kMapsQuery, &query) != 0) return {};
  return Mapping{query.vma_start, query.vma_end, (query.vma_flags & kWritable) != 0};
}

}  // namespace

/// Lines "BEGIN-END rwxp ...".
bool is_writable_by_text(int maps, uint64_t address, uint64_t size) {
  std::string text;
  std::vector<char> part(1 << 16);
  for (ssize_t got = 0; (got = pread(maps, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0;)
    text.append(part.data(), static_cast<size_t>(got));
  std::istringstream lines(text);
  for (std::string line; size > 0 && std::getline(lines, line);) {
    uint64_t begin = 0, end = 0;
    char dash = 0, readable = 0, writable = 0;
    std::istringstream fields(line);
    if (!(fields >> std::hex >> begin >> dash >> end >> readable >> writable) || address >= end) continue;
    if (address < begin || writable != 'w') return false;
    const uint64_t count = std::min(size, end - address);
    address += count;
    size -= count;
  }
  return size == 0;
}

bool is_writable(int maps, uint64_t address, uint64_t size) {
  while (size > 0) {
    const std::optional<Mapping> mapping = find_by_query(maps, address);
    if (!mapping) return errno == ENOTTY && is_writable_by_text(maps, address, size);
    if (!mapping->writable) return false;
    const uint64_t count = std::min(size, mapping->end - address);
    address += count;
    size -= count;
  }
  return true;
}

}  // namespace v3d::box
