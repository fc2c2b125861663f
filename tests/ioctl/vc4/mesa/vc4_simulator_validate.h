/* What Mesa's copy of the kernel's validators finds around itself here, in place of its simulator. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "drm-uapi/vc4_drm.h"
#include "util/macros.h"

#define DRM_INFO(...) ((void)0)
#define DRM_ERROR(...) ((void)0)
#define kcalloc(count, size, flags) calloc(count, size)
#define krealloc(pointer, size, flags) realloc(pointer, size)
#define kfree(pointer) free(pointer)
#define roundup(value, to) (((value) + (to)-1) / (to) * (to))
#define round_up(value, to) roundup(value, to)
#define max(a, b) ((a) > (b) ? (a) : (b))
#define BUG_ON(condition) assert(!(condition))
#define BITS_TO_LONGS(bits) (((bits) + 63) / 64)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;

static inline bool test_bit(uint32_t bit, const unsigned long* words) {
  return words[bit / 64] >> (bit % 64) & 1;
}
static inline void set_bit(uint32_t bit, unsigned long* words) { words[bit / 64] |= 1ul << (bit % 64); }

struct list_head {
  int unused;
};
static inline void list_addtail(struct list_head* item, struct list_head* list) {
  (void)item;
  (void)list;
}

struct drm_device {
  int unused;
};
struct drm_gem_object {
  size_t size;
  struct drm_device* dev;
};
struct drm_gem_cma_object {
  struct drm_gem_object base;
  uint32_t paddr;
  void* vaddr;
};
struct drm_vc4_bo {
  struct drm_gem_cma_object base;
  struct vc4_validated_shader_info* validated_shader;
  struct list_head unref_head;
};
static inline struct drm_vc4_bo* to_vc4_bo(struct drm_gem_object* object) {
  return (struct drm_vc4_bo*)object;
}
struct drm_gem_cma_object* drm_gem_cma_create(struct drm_device* device, size_t size);
