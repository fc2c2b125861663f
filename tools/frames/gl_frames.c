/* Preloaded into an EGL / OpenGL ES program: saves chosen frames and makes its clock run by frames, so that
 * the picture of frame N does not depend on the speed of the machine. A frame ends with eglSwapBuffers, or
 * with glFinish in programs that render off-screen (glmark2 --off-screen).
 *
 *   V3DEMU_GL_FRAMES_SAVE=N:FILE   saves frame N (the first is 1) as a PPM; the program exits with status 0
 *   V3DEMU_GL_FRAMES_HOLD=N        says "held" and stops the program once frame N is on its way to a window
 *   V3DEMU_GL_FRAMES_STEP=SECONDS  what the program's clock advances per frame (default 1/30)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

static unsigned frame;

static void* (*real_dlsym(void))(void*, const char*) {
  static void* (*real)(void*, const char*);
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return real;
}

static void* (*get_proc_address)(const char*);
static unsigned (*swap_buffers)(void*, void*);
static void (*finish)(void);

static void save(const char* path) {
  void (*get_integerv)(unsigned, int*);
  void (*read_pixels)(int, int, int, int, unsigned, unsigned, void*);
  *(void**)&get_integerv = get_proc_address("glGetIntegerv");
  *(void**)&read_pixels = get_proc_address("glReadPixels");
  int viewport[4] = {0, 0, 0, 0};
  get_integerv(0x0BA2 /* GL_VIEWPORT */, viewport);
  const int width = viewport[2], height = viewport[3];
  uint8_t* rgba = malloc((size_t)width * (size_t)height * 4);
  FILE* file = fopen(path, "wb");
  if (!rgba || !file) _exit(3);
  read_pixels(0, 0, width, height, 0x1908 /* GL_RGBA */, 0x1401 /* GL_UNSIGNED_BYTE */, rgba);
  fprintf(file, "P6\n%d %d\n255\n", width, height);
  for (int y = height - 1; y >= 0; --y)
    for (int x = 0; x < width; ++x) fwrite(rgba + 4 * ((size_t)y * (size_t)width + (size_t)x), 1, 3, file);
  fclose(file);
}

static void end_of_frame(void) {
  ++frame;
  const char* option = getenv("V3DEMU_GL_FRAMES_SAVE");
  const char* path = option ? strchr(option, ':') : NULL;
  if (!path || strtoul(option, NULL, 10) != frame || !get_proc_address) return;
  save(path + 1);
  fflush(NULL);
  _exit(0);
}

static unsigned counted_swap_buffers(void* display, void* surface) {
  end_of_frame();
  const unsigned swapped = swap_buffers(display, surface);
  const char* last = getenv("V3DEMU_GL_FRAMES_HOLD");
  if (!last || strtoul(last, NULL, 10) != frame) return swapped;
  puts("held");
  fflush(stdout);
  for (;;) pause();
}

static void counted_finish(void) {
  end_of_frame();
  finish();
}

static void* replace(const char* name, void* address);

static void* counted_get_proc_address(const char* name) { return replace(name, get_proc_address(name)); }

static void* replace(const char* name, void* address) {
  if (!address) return address;
  if (!strcmp(name, "eglGetProcAddress")) {
    *(void**)&get_proc_address = address;
    return (void*)counted_get_proc_address;
  }
  if (!strcmp(name, "eglSwapBuffers")) {
    *(void**)&swap_buffers = address;
    return (void*)counted_swap_buffers;
  }
  if (!strcmp(name, "glFinish")) {
    *(void**)&finish = address;
    return (void*)counted_finish;
  }
  return address;
}

/* RTLD_NEXT depends on the caller: those calls must be jumps, so that the caller's address stays on the
 * stack. */
__attribute__((optimize("O2"))) void* dlsym(void* handle, const char* name) {
  void* (*real)(void*, const char*) = real_dlsym();
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return real(handle, name);
  return replace(name, real(handle, name));
}

static int called_by_program(const void* address) {
  static void* program;
  Dl_info info;
  if (!program && dladdr((void*)getauxval(AT_ENTRY), &info)) program = info.dli_fbase;
  return dladdr(address, &info) && info.dli_fbase == program;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "clock_gettime", "GLIBC_2.17");
  if (!called_by_program(__builtin_return_address(0))) return real(clock, time);
  const char* option = getenv("V3DEMU_GL_FRAMES_STEP");
  const double now = 1000 + frame * (option ? atof(option) : 1.0 / 30);
  time->tv_sec = (time_t)now;
  time->tv_nsec = (long)((now - (double)time->tv_sec) * 1e9);
  return 0;
}
