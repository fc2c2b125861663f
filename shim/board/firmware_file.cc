#include "shim/board/firmware_file.h"

#include "shim/link/connect.h"
#include "shim/link/connection.h"
#include "shim/link/known_descriptors.h"
#include "shim/process/config.h"
#include "shim/process/process_lock.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

constinit FirmwareFile standing{-1, 0, 0};
constinit dev_t standing_dev = 0;
constinit ino_t standing_ino = 0;
/// Of who reads or replaces it; a signal handler below such a one is told to come again.
constinit ProcessLock lock;

int replace() {
  FirmwareFile opened;
  struct stat st;
  if (const int error = open_firmware_file(&opened)) return error;
  opened.fd = move_high(opened.fd);
  if (raw::fstat(opened.fd, &st) < 0) {
    raw::close(opened.fd);
    return -ENODEV;
  }
  remember_file(st, {opened.token, wire::kFirstRenderMinor, opened.daemon, wire::FileDriver::kVc4});
  standing = opened;
  standing_dev = st.st_dev;
  standing_ino = st.st_ino;
  return 0;
}

}  // namespace

int find_firmware_file(FirmwareFile* out) {
  if (!lock.hold()) return -EAGAIN;
  int error = 0;
  if (standing.fd < 0 || !is_intact(standing.fd, standing_dev, standing_ino)) {
    if (standing.fd >= 0)
      complain("/dev/vcio: all memory for QPU programs is gone, as this process closed every descriptor");
    standing.fd = -1;
    error = replace();
  }
  *out = standing;
  lock.release();
  return error;
}

}  // namespace v3d::shim
