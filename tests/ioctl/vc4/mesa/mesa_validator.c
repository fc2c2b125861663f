#include "mesa_validator.h"

#include "vc4_drv.h"

/* Where the test is built with AddressSanitizer, though this file may not be. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Of a program that it refuses, Mesa's copy does not free the offsets of its stream addresses. */
static struct vc4_validated_shader_info* validate_shader(struct drm_gem_cma_object* object) {
  if (__lsan_disable) __lsan_disable();
  struct vc4_validated_shader_info* info = vc4_validate_shader(object);
  if (__lsan_enable) __lsan_enable();
  return info;
}

struct mesa_program* mesa_analyse_program(const uint64_t* words, size_t count) {
  struct drm_gem_cma_object object = {{count * sizeof *words, NULL}, 0, (void*)words};
  struct vc4_validated_shader_info* info = validate_shader(&object);
  if (!info) return NULL;
  struct mesa_program* program = calloc(1, sizeof *program);
  program->uniform_bytes = info->uniforms_size;
  program->num_samples = info->num_texture_samples;
  uint32_t* samples = calloc(5 * info->num_texture_samples + 1, sizeof *samples);
  for (uint32_t i = 0; i < info->num_texture_samples; ++i) {
    samples[5 * i] = info->texture_samples[i].is_direct;
    memcpy(samples + 5 * i + 1, info->texture_samples[i].p_offset, 4 * sizeof *samples);
  }
  program->samples = samples;
  program->num_stream_addresses = info->num_uniform_addr_offsets;
  program->stream_addresses = info->uniform_addr_offsets;
  program->threaded = info->is_threaded;
  free(info->texture_samples);
  free(info);
  return program;
}

void mesa_free_program(struct mesa_program* program) {
  if (!program) return;
  free((void*)program->samples);
  free((void*)program->stream_addresses);
  free(program);
}

/* Tile memory, which is described and never looked at. */
static struct drm_vc4_bo tile_memory;
struct drm_gem_cma_object* drm_gem_cma_create(struct drm_device* device, size_t size) {
  tile_memory.base.base.dev = device;
  tile_memory.base.base.size = size;
  return &tile_memory.base;
}

static void fill_info(const struct mesa_program* program, struct vc4_validated_shader_info* info) {
  info->uniforms_size = program->uniform_bytes;
  info->uniforms_src_size = program->uniform_bytes + 4 * program->num_samples;
  info->num_texture_samples = program->num_samples;
  info->texture_samples = calloc(program->num_samples + 1, sizeof *info->texture_samples);
  for (uint32_t i = 0; i < program->num_samples; ++i) {
    info->texture_samples[i].is_direct = program->samples[5 * i];
    memcpy(info->texture_samples[i].p_offset, program->samples + 5 * i + 1, 4 * sizeof(uint32_t));
  }
  info->num_uniform_addr_offsets = program->num_stream_addresses;
  info->uniform_addr_offsets = (uint32_t*)program->stream_addresses;
  info->is_threaded = program->threaded;
}

int mesa_check_binning(struct mesa_job* job) {
  struct drm_device device = {0};
  struct drm_vc4_bo* bos = calloc(job->num_bos, sizeof *bos);
  struct drm_gem_cma_object** objects = calloc(job->num_bos, sizeof *objects);
  struct vc4_validated_shader_info* infos = calloc(job->num_bos, sizeof *infos);
  for (uint32_t i = 0; i < job->num_bos; ++i) {
    bos[i].base.base.size = job->bos[i].size;
    bos[i].base.paddr = job->bos[i].address;
    objects[i] = &bos[i].base;
    if (!job->bos[i].program) continue;
    fill_info(job->bos[i].program, &infos[i]);
    bos[i].validated_shader = &infos[i];
  }
  struct vc4_shader_state* states = calloc(job->num_records + 1, sizeof *states);
  struct drm_vc4_submit_cl args = {.bin_cl_size = job->list_bytes};
  struct drm_vc4_bo copy = {.base = {{0, &device}, job->address, job->copy}};
  struct vc4_exec_info exec = {
      .args = &args,
      .bo = objects,
      .bo_count = job->num_bos,
      .exec_bo = &copy.base,
      .shader_state = states,
      .shader_state_size = job->num_records,
      .ct0ca = job->address,
      .bin_u = (void*)job->list,
      .shader_rec_u = (void*)job->records,
      .shader_rec_v = job->copy + job->records_at,
      .shader_rec_p = job->address + job->records_at,
      .shader_rec_size = job->record_bytes,
      .uniforms_u = (void*)job->uniforms,
      .uniforms_v = job->copy + job->uniforms_at,
      .uniforms_p = job->address + job->uniforms_at,
      .uniforms_size = job->uniform_bytes,
  };
  int error = vc4_validate_bin_cl(&device, job->copy, (void*)job->list, &exec);
  if (!error) error = vc4_validate_shader_recs(&device, &exec);
  job->copied_list_bytes = exec.ct0ea - exec.ct0ca;
  for (uint32_t i = 0; i < job->num_bos; ++i) free(infos[i].texture_samples);
  free(states);
  free(infos);
  free(objects);
  free(bos);
  return error;
}

/* In one file, so that both see the headers of this folder. */
#include "vc4_validate.c"
#include "vc4_validate_shaders.c"
