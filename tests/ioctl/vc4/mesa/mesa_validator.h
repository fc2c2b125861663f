/* These functions call Mesa's copy of the kernel's validators. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mesa_program {
  uint32_t uniform_bytes;
  uint32_t num_samples;
  const uint32_t* samples; /* five words each: whether it is direct, then four places in the stream */
  uint32_t num_stream_addresses;
  const uint32_t* stream_addresses; /* in words */
  int threaded;
};
/* Null when it is refused. `words` has whole pages. */
struct mesa_program* mesa_analyse_program(const uint64_t* words, size_t count);
void mesa_free_program(struct mesa_program* program);

struct mesa_bo {
  uint32_t address;
  size_t size;
  const struct mesa_program* program; /* null: no shader */
};
struct mesa_job {
  const struct mesa_bo* bos;
  uint32_t num_bos;
  const uint8_t *list, *records, *uniforms;
  uint32_t list_bytes, record_bytes, num_records, uniform_bytes;
  uint32_t address; /* of the copy */
  uint8_t* copy;    /* as long as layout_of() says */
  uint32_t records_at, uniforms_at;
  uint32_t copied_list_bytes; /* out */
};
/* 0 when it is accepted. */
int mesa_check_binning(struct mesa_job* job);

#ifdef __cplusplus
}
#endif
