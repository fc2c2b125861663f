/// A Kernel has what all open files share: the two devices, buffers, descriptors of fences and syncobjs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>

#include "ioctl/abi/versions.h"
#include "ioctl/base/account.h"
#include "ioctl/base/gpu.h"
#include "ioctl/core/file.h"
#include "ioctl/display/display.h"
#include "ioctl/display/fbdev.h"
#include "ioctl/jobs/job.h"
#include "ioctl/memory/bo.h"
#include "ioctl/sync/syncobj.h"

namespace v3d::ioctl {

/// What the handlers need of the program around them.
class Host : public JobSink {
 public:
  /// Calls gone() once, on a thread of the host, when all descriptors of the other end are closed. False, and
  /// gone() is destroyed, when it cannot.
  virtual bool watch_hangup(int socket, std::function<void()> gone) = 0;
  /// The same of what is closed as often as jobs are submitted, and which nobody waits for: gone() is called
  /// when the host's thread is awake for something else, there is much of that, or look_at_hangups() is.
  virtual bool watch_hangup_later(int socket, std::function<void()> gone) {
    return watch_hangup(socket, std::move(gone));
  }
  /// Calls gone(), on this thread, for those that have been put off. Under no lock that gone() takes.
  virtual void look_at_hangups() {}
  /// Returns when the master, if no client has it open any more, and what else was being closed of primary
  /// nodes is released: what close(2) has done when it returns. Under no lock of this layer.
  /// @param master  perhaps gone
  virtual void finish_closes(const File* master) = 0;
  /// The descriptor of a file that an ioctl has opened. 0 or EMFILE.
  /// @param flags  O_NONBLOCK or 0
  virtual int give_descriptor(std::shared_ptr<File> file, int flags, Account& account, UniqueFd* fd) = 0;
  /// Destroys what a file left, of which there may be any amount. Where the host has a thread that serves
  /// nobody, that does.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): it is gone with the call
  virtual void bury(std::shared_ptr<void> /*remains*/) noexcept {}
  /// Kernel::display().tick() is to be called. Any thread, under any lock of this layer.
  virtual void wake_display() = 0;
};

/// A descriptor that stands for a fence.
struct SyncFile {
  FencePtr fence;
  std::string name;  ///< given by MERGE, else empty
};

/// Descriptors of the daemon that a sync_file or syncobj takes whose other end a client holds.
inline constexpr uint64_t kExportedDescriptors = 1;

class Kernel {
 public:
  Kernel(Gpu& gpu, Host& host, const ResourceLimits& limits, const Abi& abi = default_abi(),
         const kms::DisplayOptions& display = {});
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Gpu& gpu() { return gpu_; }
  Host& host() { return host_; }
  Budget& budget() { return *budget_; }
  const Abi& abi() const { return abi_; }
  BufferTable& buffers() { return buffers_; }
  DrmDevice& v3d() { return v3d_; }
  DrmDevice& vc4() { return vc4_; }
  /// Of vc4.
  kms::Display& display() { return display_; }
  kms::Fbdev& fbdev() { return *fbdev_; }
  /// Whether somebody is master of the vc4 node. Under no lock.
  bool has_display_master();
  ActivePerfmons& perfmons() { return perfmons_; }
  /// What the driver of the board keeps for all files.
  DriverSlot& driver() { return driver_; }

  /// @param privileged  the opener has CAP_SYS_ADMIN
  /// @return null when there is no such node
  std::shared_ptr<File> open(uint32_t minor, int32_t pid, std::string program, bool privileged);

  /// Of the lessor's node, with what its master was lent. Under no lock.
  std::shared_ptr<File> open_lessee(const File& lessor, std::shared_ptr<Master> lessee);

  /// Jobs of all files that the kernel would have reset the GPU for.
  std::atomic<uint64_t> resets{0};

  /// A fake mmap offset of its own for an object of that many bytes.
  uint64_t new_mmap_offset(uint64_t size) { return next_mmap_offset_.fetch_add(size); }
  /// Remembers whose object an offset is, so that others get EACCES.
  void add_mmap_offset(uint64_t offset, std::weak_ptr<Bo> bo);
  void remove_mmap_offset(uint64_t offset);
  std::shared_ptr<Bo> find_mmap_offset(uint64_t offset);

  /// @name Descriptors of sync_files and syncobjs
  /// They are sockets: one end is the client's, the other is kept here, and shows when the client's is closed
  /// everywhere. Both functions return an empty descriptor when there are none left, for the account or at
  /// all.
  UniqueFd export_sync_file(Account& account, SyncFile file);
  UniqueFd export_syncobj(Account& account, std::shared_ptr<Syncobj> syncobj);
  /// What a client's descriptor stands for, or nothing.
  std::shared_ptr<const SyncFile> find_sync_file(int fd);
  std::shared_ptr<Syncobj> find_syncobj(int fd);

 private:
  /// Null: there is no such node.
  DrmDevice* device_of(uint32_t minor);
  using Object = std::variant<std::shared_ptr<const SyncFile>, std::shared_ptr<Syncobj>>;
  struct Exported {
    Object object;
    Charge descriptor;
  };
  /// Makes the socket pair and enters the object. Both ends are empty when there are too many.
  UniqueFd make_socket(Account& account, Object object, UniqueFd* own_end, uint64_t* cookie);
  Object find_exported(int fd);
  void forget_exported(uint64_t cookie);

  Gpu& gpu_;
  Host& host_;
  const std::shared_ptr<Budget> budget_;
  const Abi& abi_;
  BufferTable buffers_;
  DrmDevice v3d_, vc4_;
  kms::Display display_;
  std::unique_ptr<kms::Fbdev> fbdev_;  // there is one
  ActivePerfmons perfmons_;
  DriverSlot driver_;
  std::atomic<uint64_t> next_client_{1};
  std::atomic<uint64_t> next_mmap_offset_{uint64_t{1} << 32};

  std::mutex mutex_;  // protects all below
  std::unordered_map<uint64_t, std::weak_ptr<Bo>> mmap_offsets_;
  std::unordered_map<uint64_t, Exported> exported_;  // by SO_COOKIE of the client's end
};

/// Identity of a socket (SO_COOKIE), the same for all its descriptors in all processes; 0 when it is no
/// socket.
uint64_t socket_cookie(int fd);

/// A pair of sockets for something whose last close is to be noticed: messages go from the daemon's end to
/// the client's only. The other direction is shut: nobody would read it, and a descriptor of the client's end
/// that waited there would keep itself open for ever. Writing to the client's end is EPIPE.
bool make_one_way_pair(UniqueFd* client_end, UniqueFd* own_end);

}  // namespace v3d::ioctl
