#include "ioctl/core/file.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "gpu/base/log.h"
#include "ioctl/core/kernel.h"

namespace v3d::ioctl {

namespace {

/// None where the clients do not look into it, and where somebody wants to see all ioctls.
std::shared_ptr<FileStatus> make_status(const DrmDevice& device) {
  return device.modeset || debug_on(Debug::kIoctl) ? nullptr : FileStatus::create();
}

/// The client that made an address space, for what it cannot know how much it will be.
class Payer : public MemoryPayer {
 public:
  explicit Payer(Charge charge) : charge_(std::move(charge)) {}
  bool take_memory(uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return charge_.grow(bytes) == 0;
  }
  void return_memory(uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    charge_.shrink(bytes);
  }

 private:
  std::mutex mutex_;  // protects what follows
  Charge charge_;
};

}  // namespace

/// What a closed file had, of which it may be any number.
struct File::Remains {
  explicit Remains(Kernel& k) : kernel(k) {}
  ~Remains() {
    for (const auto& [offset, bo] : by_offset) kernel.remove_mmap_offset(offset);
    // Clients see that the file is closed; a submission under way may still change what they see of these.
    for (const auto& slot : syncobjs)
      if (slot.object) slot.object->hide();
  }
  Remains(const Remains&) = delete;
  Remains& operator=(const Remains&) = delete;

  Kernel& kernel;
  std::shared_ptr<BoSpace> space;
  std::vector<HandleTable<Bo>::Slot> bos;
  std::vector<HandleTable<Syncobj>::Slot> syncobjs;
  std::vector<HandleTable<Perfmon>::Slot> perfmons;
  std::unordered_map<const Buffer*, Known> by_buffer;
  std::unordered_map<uint64_t, std::weak_ptr<Bo>> by_offset;
};

File::File(Kernel& kernel, DrmDevice& device, uint32_t minor, std::shared_ptr<ClientInfo> client,
           bool privileged)
    : kernel_(kernel),
      device_(device),
      minor_(minor),
      client_(std::move(client)),
      privileged_(privileged),
      status_(make_status(device)),
      events_(device.modeset && !is_render() ? std::make_shared<kms::EventQueue>() : nullptr),
      remains_(std::make_shared<Remains>(kernel)) {
  if (events_) {
    kernel.display().open_file();
    shown_open_ = true;
  }
  for (uint64_t& context : contexts_) context = new_fence_context();
}

File::~File() { release(); }

const Abi& File::abi() const { return kernel_.abi(); }

File::MemoryShown File::memory_shown() const {
  MemoryShown shown;
  // Some at a time: whoever asks for it keeps neither the file's clients waiting nor who closes it.
  constexpr uint32_t kAtATime = 256;
  struct Object {
    std::shared_ptr<Bo> bo;
    bool is_shared;
  };
  for (uint32_t first = 1, end = 0; first == 1 || first < end; first += kAtATime) {
    std::vector<Object> objects;
    {
      const std::lock_guard lock(mutex_);
      end = bos_.end();
      for (uint32_t handle = first; handle < std::min(end, first + kAtATime); ++handle) {
        std::shared_ptr<Bo> bo = bos_.find(handle);
        if (!bo) continue;
        const auto known = by_buffer_.find(bo->buffer().get());
        if (known == by_buffer_.end() || known->second.handle != handle) continue;  // counted by another one
        // Each file's object holds the buffer once.
        const bool is_shared = bo->imported() || known->second.handles > 1 || bo->buffer().use_count() > 1;
        objects.push_back({std::move(bo), is_shared});
      }
    }
    for (const Object& object : objects) {
      const uint64_t size = object.bo->size();
      shown.total += size;
      if (object.is_shared) shown.shared += size;
      if (object.bo->reservation().is_busy()) shown.active += size;
    }
  }
  return shown;
}

std::string File::client_name() const {
  const std::lock_guard lock(mutex_);
  return client_name_;
}

void File::set_client_name(std::string name) {
  const std::lock_guard lock(mutex_);
  client_name_ = std::move(name);
}

void File::release() {
  // The second time there is only what requests have added that were under way.
  Remains few(kernel_);
  std::shared_ptr<Remains> all;
  {
    const std::lock_guard lock(mutex_);
    all = std::move(remains_);
    Remains& remains = all ? *all : few;
    remains.bos = bos_.take_all();
    remains.syncobjs = syncobjs_.take_all();
    remains.perfmons = perfmons_.take_all();
    remains.by_buffer.swap(by_buffer_);
    remains.by_offset.swap(by_offset_);
    remains.space = std::move(space_);
  }
  if (status_) status_->close();
  if (const std::shared_ptr<Perfmon> global = kernel_.perfmons().global()) {
    const auto& perfmons = (all ? *all : few).perfmons;
    if (std::ranges::find(perfmons, global, &HandleTable<Perfmon>::Slot::object) != perfmons.end())
      kernel_.perfmons().forget(global.get());
  }
  kernel_.host().bury(std::move(all));
  if (events_) {
    events_->close();
    kernel_.display().close_file(*this, *events_, shown_open_.exchange(false));
  }
  release_master();
}

/// drm_master_release. The master stays, since calls may be under way that use it; so this may be done again.
void File::release_master() {
  const std::lock_guard lock(device_.mutex);
  if (!master) return;
  if (magic) master->magics.erase(magic);
  magic = 0;
  if (device_.holder == this) {
    device_.master.reset();
    device_.holder = nullptr;
  }
  if (is_master) master->revoke();
  if (master->lessor) {
    auto& lessees = master->lessor->lessees;  // the number may be another one's by now
    const auto it = lessees.find(master->lessee_id);
    if (it != lessees.end() && it->second == master.get()) lessees.erase(it);
  }
  is_master = false;
}

void File::become_master() {
  if (!is_master) {
    if (master && magic) master->magics.erase(magic);  // which is of the time under the other master
    magic = 0;
    master = std::make_shared<Master>();
  }
  device_.master = master;
  device_.holder = this;
  is_master = was_master = authenticated = true;
}

std::shared_ptr<BoSpace> File::bo_space(Account& account) {
  if (!device_.has_gpu()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (space_) return space_;
  BoSpaceCharges charges;
  if (account.charge(Resource::kAddressSpaces, 1, &charges.space) != 0 ||
      account.charge(Resource::kMappings, kRoomMappings, &charges.mappings) != 0 ||
      account.charge(Resource::kDescriptors, kRoomDescriptors, &charges.descriptor) != 0)
    return nullptr;
  auto context = kernel_.gpu().create_context();
  if (!context.ok()) {
    log_error("no GPU address space for %s (pid %d): %s", client_->program, client_->pid,
              std::string(context.status().message()));
    return nullptr;
  }
  (*context)->set_payer(std::make_shared<Payer>(charges.space.sibling(Resource::kDerivedBytes)));
  return space_ = std::make_shared<BoSpace>(*std::move(context), abi().bo_alignment, memory_use_,
                                            std::move(charges));
}

FencePtr File::next_fence(Queue queue) {
  const auto q = static_cast<size_t>(queue);
  auto fence = std::make_shared<Fence>("drm_sched", queue_timeline(queue), contexts_[q], ++seqnos_[q]);
  if (status_) fence->show_in(status_);
  return fence;
}

int File::refuse_memory(uint64_t size, const char* why) {
  const uint64_t count = ++client_->refusals;
  if (worth_a_line(count))
    log_warning("%s (pid %d) gets no BO of %d bytes: %s (refusal %d)", client_->program, client_->pid, size,
                why, count);
  return ENOMEM;
}

std::shared_ptr<Bo> File::place(const std::shared_ptr<Buffer>& buffer, const std::shared_ptr<BoSpace>& space,
                                Placement placement, bool imported, Charge mappings) {
  const uint64_t offset = kernel_.new_mmap_offset(buffer->size());
  try {
    return std::make_shared<Bo>(buffer, space, placement, offset, imported, memory_use_, std::move(mappings));
  } catch (const std::bad_alloc&) {
    if (space) space->unmap(*buffer, placement);
    throw;
  }
}

int File::make_bo(Account& account, const std::shared_ptr<Buffer>& buffer, bool imported,
                  std::shared_ptr<Bo>* bo) {
  std::shared_ptr<BoSpace> space;
  Placement placement;
  Charge mappings;
  if (device_.has_gpu()) {
    if (account.charge(Resource::kMappings, kBoMappings, &mappings) != 0)
      return refuse_memory(buffer->size(), "limit of mappings");
    space = bo_space(account);
    if (!space) return refuse_memory(buffer->size(), "no address space");
    const int error = space->map(*buffer, &placement);
    if (error == ENOMEM) return refuse_memory(buffer->size(), "the host refuses another mapping");
    if (error) return error;
  }
  *bo = place(buffer, space, placement, imported, std::move(mappings));
  return 0;
}

bool File::make_small_bo(Account& account, Charge* bytes, bool in_need, std::shared_ptr<Bo>* bo) {
  const uint64_t size = bytes->amount();
  const std::shared_ptr<BoSpace> space = size <= kMaxSlabBo && uses_slabs_ ? bo_space(account) : nullptr;
  if (!space) return false;
  Placement placement;
  const auto buffer = space->create_small(kernel_.buffers(), account, bytes, in_need, &placement);
  if (!buffer) return false;
  *bo = place(buffer, space, placement, false, Charge());
  return true;
}

int File::create_bo(Account& account, uint64_t size, std::shared_ptr<Bo>* bo, uint32_t* handle) {
  // What may be shown lies in no slab.
  if (const int error = create_bo(account, size, !device_.modeset, bo)) return error;
  return add_handle(account, *bo, handle);
}

int File::create_bo(Account& account, uint64_t size, bool in_slab, std::shared_ptr<Bo>* bo) {
  BufferCharges charges;
  if (account.charge(Resource::kBoBytes, size, &charges.bytes) != 0)
    return refuse_memory(size, "limit of memory");
  if (!in_slab || !make_small_bo(account, &charges.bytes, false, bo)) {
    std::shared_ptr<Buffer> buffer;
    if (account.charge(Resource::kDescriptors, 1, &charges.descriptor) == 0)
      buffer = kernel_.buffers().create(size, &charges);
    if (buffer) {
      if (const int error = make_bo(account, buffer, false, bo)) return error;
    } else if (!in_slab || !make_small_bo(account, &charges.bytes, true, bo)) {
      return refuse_memory(size, "no memory or descriptors left");
    }
  }
  return 0;
}

int File::import_buffer(Account& account, const std::shared_ptr<Buffer>& buffer, uint32_t* handle) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_buffer_.find(buffer.get());
    if (known != by_buffer_.end()) {
      *handle = known->second.handle;
      return 0;
    }
  }
  Charge charge;
  if (const int error = account.charge(Resource::kBos, 1, &charge)) return error;
  std::shared_ptr<Bo> bo;
  if (const int error = make_bo(account, buffer, true, &bo)) return error;
  const std::lock_guard lock(mutex_);
  // Two threads may import the same buffer at once.
  const auto known = by_buffer_.find(buffer.get());
  if (known != by_buffer_.end()) {
    *handle = known->second.handle;
    return 0;
  }
  return add_handle_locked(bo, std::move(charge), handle);
}

int File::add_handle(Account& account, const std::shared_ptr<Bo>& bo, uint32_t* handle) {
  Charge charge;
  if (const int error = account.charge(Resource::kBos, 1, &charge)) return error;
  const std::lock_guard lock(mutex_);
  return add_handle_locked(bo, std::move(charge), handle);
}

int File::add_handle_locked(const std::shared_ptr<Bo>& bo, Charge charge, uint32_t* handle) {
  *handle = bos_.add(bo, std::move(charge));
  if (*handle == 0) return ENOSPC;
  try {
    Known& known = by_buffer_.try_emplace(bo->buffer().get(), Known{*handle, 0}).first->second;
    if (known.handles == 0) {
      by_offset_[bo->mmap_offset()] = bo;
      kernel_.add_mmap_offset(bo->mmap_offset(), bo);
    }
    if (known.handles++ == 0 && status_) bo->reservation().show_in(status_, *handle);
  } catch (const std::bad_alloc&) {  // wholly or not at all
    bos_.remove(*handle);
    const auto known = by_buffer_.find(bo->buffer().get());
    if (known != by_buffer_.end() && known->second.handles == 0) {
      by_buffer_.erase(known);
      by_offset_.erase(bo->mmap_offset());
    }
    throw;
  }
  return 0;
}

std::shared_ptr<Bo> File::find_bo(uint32_t handle) const {
  const std::lock_guard lock(mutex_);
  return bos_.find(handle);
}

std::shared_ptr<Bo> File::find_bo(const Buffer& buffer) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_buffer_.find(&buffer);
  return known == by_buffer_.end() ? nullptr : bos_.find(known->second.handle);
}

bool File::close_handle(uint32_t handle) {
  std::shared_ptr<Bo> bo;  // freed after the lock is released
  const std::lock_guard lock(mutex_);
  bo = bos_.remove(handle);
  if (!bo) return false;
  if (status_) {  // before another one has the handle
    bo->reservation().hide_from(*status_, handle);
    status_->say_bos_changed();
  }
  const auto known = by_buffer_.find(bo->buffer().get());
  if (--known->second.handles == 0) {
    by_buffer_.erase(known);
    by_offset_.erase(bo->mmap_offset());
    kernel_.remove_mmap_offset(bo->mmap_offset());
  } else if (known->second.handle == handle) {
    known->second.handle = bos_.find_handle(bo.get());
  }
  return true;
}

std::shared_ptr<Bo> File::find_mmap(uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto it = by_offset_.find(offset);
  return it == by_offset_.end() ? nullptr : it->second.lock();
}

template <typename T>
int File::add(HandleTable<T>& table, Account& account, Resource resource, std::shared_ptr<T> object,
              uint32_t* handle) {
  Charge charge;
  if (const int error = account.charge(resource, 1, &charge)) return error;
  const std::lock_guard lock(mutex_);
  *handle = table.add(std::move(object), std::move(charge));
  return *handle ? 0 : ENOSPC;
}

int File::add_syncobj(Account& account, std::shared_ptr<Syncobj> syncobj, uint32_t* handle) {
  return add(syncobjs_, account, Resource::kSyncobjs, std::move(syncobj), handle);
}

std::shared_ptr<Syncobj> File::find_syncobj(uint32_t handle) const {
  std::shared_ptr<Syncobj> syncobj;
  {
    const std::lock_guard lock(mutex_);
    syncobj = syncobjs_.find(handle);
  }
  return syncobj && syncobj->hear() ? syncobj : nullptr;
}

bool File::destroy_syncobj(uint32_t handle) {
  std::shared_ptr<Syncobj> syncobj;
  const std::lock_guard lock(mutex_);
  syncobj = syncobjs_.find(handle);
  if (!syncobj || !syncobj->hear()) return false;
  syncobjs_.remove(handle);
  syncobj->hide();  // before another one has the handle
  return true;
}

int File::add_perfmon(Account& account, std::shared_ptr<Perfmon> perfmon, uint32_t* id) {
  return add(perfmons_, account, Resource::kPerfmons, std::move(perfmon), id);
}

std::shared_ptr<Perfmon> File::find_perfmon(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return perfmons_.find(id);
}

bool File::destroy_perfmon(uint32_t id) {
  std::shared_ptr<Perfmon> perfmon;
  {
    const std::lock_guard lock(mutex_);
    perfmon = perfmons_.remove(id);
  }
  if (!perfmon) return false;
  kernel_.perfmons().forget(perfmon.get());
  return true;
}

}  // namespace v3d::ioctl
