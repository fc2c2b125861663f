/// A File is an open node, the kernel's drm_file.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "ioctl/abi/versions.h"
#include "ioctl/base/handle_table.h"
#include "ioctl/core/master.h"
#include "ioctl/display/events.h"
#include "ioctl/jobs/job.h"
#include "ioctl/jobs/perfmon.h"
#include "ioctl/jobs/perfmon_order.h"
#include "ioctl/memory/bo.h"
#include "ioctl/sync/backlog.h"
#include "ioctl/sync/file_status.h"
#include "ioctl/sync/syncobj.h"

namespace v3d::ioctl {

class File;
class Kernel;

/// Minors as in wire.h.
/// @note On a board whose GPU has the driver vc4, kMinorVc4 and kMinorV3dRender are nodes of one device, and
/// the third does not exist.
enum Minor : uint32_t { kMinorV3d = 0, kMinorVc4 = 1, kMinorV3dRender = 128 };

/// One of the two devices: what VERSION says, and what its primary nodes share.
struct DrmDevice {
  const char* name;
  const char* description;
  int32_t major, minor, patchlevel;
  const char* unique;  ///< what SET_VERSION makes of GET_UNIQUE
  bool modeset;        ///< DRIVER_MODESET; such a device has dumb buffers
  /// Whose ioctls its nodes have besides those of all drivers.
  enum class Driver : uint8_t { kV3d, kDisplay, kVc4 } driver;
  /// Runs jobs; such a device has syncobjs, and address spaces for BOs.
  bool has_gpu() const { return driver != Driver::kDisplay; }

  std::mutex mutex{};                // protects all below, and the master fields of its files
  std::shared_ptr<Master> master{};  ///< the current one, or null
  const File* holder = nullptr;      ///< its file
  uint32_t next_name = 1;            ///< of GEM_FLINK
  std::unordered_map<uint32_t, std::weak_ptr<Bo>> names{};
  std::unordered_map<const Bo*, uint32_t> names_of_bos{};  ///< perhaps of one that is gone
  size_t prune_names_at = 64;

  /// Of now; takes the mutex.
  const File* holder_now() {
    const std::lock_guard lock(mutex);
    return holder;
  }
};

/// Thread safe. Handlers that block hold a reference, so that a close does not take it away under them.
class File : public std::enable_shared_from_this<File> {
 public:
  File(Kernel& kernel, DrmDevice& device, uint32_t minor, std::shared_ptr<ClientInfo> client,
       bool privileged);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  DrmDevice& device() const { return device_; }
  uint32_t minor() const { return minor_; }
  bool is_render() const { return minor_ >= 128; }
  const std::shared_ptr<ClientInfo>& client() const { return client_; }
  const MemoryUse& memory_use() const { return *memory_use_; }
  /// Bytes of its BOs as fdinfo counts them: all, those that other files or further handles name, and those
  /// that jobs use.
  struct MemoryShown {
    uint64_t total = 0, shared = 0, active = 0;
  };
  MemoryShown memory_shown() const;
  /// CAP_SYS_ADMIN.
  bool privileged() const { return privileged_; }
  const Abi& abi() const;
  /// What its clients see of its syncobjs; null when they have to ask.
  const std::shared_ptr<FileStatus>& status() const { return status_; }
  /// What SET_CLIENT_NAME gave, or "".
  std::string client_name() const;
  void set_client_name(std::string name);
  /// Of BOs made from now on. Before anybody else knows the file.
  void use_no_slabs() { uses_slabs_ = false; }

  /// What its clients read from their descriptors of the vc4 node; null on others.
  const std::shared_ptr<kms::EventQueue>& events() const { return events_; }

  /// Whether it may know the object, one that can be lent; takes device().mutex.
  bool holds(uint32_t object) const {
    const std::lock_guard lock(device_.mutex);
    return !master || master->holds(object);
  }
  /// is_current_master(); takes device().mutex.
  bool is_current_master_now() const {
    const std::lock_guard lock(device_.mutex);
    return is_current_master();
  }

  /// Its master of now, which another thread may change; takes device().mutex.
  std::shared_ptr<Master> own_master() const {
    const std::lock_guard lock(device_.mutex);
    return master;
  }

  /// What the driver keeps with the file.
  DriverSlot& driver() { return driver_; }

  /// Drops all handles (last close). Later calls find nothing.
  void release();

  /// @name GEM
  /// Errors: ENOMEM (host or the client's limit), ENOSPC (addresses). What is made is charged to `account`.
  int create_bo(Account& account, uint64_t size, std::shared_ptr<Bo>* bo, uint32_t* handle);
  /// One that has no handle yet, or never. @param in_slab  it may lie in a slab
  int create_bo(Account& account, uint64_t size, bool in_slab, std::shared_ptr<Bo>* bo);
  /// A handle for somebody else's buffer: the existing one if the file has it (drm-abi.md 4.6).
  int import_buffer(Account& account, const std::shared_ptr<Buffer>& buffer, uint32_t* handle);
  /// A further handle, as GEM_OPEN gives.
  int add_handle(Account& account, const std::shared_ptr<Bo>& bo, uint32_t* handle);
  std::shared_ptr<Bo> find_bo(uint32_t handle) const;
  /// The file's own object for this buffer, or null.
  std::shared_ptr<Bo> find_bo(const Buffer& buffer) const;
  bool close_handle(uint32_t handle);
  /// The object at a fake mmap offset to which this file has a handle, or null.
  std::shared_ptr<Bo> find_mmap(uint64_t offset) const;

  /// @name Syncobjs; 0 is no handle
  /// 0, ENOMEM (the client's limit) or ENOSPC (handles).
  int add_syncobj(Account& account, std::shared_ptr<Syncobj> syncobj, uint32_t* handle);
  std::shared_ptr<Syncobj> find_syncobj(uint32_t handle) const;
  bool destroy_syncobj(uint32_t handle);

  /// @name Perfmons
  /// As add_syncobj().
  int add_perfmon(Account& account, std::shared_ptr<Perfmon> perfmon, uint32_t* id);
  std::shared_ptr<Perfmon> find_perfmon(uint32_t id) const;
  bool destroy_perfmon(uint32_t id);

  /// The address space, made at the first call. Null when the host has none left, or the account.
  std::shared_ptr<BoSpace> bo_space(Account& account);
  /// Next fence of one of its queues; under submit_mutex.
  FencePtr next_fence(Queue queue);
  bool owns_context(Queue queue, uint64_t context) const {
    return contexts_[static_cast<size_t>(queue)] == context;
  }

  /// @name Master and authentication; under device().mutex
  bool is_master = false, was_master = false, authenticated = false;
  uint32_t magic = 0;
  std::shared_ptr<Master> master;  ///< null on render nodes
  /// Itself, or by what it has been lent.
  bool is_current_master() const {
    return is_master && device_.master && master->owner() == device_.master.get();
  }
  /// Takes device().master, which nobody has.
  void become_master();

  bool atomic = false;                ///< DRM_CLIENT_CAP_ATOMIC
  bool universal_planes = false;      ///< DRM_CLIENT_CAP_UNIVERSAL_PLANES
  bool writeback_connectors = false;  ///< DRM_CLIENT_CAP_WRITEBACK_CONNECTORS
  /// Its submissions come one after the other: a queue is in order within a file.
  std::mutex submit_mutex;
  PerfmonOrder perfmon_order;  ///< under submit_mutex
  Backlog backlog;             ///< under submit_mutex

 private:
  void release_master();
  int refuse_memory(uint64_t size, const char* why);
  /// The object of a buffer that is mapped at its placement; unmaps it when there is no memory for one.
  std::shared_ptr<Bo> place(const std::shared_ptr<Buffer>& buffer, const std::shared_ptr<BoSpace>& space,
                            Placement placement, bool imported, Charge mappings);
  int make_bo(Account& account, const std::shared_ptr<Buffer>& buffer, bool imported,
              std::shared_ptr<Bo>* bo);
  bool make_small_bo(Account& account, Charge* bytes, bool in_need, std::shared_ptr<Bo>* bo);
  int add_handle_locked(const std::shared_ptr<Bo>& bo, Charge charge, uint32_t* handle);
  /// 0, ENOSPC, or the error of the account.
  template <typename T>
  int add(HandleTable<T>& table, Account& account, Resource resource, std::shared_ptr<T> object,
          uint32_t* handle);

  Kernel& kernel_;
  DrmDevice& device_;
  const uint32_t minor_;
  const std::shared_ptr<ClientInfo> client_;
  const bool privileged_;
  bool uses_slabs_ = true;
  const std::shared_ptr<MemoryUse> memory_use_ = std::make_shared<MemoryUse>();
  const std::shared_ptr<FileStatus> status_;
  const std::shared_ptr<kms::EventQueue> events_;
  std::atomic<bool> shown_open_{false};  // the display counts it
  std::array<uint64_t, kNumQueues> contexts_;
  std::array<uint64_t, kNumQueues> seqnos_{};

  mutable std::mutex mutex_;  // protects all below
  std::string client_name_;
  std::shared_ptr<BoSpace> space_;
  HandleTable<Bo> bos_;
  struct Known {
    uint32_t handle;  // the first one
    int handles;
  };
  std::unordered_map<const Buffer*, Known> by_buffer_;
  std::unordered_map<uint64_t, std::weak_ptr<Bo>> by_offset_;
  HandleTable<Syncobj> syncobjs_;
  HandleTable<Perfmon> perfmons_;
  DriverSlot driver_;
  struct Remains;
  std::shared_ptr<Remains> remains_;  // empty, until release() fills it and gives it away
};

}  // namespace v3d::ioctl
