/// Preloaded after the shim, so that its constructor runs first: libraries do call libc before the shim had
/// a chance to initialise.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

[[gnu::constructor]] void call_early() {
  struct stat st;
  char text[256];
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool good = memory != MAP_FAILED && stat("/dev/dri/renderD128", &st) == 0 && S_ISCHR(st.st_mode) &&
              access("/sys/class/drm/card0", F_OK) == 0 &&
              readlink("/sys/class/drm/card0", text, sizeof(text)) > 0 && getenv("HOME") != text;
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  good = good && fd >= 0;
  close(fd);
  munmap(memory, 4096);
  if (good) setenv("EARLY_CALLS", "good", 1);
}

}  // namespace
