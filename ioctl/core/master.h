/// A master decides who may change what a device shows (Linux drm_auth.c, drm_lease.c).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

namespace v3d::ioctl {

class File;

/// The kernel's drm_master: a file that has ever been master has one of its own, others share that of the
/// master at the time when they were opened. A lessee has what it was lent of its lessor's objects. All under
/// DrmDevice::mutex.
struct Master {
  bool unique_set = false;  ///< by SET_VERSION
  uint32_t next_magic = 1;
  std::unordered_map<uint32_t, File*> magics;  ///< of files that share it, and were not authenticated yet

  uint32_t lessee_id = 0;          ///< 0: it is no lessee
  std::shared_ptr<Master> lessor;  ///< null: it owns all objects
  std::set<uint32_t> leases;       ///< of a lessee; empty when they were revoked
  const File* lessee = nullptr;    ///< the file of a lessee
  std::map<uint32_t, Master*> lessees;

  const Master* owner() const { return lessor ? lessor.get() : this; }
  bool holds(uint32_t object) const { return !lessor || leases.contains(object); }
  /// Whether some lessee has it.
  bool has_lent(uint32_t object) const {
    for (const auto& [id, other] : lessees)
      if (other->leases.contains(object)) return true;
    return false;
  }
  /// Nothing is lent to anybody any more.
  void revoke() {
    leases.clear();
    for (const auto& [id, other] : lessees) other->leases.clear();
  }
};

}  // namespace v3d::ioctl
