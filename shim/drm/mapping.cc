#include "shim/drm/mapping.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "ioctl/abi/v3d.h"
#include "ioctl/link/wire.h"
#include "shim/drm/known_bos.h"
#include "shim/drm/moved_memory.h"
#include "shim/drm/parked_mappings.h"
#include "shim/drm/slab_cache.h"
#include "shim/drm/status.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;

/// Where the BO lies for which the thread has last asked for an offset: most are mapped next.
struct KnownPlace {
  bool busy;               ///< a signal handler leaves it alone
  uint64_t token, offset;  ///< 0: none
  uint32_t epoch;
  wire::BoPlace bo;
};
// initial-exec: no allocation on first access, which may happen inside malloc.
thread_local KnownPlace known_place [[gnu::tls_model("initial-exec")]] = {};

void know_place(uint64_t token, uint64_t offset, uint32_t epoch, const wire::BoPlace& bo) {
  if (known_place.busy) return;
  known_place.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  known_place = {true, token, offset, epoch, bo};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  known_place.busy = false;
}

/// Maps it. -ENOENT: the daemon has to be asked where it is.
long map_known_bo(const File& file, void* address, size_t length, int prot, int flags, off_t offset) {
  if (known_place.busy) return -ENOENT;
  known_place.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const KnownPlace known = known_place;
  known_place.token = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  known_place.busy = false;
  if (known.token != file.token || known.offset != static_cast<uint64_t>(offset) ||
      known.epoch != mappings_epoch() || (flags & ~MAP_FIXED) != MAP_SHARED || length == 0 ||
      length > known.bo.bytes) {
    return -ENOENT;
  }
  return map_from_slab(known.bo.place.slab, known.bo.place.fd_offset, address, length, prot, flags);
}

/// @param may_know  whether a slab may be used that this process has mapped
long map_bo(const File& file, void* address, size_t length, int prot, int flags, off_t offset,
            bool may_know) {
  Call call(wire::kMmap, kCloseOnExec | kShort);
  wire::MmapRequest request{file.token, static_cast<uint64_t>(offset), length, prot, flags, {}};
  if (may_know && (flags & ~MAP_FIXED) == MAP_SHARED) list_slabs(request.known_slabs);
  wire::MmapReply reply;
  int error = call.open(file.daemon);
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  if (call.reply_size() < sizeof(reply)) return -ENODEV;
  memcpy(&reply, call.reply(), sizeof(reply));
  const int fd = call.take(0);
  if (fd < 0)
    return reply.slab ? map_from_slab(reply.slab, reply.fd_offset, address, length, prot, flags) : -EMFILE;
  if (reply.slab) remember_slab(reply.slab, reply.slab_bytes, fd);
  long result = raw::map(address, length, prot, flags, fd, static_cast<off_t>(reply.fd_offset));
  raw::close(fd);
  return result;
}

}  // namespace

void forget_place() { known_place.token = 0; }

BeforeMmapBo::BeforeMmapBo(const File& file)
    : epoch(mappings_epoch()), knows_changes(look_at_bo_changes(file, &changes)) {}

void remember_place(const Call& call, const File& file, const BeforeMmapBo& before) {
  struct {
    wire::IoctlReply header;
    drm::MmapBo args;
    wire::BoPlace bo;
  } reply;
  if (call.reply_size() != sizeof(reply)) return;
  memcpy(&reply, call.reply(), sizeof(reply));
  know_place(file.token, reply.args.offset, before.epoch, reply.bo);
  if (before.knows_changes)
    remember_bo({file.token, reply.args.offset, reply.bo, reply.args.handle, before.changes, before.epoch});
}

int answer_mmap_bo(LocalCall& call, drm::MmapBo& args) {
  KnownBo known;
  uint32_t changes;
  if (args.flags || !look_at_bo_changes(call.file, &changes) ||
      !find_bo(call.file.token, args.handle, changes, mappings_epoch(), &known)) {
    return LocalCall::kAskDaemon;
  }
  know_place(call.file.token, known.offset, known.epoch, known.bo);
  args.offset = known.offset;
  return 0;
}

int find_mapping(const File& file, size_t length, int prot, int flags, off_t offset, off_t* place) {
  Call call(wire::kMmap, kCloseOnExec);
  const wire::MmapRequest request{file.token, static_cast<uint64_t>(offset), length, prot, flags, {}};
  wire::MmapReply reply;
  int error = call.open(file.daemon);
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  if (call.reply_size() < sizeof(reply)) return -ENODEV;
  memcpy(&reply, call.reply(), sizeof(reply));
  *place = static_cast<off_t>(reply.fd_offset);
  const int fd = call.take(0);
  return fd < 0 ? -EMFILE : fd;
}

long drm_mmap(const File& file, void* address, size_t length, int prot, int flags, off_t offset) {
  raw::KeepErrno keep;
  for (;;) {
    const uint32_t epoch = mappings_epoch();
    long result = map_known_bo(file, address, length, prot, flags, offset);
    if (result == -ENOENT) result = map_bo(file, address, length, prot, flags, offset, true);
    // Another thread has forgotten the slab meanwhile.
    if (result == -ENOENT) result = map_bo(file, address, length, prot, flags, offset, false);
    // Another thread replaced mappings, perhaps of this BO and before this one was there to be found.
    if (raw::is_error(result) || mappings_epoch() == epoch) return result;
    address = raw::pointer(static_cast<uint64_t>(result));
    forget_mappings(static_cast<uint64_t>(result), length);
    flags = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;
  }
}

}  // namespace v3d::shim
