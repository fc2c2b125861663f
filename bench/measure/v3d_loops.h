/// These rows measure what QPUs run: a loop around pieces of code.
#pragma once

#include "v3d_rows.h"
#include "v3d_words.h"

enum { MAX_PIECES = 8, HEAD_UNIFORMS = 10 };

struct snippet {
  const uint64_t* words[2];  ///< of 7.1 and of 4.2
  uint32_t count[2];
};
#define ROW(name)                          \
  static const struct snippet S_##name = { \
      {name##_71, name##_42}, {sizeof name##_71 / sizeof(uint64_t), sizeof name##_42 / sizeof(uint64_t)}};
SNIPPETS(ROW)
#undef ROW

struct piece {
  const struct snippet* snippet;
  uint32_t times;
};

struct code {
  uint64_t* words;
  uint32_t count;
};

static void put(struct code* c, const struct snippet* s, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i)
    for (uint32_t word = 0; word < s->count[chip()]; ++word) c->words[c->count++] = s->words[chip()][word];
}

/// The snippet's branch goes to a word of the program. Distances count from the end of the three delay slots.
static void put_branch(struct code* c, const struct snippet* s, uint32_t target) {
  put(c, s, 1);
  uint64_t* const branch = &c->words[c->count - 4];
  const uint64_t distance = (uint32_t)(8 * (target - c->count));
  *branch &= ~((uint64_t)0x1fffff << 35 | (uint64_t)0xff << 24);
  *branch |= (distance >> 3 & 0x1fffff) << 35 | (distance >> 24) << 24;
}

struct loop {
  struct piece pieces[MAX_PIECES];
  uint32_t copies[2], turns[2];  ///< of the pieces in a turn; of the two runs
  uint32_t batches;              ///< 0: one
  uint32_t passes[2];  ///< of that, with the same uniforms each time; 0: one, whose uniforms are a stream
  bool keep_address, stream, supergroups;
  uint32_t address, second_address, lane_bytes, thread_bytes, step_bytes, configuration;
  /// What a lane has in the end; null: is not checked.
  uint32_t (*expected)(const struct loop* loop, uint32_t run, uint32_t batch, uint32_t lane);
};

/// What lies in memory that is read.
static uint32_t pattern(uint32_t word) { return word * 2654435761u; }

static uint32_t batches_of(const struct loop* loop) { return loop->batches ? loop->batches : 1; }

/// Of the threads, 16 words each.
static uint32_t* results_of(uint32_t run) {
  return (uint32_t*)(void*)(code_bo.map + 2 * CODE_BYTES + 2 * UNIFORM_BYTES + run * RESULT_BYTES);
}

/// Before the loop.
static uint32_t extra_copies(const struct loop* loop, uint32_t number) {
  return at_least(loop->copies[0], loop->copies[1]) - loop->copies[number];
}
static uint32_t copies_in_all(const struct loop* loop, uint32_t number) {
  return loop->copies[number] * loop->turns[number] * at_least(loop->passes[number], 1) +
         extra_copies(loop, number);
}

static void put_pieces(struct code* code, const struct loop* loop, uint32_t copies) {
  for (uint32_t copy = 0; copy < copies; ++copy)
    for (uint32_t i = 0; i < MAX_PIECES && loop->pieces[i].snippet; ++i)
      put(code, loop->pieces[i].snippet, loop->pieces[i].times);
}

static void prepare_loop(const struct loop* loop, uint32_t number, struct run* run) {
  const struct bo* const bo = loop->stream ? &data_bo : &code_bo;
  const uint32_t place =
      loop->stream ? STREAM_UNIFORMS + number * STREAM_BYTES : 2 * CODE_BYTES + number * UNIFORM_BYTES;
  const uint32_t batches = batches_of(loop);
  struct code code = {.words = (uint64_t*)(void*)(code_bo.map + number * CODE_BYTES)};
  put(&code, &S_head, 1);
  // What the other run has more of stands before the loop: as much code is cold in both.
  put_pieces(&code, loop, extra_copies(loop, number));
  while (code.count % 8 != 0) put(&code, &S_idle, 1);  // a line of the instruction cache
  const uint32_t begin = code.count;
  put_pieces(&code, loop, loop->copies[number]);
  put_branch(&code, &S_again, begin);
  if (loop->passes[number] != 0) put_branch(&code, &S_next_pass, begin);
  if (loop->keep_address) put(&code, &S_keep_address, 1);
  put(&code, &S_store_sum, 1);
  put(&code, &S_finish, 1);
  uint32_t shift = 0;
  while (batches > 16 && (batches / device.qpus) >> (shift + 1)) ++shift;
  const uint32_t head[HEAD_UNIFORMS] = {
      at_least(loop->passes[number], 1),
      loop->turns[number],
      loop->address,
      loop->second_address,
      code_bo.address + (uint32_t)((uint8_t*)results_of(number) - code_bo.map),
      loop->lane_bytes,
      loop->thread_bytes,
      loop->step_bytes,
      loop->configuration,
      shift};
  memcpy(bo->map + place, head, sizeof head);
  set_dispatch(run, code_bo.address + number * CODE_BYTES, bo->address + place, batches, loop->supergroups);
}

static bool right(const struct loop* loop, uint32_t run) {
  const uint32_t batches = batches_of(loop);
  const uint32_t* const results = results_of(run);
  for (uint32_t batch = 0; loop->expected && batch < batches; ++batch)
    for (uint32_t lane = 0; lane < 16; ++lane)
      if (results[16 * batch + lane] != loop->expected(loop, run, batch, lane)) return false;
  return true;
}

/// @param row  its work is that of one copy of the pieces
static double measure_loop(struct row* row, const struct loop* loop) {
  struct run runs[2];
  row->work *= copies_in_all(loop, 1) - copies_in_all(loop, 0);
  memset(results_of(0), 0, 2 * RESULT_BYTES);
  for (uint32_t i = 0; i < 2; ++i) {
    prepare_loop(loop, i, &runs[i]);
    seconds_of(&runs[i]);
    if (!right(loop, i)) row->wrong = true;
  }
  return measure(row, &runs[0], &runs[1]);
}
