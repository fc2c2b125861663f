/* A kernel that a signal interrupts: the first submission of a process fails with EINTR, and its program is
 * to repeat it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>

int ioctl(int fd, unsigned long request, ...);

int ioctl(int fd, unsigned long request, ...) {
  enum { SUBMIT_CSD = 0x47 };
  static bool interrupted;
  static int (*next)(int, unsigned long, ...);
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!interrupted && (request >> 8 & 255) == 'd' && (request & 255) == SUBMIT_CSD) {
    interrupted = true;
    errno = EINTR;
    return -1;
  }
  if (!next) next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
  return next(fd, request, argument);
}
