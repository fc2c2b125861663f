#include "ioctl/core/kernel.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <new>

#include "gpu/base/log.h"
#include "ioctl/display/console.h"

namespace v3d::ioctl {
namespace {

/// Makes the client's end of a sync_file readable, for ever: nobody reads the byte (drm-abi.md 1.10).
class SyncFileSignal : public Watcher {
 public:
  explicit SyncFileSignal(std::shared_ptr<UniqueFd> socket) : socket_(std::move(socket)) {}
  void notify() override {
    const char byte = 1;
    [[maybe_unused]] const ssize_t sent = send(socket_->get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

 private:
  const std::shared_ptr<UniqueFd> socket_;
};

}  // namespace

uint64_t socket_cookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0) return cookie;
  // User-mode emulators do not know cookies. Of the sockets that are open each has an inode of its own.
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

bool make_one_way_pair(UniqueFd* client_end, UniqueFd* own_end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *client_end = UniqueFd(ends[0]);
  *own_end = UniqueFd(ends[1]);
  return shutdown(own_end->get(), SHUT_RD) == 0;
}

static kms::DisplayOptions of_board(kms::DisplayOptions options, const char* device, const Abi& abi) {
  options.unit = chip::find_display_unit(device);
  options.abi = &abi;
  return options;
}

Kernel::Kernel(Gpu& gpu, Host& host, const ResourceLimits& limits, const Abi& abi,
               const kms::DisplayOptions& display)
    : gpu_(gpu),
      host_(host),
      budget_(Budget::create(limits)),
      abi_(abi),
      v3d_{.name = "v3d",
           .description = "Broadcom V3D graphics",
           .major = 1,
           .minor = 0,
           .patchlevel = 0,
           .unique = gpu.profile().v3d_device,
           .modeset = false,
           .driver = DrmDevice::Driver::kV3d},
      vc4_{.name = "vc4",
           .description = "Broadcom VC4 graphics",
           .major = 0,
           .minor = 0,
           .patchlevel = 0,
           .unique = gpu.profile().display_device,
           .modeset = true,
           .driver = gpu.vc4_board() ? DrmDevice::Driver::kVc4 : DrmDevice::Driver::kDisplay},
      display_(of_board(display, gpu.profile().display_device, abi), [&host] { host.wake_display(); }) {
  BufferCharges free;
  auto memory = buffers_.create(kms::console_bytes(), &free, wire::kFramebufferName);
  if (memory)
    display_.set_console(kms::make_console(memory, new_mmap_offset(memory->size())));
  else
    log_error("the display stays dark: no memory or descriptors for its console");
  fbdev_ = std::make_unique<kms::Fbdev>(display_);
}

bool Kernel::has_display_master() {
  if (const File* holder = vc4_.holder_now()) host_.finish_closes(holder);
  return vc4_.holder_now() != nullptr;
}

DrmDevice* Kernel::device_of(uint32_t minor) {
  // With the driver vc4 both nodes are those of one device.
  DrmDevice* const gpu = vc4_.has_gpu() ? &vc4_ : &v3d_;
  switch (minor) {
    case kMinorV3d:
      return vc4_.has_gpu() ? nullptr : &v3d_;
    case kMinorVc4:
      return &vc4_;
    case kMinorV3dRender:
      return gpu;
  }
  return nullptr;
}

std::shared_ptr<File> Kernel::open(uint32_t minor, int32_t pid, std::string program, bool privileged) {
  DrmDevice* const found = device_of(minor);
  if (!found) return nullptr;
  DrmDevice& device = *found;
  const File* const holder = minor == kMinorV3dRender ? nullptr : device.holder_now();
  if (holder) host_.finish_closes(holder);
  auto client = std::make_shared<ClientInfo>();
  client->id = next_client_.fetch_add(1);
  client->pid = pid;
  client->program = std::move(program);
  auto file = std::make_shared<File>(*this, device, minor, std::move(client), privileged);
  if (!file->is_render()) {
    // The first opener of a primary node is its master (drm_master_open).
    const std::lock_guard lock(device.mutex);
    file->authenticated = privileged;
    if (device.master)
      file->master = device.master;
    else
      file->become_master();
  }
  return file;
}

std::shared_ptr<File> Kernel::open_lessee(const File& lessor, std::shared_ptr<Master> lessee) {
  auto client = std::make_shared<ClientInfo>();
  client->id = next_client_.fetch_add(1);
  client->pid = lessor.client()->pid;
  client->program = lessor.client()->program;
  auto file =
      std::make_shared<File>(*this, lessor.device(), lessor.minor(), std::move(client), lessor.privileged());
  file->is_master = file->authenticated = true;
  file->master = std::move(lessee);
  return file;
}

void Kernel::add_mmap_offset(uint64_t offset, std::weak_ptr<Bo> bo) {
  const std::lock_guard lock(mutex_);
  mmap_offsets_[offset] = std::move(bo);
}

void Kernel::remove_mmap_offset(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  mmap_offsets_.erase(offset);
}

std::shared_ptr<Bo> Kernel::find_mmap_offset(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto it = mmap_offsets_.find(offset);
  return it == mmap_offsets_.end() ? nullptr : it->second.lock();
}

UniqueFd Kernel::make_socket(Account& account, Object object, UniqueFd* own_end, uint64_t* cookie) {
  Charge descriptor;
  if (account.charge(Resource::kDescriptors, kExportedDescriptors, &descriptor) != 0) return UniqueFd();
  UniqueFd client_end;
  if (!make_one_way_pair(&client_end, own_end)) return UniqueFd();
  *cookie = socket_cookie(client_end.get());
  const std::lock_guard lock(mutex_);
  exported_[*cookie] = {std::move(object), std::move(descriptor)};
  return client_end;
}

UniqueFd Kernel::export_sync_file(Account& account, SyncFile file) {
  const auto socket = std::make_shared<UniqueFd>();
  const auto signal = std::make_shared<SyncFileSignal>(socket);
  uint64_t cookie;
  const FencePtr fence = file.fence;
  const auto object = std::make_shared<const SyncFile>(std::move(file));
  UniqueFd client_end = make_socket(account, object, socket.get(), &cookie);
  if (!client_end) {
    host_.look_at_hangups();  // sync_files that are closed already may have what this one needs
    client_end = make_socket(account, object, socket.get(), &cookie);
  }
  if (!client_end) return client_end;
  const auto gone = [this, cookie, socket, fence, signal] {
    fence->unwatch(signal.get());
    forget_exported(cookie);
  };
  try {
    if (!fence->watch(signal)) signal->notify();
    if (host_.watch_hangup_later(socket->get(), gone)) return client_end;
  } catch (const std::bad_alloc&) {  // as if the host had refused
  }
  gone();
  return UniqueFd();
}

UniqueFd Kernel::export_syncobj(Account& account, std::shared_ptr<Syncobj> syncobj) {
  const auto socket = std::make_shared<UniqueFd>();
  uint64_t cookie;
  UniqueFd client_end = make_socket(account, std::move(syncobj), socket.get(), &cookie);
  if (!client_end) return client_end;
  try {
    if (host_.watch_hangup(socket->get(), [this, cookie, socket] { forget_exported(cookie); }))
      return client_end;
  } catch (const std::bad_alloc&) {
  }
  forget_exported(cookie);
  return UniqueFd();
}

void Kernel::forget_exported(uint64_t cookie) {
  Exported exported;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  const auto it = exported_.find(cookie);
  if (it == exported_.end()) return;
  exported = std::move(it->second);
  exported_.erase(it);
}

Kernel::Object Kernel::find_exported(int fd) {
  const uint64_t cookie = socket_cookie(fd);
  if (cookie == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto it = exported_.find(cookie);
  return it == exported_.end() ? Object{} : it->second.object;
}

std::shared_ptr<const SyncFile> Kernel::find_sync_file(int fd) {
  const Object object = find_exported(fd);
  const auto* file = std::get_if<std::shared_ptr<const SyncFile>>(&object);
  return file ? *file : nullptr;
}

std::shared_ptr<Syncobj> Kernel::find_syncobj(int fd) {
  const Object object = find_exported(fd);
  const auto* syncobj = std::get_if<std::shared_ptr<Syncobj>>(&object);
  return syncobj ? *syncobj : nullptr;
}

}  // namespace v3d::ioctl
