/* Preloaded into an X11 client that presents by software (Mesa's Vulkan drivers on a server without DRI3):
 * counts the frames, saves chosen ones, and reports the frame rate when the program ends. Used by
 * packaging/demo and by the tests that compare pictures of vkcube; knows nothing of v3demu.
 *
 *   V3DEMU_FRAMES_SAVE=N[,N...]:PREFIX   saves frame N (the first is 1) as PREFIX-N.ppm
 *   V3DEMU_FRAMES_REPORT=FILE            writes "frames SECONDS": presented frames, and the time from the
 * first to the last
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  unsigned int sequence;
} Cookie; /* xcb_void_cookie_t */

static unsigned frames;
static double first_time, last_time;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count_frame(void) {
  last_time = now();
  if (frames++ == 0) first_time = last_time;
}

/* Rows [y, y + height) of the current frame; data is BGRX, `width` pixels a row. */
static void save_rows(unsigned width, unsigned height, unsigned y, const uint8_t* data) {
  const char* option = getenv("V3DEMU_FRAMES_SAVE");
  const char* prefix = option ? strchr(option, ':') : NULL;
  if (!prefix) return;
  int wanted = 0;
  for (const char* p = option; p < prefix; ++p)
    if ((p == option || p[-1] == ',') && strtoul(p, NULL, 10) == frames) wanted = 1;
  if (!wanted) return;

  char path[4096];
  snprintf(path, sizeof path, "%s-%u.ppm", prefix + 1, frames);
  FILE* file = fopen(path, y == 0 ? "wb" : "r+b");
  if (!file) return;
  char header[64];
  const int header_size = snprintf(header, sizeof header, "P6\n%5u %5u\n255\n", width, y + height);
  fwrite(header, 1, (size_t)header_size, file); /* of constant length: rewritten as rows arrive */
  fseek(file, header_size + 3L * width * y, SEEK_SET);
  for (size_t i = 0; i < (size_t)width * height; ++i) {
    const uint8_t rgb[3] = {data[4 * i + 2], data[4 * i + 1], data[4 * i]};
    fwrite(rgb, 1, 3, file);
  }
  fclose(file);
}

Cookie xcb_put_image(void* connection, uint8_t format, uint32_t drawable, uint32_t gc, uint16_t width,
                     uint16_t height, int16_t x, int16_t y, uint8_t left_pad, uint8_t depth, uint32_t size,
                     const uint8_t* data) {
  static Cookie (*real)(void*, uint8_t, uint32_t, uint32_t, uint16_t, uint16_t, int16_t, int16_t, uint8_t,
                        uint8_t, uint32_t, const uint8_t*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "xcb_put_image");
  if (!real) { /* programs that load libxcb themselves keep it out of the global scope */
    void* xcb = dlopen("libxcb.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (xcb) *(void**)&real = dlsym(xcb, "xcb_put_image");
  }
  if (depth >= 24 && size >= 4u * width * height) {
    if (y == 0) count_frame();
    save_rows(width, height, (unsigned)y, data);
  }
  return real(connection, format, drawable, gc, width, height, x, y, left_pad, depth, size, data);
}

__attribute__((destructor)) static void report(void) {
  const char* path = getenv("V3DEMU_FRAMES_REPORT");
  if (!path || !frames) return;
  FILE* file = fopen(path, "w");
  if (!file) return;
  fprintf(file, "%u %.6f\n", frames, last_time - first_time);
  fclose(file);
}
