/* Preloaded into a daemon, makes it leak a descriptor and memory with every client that connects. It shows
   that tools/torture notices (torture_notices_test.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kBytes = 4 << 20 };
static void* volatile last; /* so that no compiler leaves it out */

int accept4(int socket, struct sockaddr* address, socklen_t* size, int flags) {
  int (*real)(int, struct sockaddr*, socklen_t*, int) =
      (int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4");
  const int accepted = real(socket, address, size, flags);
  if (accepted < 0) return accepted;
  if (dup(accepted) < 0) abort();
  last = malloc(kBytes);
  memset(last, 1, kBytes);
  return accepted;
}
