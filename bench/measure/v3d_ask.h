/// A question is a job whose results tell which of several assumptions a board keeps: a dispatch, a tile that
/// is loaded and stored, or mip levels by the TFU. The table (v3d_questions.h) is made of questions/.
#pragma once

#include "v3d_frames.h"

struct alternative {
  const char* name;
  const uint32_t* words;
  uint32_t ulps;  ///< by which the results, floats then, may be off
};

/// Uniforms and memory are numbers, with what they are counted from in the upper 32 bits.
enum { FROM_NOTHING, FROM_MEMORY, FROM_RESULTS };

/// What one of the chips is asked.
struct asked {
  const uint64_t* code;  ///< null: no dispatch
  uint32_t code_count;
  const uint64_t* before;  ///< a dispatch before that of the question, or null
  uint32_t before_count;
  const uint64_t* uniforms;  ///< of a tile and of the TFU, what they are told
  uint32_t uniform_count;
  const uint64_t* memory;
  uint32_t memory_count;
  const struct alternative* alternatives;
  uint32_t alternative_count, assumed;
};

enum kind { ASKS_DISPATCH, ASKS_TILE, ASKS_TFU };

struct question {
  enum kind kind;
  const char *name, *where, *asks;
  const struct asked* of[2];          ///< of 7.1 and 4.2; null: that chip is not asked
  uint32_t words;                     ///< of the results that are compared
  uint32_t plane_words, plane_pitch;  ///< compared words of a plane, and words from a plane to the next
  uint32_t fill;                      ///< what the results hold before
  uint32_t floats;                    ///< NaNs are alike
  struct {
    uint32_t workgroups, size, per_supergroup, batches, batches_of_supergroup, offset, propagate_nans;
  } dispatch;
  uint32_t in_memory;  ///< the results are words of the question's memory, from this one on; NOT_IN_MEMORY
};

enum { NOT_IN_MEMORY = 0x7fffffff };

enum { ASKED_RESULTS = 1 << 16, MOST_RESULTS = 1024 };

static uint32_t* asked_results(void) { return (uint32_t*)(void*)(data_bo.map + SECOND_DATA); }

static uint32_t located(uint64_t item) {
  const uint32_t from = (uint32_t)(item >> 32);
  const uint32_t start = from == FROM_MEMORY    ? data_bo.address
                         : from == FROM_RESULTS ? data_bo.address + SECOND_DATA
                                                : 0;
  return start + (uint32_t)item;
}

static void locate(uint8_t* to, const uint64_t* items, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) ((uint32_t*)(void*)to)[i] = located(items[i]);
}

/// 0, or the errno of the kernel's refusal.
static int dispatch(const struct question* q, const uint64_t* code, uint32_t count) {
  enum { FOUR_THREADS = 1, PROPAGATE_NANS = 4 };
  memcpy(code_bo.map, code, count * sizeof *code);
  const bool exact = device.version >= 71 && device.revision >= 6;
  const uint32_t handles[] = {code_bo.handle, data_bo.handle};
  struct submit_csd_args csd = {.bo_handles = (uintptr_t)handles, .bo_handle_count = 2};
  csd.cfg[0] = q->dispatch.workgroups << 16 | q->dispatch.offset;
  csd.cfg[1] = csd.cfg[2] = 1u << 16;
  csd.cfg[3] = q->dispatch.size | (q->dispatch.per_supergroup & 15) << 8 |
               (q->dispatch.batches_of_supergroup - 1) << 12;
  csd.cfg[4] = exact ? q->dispatch.batches : q->dispatch.batches - 1;
  csd.cfg[5] = code_bo.address | (device.version == 42 && q->dispatch.propagate_nans ? PROPAGATE_NANS : 0);
  csd.cfg[6] = code_bo.address + 2 * CODE_BYTES;
  const int refused = call(device.fd, IOCTL_SUBMIT_CSD, &csd) == 0 ? 0 : errno;
  if (refused == 0) {
    ++num_jobs;
    wait_bo(&device, &data_bo);
  }
  return refused;
}

static int submit_or_refuse(const struct run* run) {
  const int refused = try_submit(run);
  if (refused == 0) wait_bo(&device, &data_bo);
  return refused;
}

/// What Python's Tile says, in its order.
static int tile(const struct asked* asked) {
  enum { LOADED, LOADED_BYTES, STORED, STORED_BYTES, HALVES, WIDTH, HEIGHT, SAMPLES };
  uint32_t told[SAMPLES + 1];
  locate((uint8_t*)told, asked->uniforms, SAMPLES + 1);
  const uint32_t type_42 = told[HALVES] ? 6 : 2, type_71 = told[HALVES] ? 9 : 8;
  const struct tile_format loaded = {.image_format = told[LOADED],
                                     .bytes = told[LOADED_BYTES],
                                     .block_height = told[SAMPLES] ? 8 : 0,
                                     .type_42 = type_42,
                                     .type_71 = type_71,
                                     .bpp = told[HALVES]};
  const struct tile_format stored = {.image_format = told[STORED], .bytes = told[STORED_BYTES]};
  const struct frame f = {.width = told[WIDTH],
                          .height = told[HEIGHT],
                          .format = &loaded,
                          .load = true,
                          .store = true,
                          .image = data_bo.address,
                          .stored_as = &stored,
                          .stored_image = data_bo.address + SECOND_DATA,
                          .samples = told[SAMPLES] != 0};
  const struct run run = frame(0, &f);
  return submit_or_refuse(&run);
}

/// ICFG, IIA, IIS, IOA, IOS, IOC.
static int make_levels(const struct asked* asked) {
  uint32_t told[6];
  locate((uint8_t*)told, asked->uniforms, 6);
  const struct run run = {
      .kind = TRANSFER,
      .tfu = {
          .icfg = told[0], .iia = told[1], .iis = told[2], .ioa = told[3], .ios = told[4], .ioc = told[5]}};
  return submit_or_refuse(&run);
}

/// Of two floats, how many others lie between them, and one.
static uint32_t ulps_between(uint32_t a, uint32_t b) {
  const int64_t x = a >> 31 ? -(int64_t)(a & 0x7fffffff) : (int64_t)a;
  const int64_t y = b >> 31 ? -(int64_t)(b & 0x7fffffff) : (int64_t)b;
  const int64_t distance = x > y ? x - y : y - x;
  return distance > 0xffffffff ? 0xffffffff : (uint32_t)distance;
}

static bool is_nan(uint32_t word) { return (word & 0x7fffffff) > 0x7f800000; }

static bool agrees(const struct question* q, const struct alternative* a, const uint32_t* results) {
  for (uint32_t i = 0; i < q->words; ++i) {
    const uint32_t expected = a->words[i], found = results[i];
    if (expected == found) continue;
    if (q->floats && is_nan(expected) && is_nan(found)) continue;
    if (a->ulps == 0 || is_nan(expected) || is_nan(found)) return false;
    if (ulps_between(expected, found) > a->ulps) return false;
  }
  return true;
}

/// Runs the question's job. @return 0, or an errno; `results` has q->words words
static int results_of_question(const struct question* q, const struct asked* asked, uint32_t* results) {
  uint32_t* const stored = asked_results();
  for (uint32_t i = 0; i < ASKED_RESULTS / 4; ++i) stored[i] = q->fill;
  locate(data_bo.map, asked->memory, asked->memory_count);
  if (asked->code) locate(code_bo.map + 2 * CODE_BYTES, asked->uniforms, asked->uniform_count);
  int refused = asked->before ? dispatch(q, asked->before, asked->before_count) : 0;
  for (uint32_t i = 0; i < ASKED_RESULTS / 4; ++i) stored[i] = q->fill;
  if (refused == 0)
    refused = q->kind == ASKS_TILE  ? tile(asked)
              : q->kind == ASKS_TFU ? make_levels(asked)
                                    : dispatch(q, asked->code, asked->code_count);
  const uint32_t* const from =
      q->in_memory == NOT_IN_MEMORY ? stored : (const uint32_t*)(const void*)data_bo.map + q->in_memory;
  for (uint32_t i = 0; i < q->words; ++i)
    results[i] = from[i / q->plane_words * q->plane_pitch + i % q->plane_words];
  return refused;
}

static bool all_are(const uint32_t* words, uint32_t count, uint32_t value) {
  for (uint32_t i = 0; i < count; ++i)
    if (words[i] != value) return false;
  return true;
}

/// Prints a member of "questions".
static void ask(const struct question* q, const struct asked* asked) {
  static bool later;
  uint32_t results[MOST_RESULTS];
  const int refused = results_of_question(q, asked, results);
  const char* answer = NULL;
  for (uint32_t i = 0; i < asked->alternative_count && !answer && !refused; ++i)
    if (agrees(q, &asked->alternatives[i], results)) answer = asked->alternatives[i].name;
  if (!answer)
    answer = refused                               ? "the kernel refuses the job"
             : all_are(results, q->words, q->fill) ? "nothing was stored"
                                                   : "none of the alternatives";
  const char* const assumed = asked->alternatives[asked->assumed].name;
  fprintf(stderr, "%-24s %s%s\n", q->name, answer, strcmp(answer, assumed) ? "  <- not as the model" : "");
  printf("%s\n    {\"name\": \"%s\", \"answer\": \"%s\", \"assumed\": \"%s\",\n     \"words\": \"",
         later ? "," : "", q->name, answer, assumed);
  for (uint32_t i = 0; i < q->words; ++i) printf("%s%08x", i ? " " : "", results[i]);
  printf("\"}");
  fflush(stdout);
  later = true;
}
