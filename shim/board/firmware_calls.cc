#include "shim/board/firmware_calls.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "shim/board/firmware.h"
#include "shim/link/connect.h"
#include "shim/link/connection.h"
#include "shim/link/known_descriptors.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

/// The file of the daemon's that stands for this process. Children of a fork go on with it.
struct Standing {
  int fd;
  pid_t daemon;
  uint64_t token;
  dev_t dev;
  ino_t ino;
};
constinit Standing standing{-1, 0, 0, 0, 0};
/// Of who reads or replaces it; a signal handler below such a one is told to come again.
constinit std::atomic_flag busy = ATOMIC_FLAG_INIT;

int open_standing() {
  Call call(wire::kOpen, kStartDaemon | kCloseOnExec);
  const wire::OpenRequest request{wire::kFirstRenderMinor, O_RDWR | O_CLOEXEC};
  int error = call.open();
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  wire::FileReply reply;
  struct stat st;
  const int fd = call.take(0);
  if (fd < 0) return -EMFILE;
  const int moved = move_high(fd);
  if (call.reply_size() < sizeof(reply) || raw::fstat(moved, &st) < 0) {
    raw::close(moved);
    return -ENODEV;
  }
  memcpy(&reply, call.reply(), sizeof(reply));
  remember_file(st, {reply.token, reply.minor, call.daemon(), reply.driver});
  standing = {moved, call.daemon(), reply.token, st.st_dev, st.st_ino};
  return 0;
}

/// What gpu_mem in config.txt would be.
uint32_t asked_memory_mib() {
  const char* text = environment_variable(kMemoryVariable);
  return text ? static_cast<uint32_t>(strtoul(text, nullptr, 10)) : 0;
}

/// The file, opened if there is none.
int find_standing(Standing* out) {
  for (int patience = 0; busy.test_and_set(std::memory_order_acquire); ++patience) {
    if (patience > 10'000) return -EAGAIN;
    raw::call(SYS_sched_yield);
  }
  int error = 0;
  if (standing.fd < 0 || !is_intact(standing.fd, standing.dev, standing.ino)) {
    if (standing.fd >= 0)
      complain("/dev/vcio: all memory for QPU programs is gone, as this process closed every descriptor");
    standing.fd = -1;
    error = open_standing();
  }
  *out = standing;
  busy.clear(std::memory_order_release);
  return error;
}

}  // namespace

bool has_user_programs() {
  const Tree* nodes = tree();
  return caller_is_this_process() && nodes && board_of(nodes->chip).soc->peripherals != 0;
}

int call_firmware(wire::FirmwareCall what, uint32_t a, uint32_t b, uint32_t c, uint32_t* answer,
                  int* mapped) {
  raw::KeepErrno keep;
  Standing file;
  if (const int error = find_standing(&file)) return error;
  Call call(wire::kFirmware, kCloseOnExec);
  const wire::FirmwareRequest request{file.token, what, {a, b, c}, asked_memory_mib(), 0};
  int error = call.open(file.daemon, file.fd);
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  wire::FirmwareReply reply;
  if (call.reply_size() < sizeof(reply)) return -EPROTO;
  memcpy(&reply, call.reply(), sizeof(reply));
  *answer = reply.word;
  if (!mapped) return 0;
  *mapped = call.take(0);
  return *mapped < 0 ? -EMFILE : 0;
}

}  // namespace v3d::shim
