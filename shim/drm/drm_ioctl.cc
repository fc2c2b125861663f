#include "shim/drm/drm_ioctl.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "ioctl/abi/channel_requests.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/link/wire.h"
#include "shim/drm/compat.h"
#include "shim/drm/local_call.h"
#include "shim/drm/mapping.h"
#include "shim/drm/marshal.h"
#include "shim/drm/moved_memory.h"
#include "shim/drm/status.h"
#include "shim/link/connection.h"
#include "shim/link/submit_order.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;

/// What is asked of the daemon.
struct Ioctl {
  wire::Op op;
  Driver driver;
  int fd;     ///< of kFdIoctl; else -1
  File file;  ///< of kIoctl
  uint32_t request;
  uint64_t argument;
  LocalCall* local;  ///< has the argument already, and gets it as it comes back; null: it has to be copied in
};

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
int apply_reply(Call* call, const Ioctl& what, uint32_t arg_size) {
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
    remember_ready(what.file, ready, fd);
  }
  if (what.request & drm::kDirectionOut && header.arg_size)
    fault |= !copy_to_user(what.argument, copy, header.arg_size);
  if (what.local) memcpy(what.local->argument, copy, header.arg_size);  // as long as it was at most
  return fault ? -EFAULT : result;
}

/// The kernel hands back what is left of WAIT_BO's relative timeout, so that repeating the call is exact.
/// @param args  as they were sent
void shorten_timeout(const void* args, uint64_t argument, uint64_t started) {
  drm::WaitBo wait;
  memcpy(&wait, args, sizeof(wait));
  const uint64_t elapsed = raw::fast_monotonic_ns() - started;
  wait.timeout_ns -= elapsed < wait.timeout_ns ? elapsed : wait.timeout_ns;
  copy_to_user(argument, &wait, sizeof(wait));
}

/// Whether it is an ioctl of V3D's by its number, whatever the size.
bool is_v3d(const Ioctl& what, uint32_t known) {
  return what.op == wire::kIoctl && what.driver == Driver::kV3d &&
         drm::request_nr(what.request) == drm::request_nr(known);
}

/// Whether it waits for jobs, with a timeout in the place that WAIT_BO of v3d has it in.
bool waits_for_jobs(const Ioctl& what, uint32_t arg_size) {
  namespace vc4 = drm::vc4;
  static_assert(offsetof(vc4::WaitBo, timeout_ns) == offsetof(drm::WaitBo, timeout_ns) &&
                offsetof(vc4::WaitSeqno, timeout_ns) == offsetof(drm::WaitBo, timeout_ns));
  if (arg_size != sizeof(drm::WaitBo)) return false;
  if (is_v3d(what, drm::request::kWaitBo)) return true;
  const uint32_t number = drm::request_nr(what.request);
  return what.op == wire::kIoctl && what.driver == Driver::kVc4 &&
         (number == drm::request_nr(vc4::kWaitBo) || number == drm::request_nr(vc4::kWaitSeqno));
}

bool goes_through_channel(const Ioctl& what) {
  return what.op == wire::kIoctl &&
         drm::goes_through_channel(what.driver == Driver::kV3d, drm::request_nr(what.request));
}

unsigned flags_of(const Ioctl& what, bool submit) {
  unsigned flags = kCloseOnExec;
  if (is_wait(what.driver, what.request)) flags |= kInterruptible;
  if (!goes_through_channel(what)) return flags;
  return flags | kShort | (submit && has_status(what.file) ? unsigned{kWakes} : 0u);
}

/// Appends the request and its argument. 0 or a negative errno.
int append_request(Call* call, const Ioctl& what, uint32_t arg_size) {
  wire::IoctlRequest header{};
  header.token = what.file.token;
  header.request = what.request;
  header.arg_size = arg_size;
  if (!call->append(&header, sizeof(header))) return -ENOMEM;
  void* copy = call->append(arg_size);
  if (!copy) return -ENOMEM;
  if (what.local) {
    memcpy(copy, what.local->argument, arg_size);
    return 0;
  }
  const bool reads = what.request & drm::kDirectionIn;
  if (!reads) memset(copy, 0, arg_size);
  return arg_size && reads && !copy_from_user(copy, what.argument, arg_size) ? -EFAULT : 0;
}

int forward(const Ioctl& what) {
  raw::KeepErrno keep;
  const uint32_t arg_size = drm::request_size(what.request);
  const bool waits = waits_for_jobs(what, arg_size);
  const bool submit =
      what.op == wire::kIoctl && what.driver == Driver::kV3d && drm::is_submit(drm::request_nr(what.request));
  SubmitOrder::Scope order;
  std::optional<BeforeMmapBo> before;
  if (is_v3d(what, drm::request::kMmapBo)) before.emplace(what.file);
  forget_place();
  const uint64_t started = waits ? raw::fast_monotonic_ns() : 0;
  const Exports expected = submit ? expected_exports(what.file) : Exports{};
  Call call(what.op, flags_of(what, submit));
  if (int error = call.open(what.file.daemon, what.fd)) return -error;
  if (what.op == wire::kFdIoctl) call.attach(what.fd);
  if (int error = append_request(&call, what, arg_size)) return error;
  Signals signals;
  if (!append_segments(&call, what.driver, what.request, arg_size, expected, &signals)) return -ENOMEM;
  if (submit) order.begin(signals.all);
  std::optional<SubmitOfExpected> brings;
  if (signals.wanted && brings.emplace(what.file, signals.wanted).wants()) {
    memcpy(call.at(offsetof(wire::IoctlRequest, sync_file_of)), &signals.wanted, sizeof(signals.wanted));
    call.bring_descriptor();
  }
  if (int error = call.send()) {
    if (error == EINTR && waits) shorten_timeout(call.at(sizeof(wire::IoctlRequest)), what.argument, started);
    return -error;
  }
  for (const uint32_t offset : call.wakes()) wake_sleepers(what.file, offset);
  if (before) remember_place(call, what.file, *before);
  const int result = apply_reply(&call, what, arg_size);
  if (result == 0 && !waits && is_wait(what.driver, what.request)) SubmitOrder::let_others_go_on(kAnySyncobj);
  return result;
}

}  // namespace

int drm_ioctl(const File& file, uint32_t request, uint64_t argument) {
  if (int result; compat_drm_ioctl(file, request, argument, &result)) return result;
  const Driver driver = driver_of(file);
  const LocalIoctl* known = find_local_ioctl(driver, request);
  if (!known) return forward({wire::kIoctl, driver, -1, file, request, argument, nullptr});
  LocalCall call(file, driver);
  const uint32_t size = drm::request_size(request);
  if (!copy_from_user(call.argument, argument, size)) return -EFAULT;
  memset(call.argument + size, 0, known->size - size);
  int result = known->answer(call);
  if (result == LocalCall::kAskDaemon) {
    result = forward({wire::kIoctl, driver, -1, file, request, argument, &call});
    if (result == 0 && known->remember) known->remember(call);
    return result;
  }
  // On errors too, as the kernel does.
  if (copy_to_user(argument, call.argument, size)) return result;
  if (call.descriptor >= 0) withdraw_descriptor(call.descriptor);
  return -EFAULT;
}

int forward_ioctl(const File& file, uint32_t request, uint64_t argument) {
  return forward({wire::kIoctl, driver_of(file), -1, file, request, argument, nullptr});
}

int forward_fd_ioctl(int fd, Driver driver, uint32_t request, uint64_t argument) {
  return forward({wire::kFdIoctl, driver, fd, File{}, request, argument, nullptr});
}

int ask_for_life(const File& file) {
  drm::SyncobjWait nothing{};
  return forward_ioctl(file, drm::request::kSyncobjWait, raw::address_of(&nothing));
}

int fence_ioctl(int fd, uint32_t request, uint64_t argument) {
  struct stat st;
  int error = raw::fstat(fd, &st);
  if (error < 0) return error;
  // sync_files are sockets, dma-bufs memfds: unlinked regular files.
  bool possible =
      drm::request_type(request) == '>' ? S_ISSOCK(st.st_mode) : S_ISREG(st.st_mode) && st.st_nlink == 0;
  if (!possible || is_known_foreign(st)) return -ENOTTY;
  error = forward_fd_ioctl(fd, Driver::kFence, request, argument);
  if (error == -ENODEV) return -ENOTTY;  // no daemon, so none of its objects
  if (error == -ENOTTY) remember_foreign(st);
  return error;
}

}  // namespace v3d::shim
