#include "shim/process/user_descriptors.h"

#include "shim/process/raw.h"

namespace v3d::shim {

int find_descriptor(int number) { return number; }

int give_descriptor(int fd, bool close_on_exec) {
  if (!close_on_exec) raw::fcntl(fd, F_SETFD, 0);
  return fd;
}

void withdraw_descriptor(int number) { raw::close(number); }

}  // namespace v3d::shim
