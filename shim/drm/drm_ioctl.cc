#include "shim/drm/drm_ioctl.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>

#include "shim/drm/answers.h"
#include "shim/drm/known_bos.h"
#include "shim/drm/marshal.h"
#include "shim/drm/moved_memory.h"
#include "shim/drm/slab_cache.h"
#include "shim/drm/status.h"
#include "shim/link/connection.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

constexpr uint32_t kMmapBoRequest = 0xc0106443;
constexpr size_t kWaitBoTimeout = 8;  // offset of timeout_ns, u64

/// Reads a reply from front to back; a daemon that contradicts itself is treated as gone.
class Reader {
 public:
  explicit Reader(const Call& call) : at_(call.reply()), left_(call.reply_size()) {}
  const uint8_t* bytes(size_t size) {
    if (size > left_) return nullptr;
    const uint8_t* start = at_;
    at_ += size;
    left_ -= size;
    return start;
  }
  template <typename T>
  bool read(T* out) {
    const uint8_t* source = bytes(sizeof(T));
    if (source) memcpy(out, source, sizeof(T));
    return source;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

/// The memory that the request declared as the daemon's to write (wire::kOut), in the order of its segments.
/// Replies follow that order, so that the search goes on where it ended.
class DeclaredMemory {
 public:
  /// @param position  of the segments in the payload
  DeclaredMemory(Call* call, size_t position, uint32_t count)
      : call_(call), first_(position), at_(position), count_(count) {}

  bool covers(uint64_t address, uint32_t size) {
    for (uint32_t tried = 0; tried <= count_; ++tried) {
      if (index_ == count_) index_ = 0, at_ = first_;
      if (index_ == count_) return false;
      wire::Segment segment;
      memcpy(&segment, call_->at(at_), sizeof(segment));
      if (segment.flags & wire::kOut && address >= segment.address &&
          address - segment.address <= segment.size && size <= segment.size - (address - segment.address)) {
        return true;
      }
      at_ += sizeof(segment) + (segment.flags & wire::kIn ? segment.size : 0);
      ++index_;
    }
    return false;
  }

 private:
  Call* call_;
  size_t first_, at_;
  uint32_t index_ = 0, count_;
};

/// Gives the client one received descriptor. `argument` is the daemon's copy, not yet copied out.
int install(Call* call, DeclaredMemory* declared, int index, const wire::FdPatch& patch, uint8_t* argument,
            size_t arg_size) {
  int fd = call->take(index);
  if (fd < 0) return -EMFILE;  // the kernel drops what does not fit in
  const int32_t number = give_descriptor(fd, patch.close_on_exec);
  if (number < 0) return number;
  if (patch.place == wire::kInArg && patch.address <= arg_size &&
      sizeof(number) <= arg_size - patch.address) {
    memcpy(argument + patch.address, &number, sizeof(number));
    return 0;
  }
  if (patch.place == wire::kInMemory && declared->covers(patch.address, sizeof(number)) &&
      copy_to_user(patch.address, &number, sizeof(number)))
    return 0;
  withdraw_descriptor(number);
  return -EFAULT;
}

/// Copies out what the daemon wrote: memory, descriptors, and the argument, on errors too. 0 or -errno.
int apply_reply(Call* call, const File& file, uint32_t request, uint64_t argument, uint32_t arg_size) {
  int result = -call->error();
  if (call->reply_size() == 0) return result;
  wire::IoctlRequest asked;
  memcpy(&asked, call->at(0), sizeof(asked));
  DeclaredMemory declared(call, sizeof(asked) + arg_size, asked.num_segments);
  Reader reader(*call);
  wire::IoctlReply header;
  if (!reader.read(&header) || header.arg_size > arg_size) return -ENODEV;
  auto* copy = const_cast<uint8_t*>(reader.bytes(header.arg_size));
  if (!copy) return -ENODEV;
  bool fault = false;
  for (uint32_t i = 0; i < header.num_writes; ++i) {
    wire::Segment segment;
    const uint8_t* data = reader.read(&segment) ? reader.bytes(segment.size) : nullptr;
    if (!data || !declared.covers(segment.address, segment.size)) return -ENODEV;
    fault |= segment.size && !copy_to_user(segment.address, data, segment.size);
  }
  for (uint32_t i = 0; i < header.num_fds; ++i) {
    wire::FdPatch patch;
    if (!reader.read(&patch)) return -ENODEV;
    int error = install(call, &declared, static_cast<int>(i), patch, copy, header.arg_size);
    if (error == -EMFILE) return error;
    fault |= error < 0;
  }
  for (uint32_t i = 0; i < header.num_moves; ++i) {
    wire::Move move;
    const int fd = call->take(static_cast<int>(header.num_fds + i));
    const bool good = reader.read(&move) && fd >= 0;
    if (good) replace_mappings(move, fd);
    if (fd >= 0) raw::close(fd);
    if (!good) return -ENODEV;
  }
  if (header.num_sync_files) {
    wire::ReadySyncFile ready;
    const int fd = call->take(static_cast<int>(header.num_fds + header.num_moves));
    if (!reader.read(&ready) || fd < 0) {
      if (fd >= 0) raw::close(fd);
      return -ENODEV;
    }
    remember_ready(file, ready, fd);
  }
  if (ioctl_reads(request) && header.arg_size) fault |= !copy_to_user(argument, copy, header.arg_size);
  return fault ? -EFAULT : result;
}

/// The kernel hands back what is left of WAIT_BO's relative timeout, so that repeating the call is exact.
void shorten_timeout(uint64_t argument, uint64_t started) {
  uint64_t left;
  if (!copy_from_user(&left, argument + kWaitBoTimeout, sizeof(left))) return;
  uint64_t elapsed = raw::fast_monotonic_ns() - started;
  left = elapsed < left ? left - elapsed : 0;
  copy_to_user(argument + kWaitBoTimeout, &left, sizeof(left));
}

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

struct MmapBo {
  uint32_t handle, flags;
  uint64_t offset;
};

/// @param epoch  before the request
/// @param changes  Status::bo_changes then; null: not known
void remember_place(const Call& call, const File& file, uint32_t epoch, const uint32_t* changes) {
  struct {
    wire::IoctlReply header;
    MmapBo args;
    wire::BoPlace bo;
  } reply;
  if (call.reply_size() != sizeof(reply)) return;
  memcpy(&reply, call.reply(), sizeof(reply));
  know_place(file.token, reply.args.offset, epoch, reply.bo);
  if (changes) remember_bo({file.token, reply.args.offset, reply.bo, reply.args.handle, *changes, epoch});
}

/// MMAP_BO of a BO that is where it was.
bool answer_mmap_bo(const File& file, uint64_t argument, int* result) {
  MmapBo args;
  KnownBo known;
  uint32_t changes;
  if (!copy_from_user(&args, argument, sizeof(args)) || args.flags || !look_at_bo_changes(file, &changes) ||
      !find_bo(file.token, args.handle, changes, mappings_epoch(), &known)) {
    return false;
  }
  know_place(file.token, known.offset, known.epoch, known.bo);
  args.offset = known.offset;
  *result = copy_to_user(argument, &args, sizeof(args)) ? 0 : -EFAULT;
  return true;
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

unsigned flags_of(wire::Op op, Driver driver, const File& file, uint32_t request) {
  unsigned flags = kCloseOnExec;
  const uint32_t number = ioctl_number(request);
  if (is_wait(driver, request)) flags |= kInterruptible;
  if (op != wire::kIoctl || !wire::goes_through_channel(number)) return flags;
  return flags | kShort | (wire::is_submit(number) && has_status(file) ? unsigned{kWakes} : 0u);
}

int forward(wire::Op op, Driver driver, int fd, const File& file, uint32_t request, uint64_t argument) {
  raw::KeepErrno keep;
  const uint32_t arg_size = ioctl_size(request);
  const bool wait = is_wait(driver, request);
  const bool wait_bo = wait && ioctl_number(request) == wire::kWaitBo;
  const bool mmap_bo = op == wire::kIoctl && driver == Driver::kV3d && ioctl_number(request) == wire::kMmapBo;
  const uint32_t epoch = mappings_epoch();
  uint32_t changes;
  const bool knows_changes = mmap_bo && look_at_bo_changes(file, &changes);
  known_place.token = 0;  // what comes may be its end
  const uint64_t started = wait_bo ? raw::fast_monotonic_ns() : 0;
  const bool submit = op == wire::kIoctl && driver == Driver::kV3d && wire::is_submit(ioctl_number(request));
  const Exports expected = submit ? expected_exports(file) : Exports{};
  Call call(op, flags_of(op, driver, file, request));
  if (int error = call.open(file.daemon, op == wire::kIoctl ? fd : -1)) return -error;
  if (op == wire::kFdIoctl) call.attach(fd);
  wire::IoctlRequest header{};
  header.token = file.token;
  header.request = request;
  header.arg_size = arg_size;
  if (!call.append(&header, sizeof(header))) return -ENOMEM;
  auto* copy = static_cast<uint8_t*>(call.append(arg_size));
  if (!copy) return -ENOMEM;
  memset(copy, 0, arg_size);
  if (arg_size && ioctl_writes(request) && !copy_from_user(copy, argument, arg_size)) return -EFAULT;
  uint32_t signalled = 0;
  if (!append_segments(&call, driver, request, arg_size, expected, &signalled)) return -ENOMEM;
  std::optional<SubmitOfExpected> brings;
  if (signalled && brings.emplace(file, signalled).wants()) {
    memcpy(call.at(offsetof(wire::IoctlRequest, sync_file_of)), &signalled, sizeof(signalled));
    call.bring_descriptor();
  }
  if (int error = call.send()) {
    if (error == EINTR && wait_bo) shorten_timeout(argument, started);
    return -error;
  }
  for (const uint32_t offset : call.wakes()) wake_sleepers(file, offset);
  if (mmap_bo) remember_place(call, file, epoch, knows_changes ? &changes : nullptr);
  return apply_reply(&call, file, request, argument, arg_size);
}

}  // namespace

int drm_ioctl(const File& file, uint32_t request, uint64_t argument) {
  const Driver driver = file.minor == 1 ? Driver::kVc4 : Driver::kV3d;
  if (int answer; driver == Driver::kV3d && find_status_answer(file, request, argument, &answer))
    return answer;
  if (int answer;
      driver == Driver::kV3d && request == kMmapBoRequest && answer_mmap_bo(file, argument, &answer))
    return answer;
  if (int answer; find_answer(file, driver, request, argument, &answer)) return answer;
  if (answers_version(request)) {
    // Asked once with room for everything, so that it can be answered from then on.
    Version version{};
    version.name_size = version.date_size = version.description_size = kVersionText;
    version.name = reinterpret_cast<uint64_t>(version.texts[0]);
    version.date = reinterpret_cast<uint64_t>(version.texts[1]);
    version.description = reinterpret_cast<uint64_t>(version.texts[2]);
    int error = forward(wire::kIoctl, driver, -1, file, request, reinterpret_cast<uint64_t>(&version));
    if (error == 0 && remember_version(file, driver, version)) return drm_ioctl(file, request, argument);
  }
  int result = forward(wire::kIoctl, driver, -1, file, request, argument);
  if (result == 0) remember_answer(file, driver, request, argument);
  return result;
}

int forward_ioctl(const File& file, uint32_t request, uint64_t argument) {
  return forward(wire::kIoctl, file.minor == 1 ? Driver::kVc4 : Driver::kV3d, -1, file, request, argument);
}

int forward_fd_ioctl(int fd, Driver driver, uint32_t request, uint64_t argument) {
  return forward(wire::kFdIoctl, driver, fd, File{}, request, argument);
}

int ask_for_life(const File& file) {
  // A wait for nothing.
  constexpr uint32_t kSyncobjWait = 0xc02064c3;
  uint64_t argument[4] = {};
  return forward(wire::kIoctl, Driver::kV3d, -1, file, kSyncobjWait, reinterpret_cast<uint64_t>(argument));
}

int fence_ioctl(int fd, uint32_t request, uint64_t argument) {
  struct stat st;
  int error = raw::fstat(fd, &st);
  if (error < 0) return error;
  // sync_files are sockets, dma-bufs memfds: unlinked regular files.
  bool possible = ioctl_type(request) == '>' ? S_ISSOCK(st.st_mode) : S_ISREG(st.st_mode) && st.st_nlink == 0;
  if (!possible || is_known_foreign(st)) return -ENOTTY;
  error = forward(wire::kFdIoctl, Driver::kFence, fd, File{}, request, argument);
  if (error == -ENODEV) return -ENOTTY;  // no daemon, so none of its objects
  if (error == -ENOTTY) remember_foreign(st);
  return error;
}

namespace {

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
  long result = raw::call(SYS_mmap, raw::word(address), static_cast<long>(length), prot, flags, fd,
                          static_cast<long>(reply.fd_offset));
  raw::close(fd);
  return result;
}

}  // namespace

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
    if ((result < 0 && result > -4096) || mappings_epoch() == epoch) return result;
    address = raw::pointer(static_cast<uint64_t>(result));
    flags = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;
  }
}

}  // namespace v3d::shim
