/// These rows measure lookups and the memory that serves them.
#pragma once

#include "v3d_loops.h"

static uint32_t chain[1 << 16];  ///< the places of a chain of pointers in their order
static uint32_t chain_length;
enum { COPIES = 8 };  ///< of a step in a turn

static uint32_t random_number(uint32_t below) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 32) * below >> 32);
}

/// Writes the chain, through its places in no order, and around.
static void link_chain(void) {
  for (uint32_t i = chain_length - 1; i > 0; --i) {
    const uint32_t other = random_number(i + 1), place = chain[i];
    chain[i] = chain[other];
    chain[other] = place;
  }
  for (uint32_t i = 0; i < chain_length; ++i)
    *(uint32_t*)(void*)(data_bo.map + chain[i]) = data_bo.address + chain[(i + 1) % chain_length];
}

/// Of places that are `stride` bytes from each other. Of more than it can have it takes some.
static void make_chain(uint32_t places, uint32_t stride) {
  chain_length = at_most(places, amount(1 << 16, 1 << 12));
  for (uint32_t i = 0; i < chain_length; ++i) {
    const uint64_t part = places / chain_length;
    chain[i] = (uint32_t)(i * part + (part > 1 ? random_number((uint32_t)part) : 0)) * stride;
  }
  link_chain();
}

static uint32_t expect_place(const struct loop* loop, uint32_t run, uint32_t batch, uint32_t lane) {
  const uint32_t start =
      loop->address - data_bo.address + batch * loop->thread_bytes + lane * loop->lane_bytes;
  uint32_t at = 0;
  while (chain[at] != start) ++at;
  return data_bo.address + chain[(at + copies_in_all(loop, run)) % chain_length];
}

/// Lookups that wait for each other: in the first run once around, so that the difference is of warm caches.
static void measure_chain(struct row* row, bool yields) {
  const uint32_t turns = chain_length / COPIES + 1, more = amount(chain_length < 2048 ? 12000 : 3000, 128);
  const struct loop loop = {.pieces = {{yields ? &S_follow_and_yield : &S_follow, 1}},
                            .copies = {COPIES, COPIES},
                            .turns = {turns, turns + more},
                            .keep_address = true,
                            .address = data_bo.address + chain[0],
                            .expected = expect_place};
  row->work = 1;
  measure_loop(row, &loop);
}

/// All threads, of which each lane begins somewhere else on the chain: lines for which the TMUs ask at once.
static void measure_scatter(void) {
  const uint32_t kilobytes[] = {64, 256};
  for (uint32_t i = 0; i < 2 && wanted("scatter"); ++i) {
    make_chain(kilobytes[i] * 16, 64);
    const uint32_t turns = amount(300, 8), batches = 2 * device.qpus;
    const struct loop loop = {.pieces = {{&S_follow_and_yield, 1}},
                              .copies = {COPIES, COPIES},
                              .turns = {turns, turns * amount(5, 4)},
                              .batches = batches,
                              .keep_address = true,
                              .address = data_bo.address,
                              .lane_bytes = 64,
                              .thread_bytes = 1024,
                              .expected = expect_place};
    struct row row = {.name = "scatter", .unit = i == 0 ? CLOCKS : NANOSECONDS, .work = 16.0 * batches};
    row.constants = i == 0 ? "l2_interval l1_bytes" : "dram_read tmu_misses l2_misses l2_bytes";
    snprintf(row.parameters, sizeof row.parameters, "\"kilobytes\": %u, \"threads\": %u", kilobytes[i],
             batches);
    measure_loop(&row, &loop);
  }
}

static void measure_chains(void) {
  const struct {
    uint32_t kilobytes;
    const char* constants;
  } sizes[] = {{2, "tmu_request tmu_return"},
               {4, "tmu_request tmu_return"},
               {8, "tmu_request tmu_return"},
               {12, "tmu_request tmu_return l1_bytes"},
               {16, "tmu_request tmu_return l1_bytes"},
               {24, "l2_latency tmu_return l1_bytes"},
               {32, "l2_latency tmu_return l1_bytes"},
               {64, "l2_latency tmu_return"},
               {96, "l2_latency tmu_return l2_bytes"},
               {128, "l2_latency tmu_return l2_bytes"},
               {192, "dram_latency l2_latency l2_bytes"},
               {256, "dram_latency l2_latency l2_bytes"},
               {512, "dram_latency l2_latency"},
               {1024, "dram_latency l2_latency"},
               {2048, "dram_latency l2_latency"},
               {4096, "dram_latency mmu_lines"},
               {8192, "dram_latency page_walk mmu_lines"},
               {16384, "dram_latency page_walk mmu_lines"},
               {65536, "dram_latency page_walk"}};
  for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes && wanted("chase"); ++i) {
    struct row row = {.name = "chase",
                      .unit = sizes[i].kilobytes <= 128 ? CLOCKS : NANOSECONDS,
                      .constants = sizes[i].constants};
    snprintf(row.parameters, sizeof row.parameters, "\"kilobytes\": %u", sizes[i].kilobytes);
    make_chain(sizes[i].kilobytes * 16, 64);
    measure_chain(&row, false);
  }
  if (wanted("chase")) {
    struct row row = {.name = "chase", .unit = CLOCKS, .constants = "tmu_request tmu_return"};
    snprintf(row.parameters, sizeof row.parameters, "\"kilobytes\": 2, \"yields\": true");
    make_chain(32, 64);
    measure_chain(&row, true);
  }
  const struct {
    uint32_t stride, lines;
    const char* constants;
  } strides[] = {{1024, 16, "l1_bytes"},
                 {1024, 32, "l2_latency l1_bytes"},
                 {1024, 64, "l2_latency"},
                 {4096, 4, "l1_ways"},
                 {4096, 8, "l1_ways"},
                 {4096, 16, "l1_ways"},
                 {4096, 32, "l2_latency l1_ways l2_bytes"},
                 {4096, 64, "dram_latency l2_bytes"},
                 {16384, 4, "l1_ways"},
                 {16384, 8, "l1_ways"},
                 {16384, 16, "l1_ways"},
                 {16384, 32, "dram_latency l1_ways l2_bytes"},
                 {65536, 4, "l1_ways"},
                 {65536, 8, "l1_ways"},
                 {65536, 16, "l1_ways"},
                 {65536, 32, "dram_latency l1_ways"},
                 {65536, 64, "dram_latency mmu_lines"},
                 {65536, 128, "page_walk dram_latency mmu_lines"},
                 {65536, 256, "page_walk dram_latency"}};
  for (uint32_t i = 0; i < sizeof strides / sizeof *strides && wanted("stride"); ++i) {
    struct row row = {.name = "stride",
                      .unit = strides[i].stride < 16384 ? CLOCKS : NANOSECONDS,
                      .constants = strides[i].constants};
    snprintf(row.parameters, sizeof row.parameters, "\"bytes\": %u, \"lines\": %u", strides[i].stride,
             strides[i].lines);
    make_chain(strides[i].lines, strides[i].stride);
    measure_chain(&row, false);
  }
}

/// Lines that share a set of the L2T if it has any of 16 KiB or less between them, and others that drive them
/// out of the TMU's cache.
static void measure_ways(void) {
  enum { OTHERS = 2 << 20 };
  for (uint32_t lines = 4; lines <= 20 && wanted("ways"); lines += lines < 12 ? 2 : 4) {
    chain_length = 0;
    for (uint32_t i = 0; i < lines; ++i) chain[chain_length++] = i << 15;
    for (uint32_t i = 0; i < 64; ++i)
      if (i % 16 != 0) chain[chain_length++] = OTHERS + (i << 10);
    link_chain();
    struct row row = {.name = "ways", .unit = CLOCKS, .constants = "l2_ways l2_latency"};
    snprintf(row.parameters, sizeof row.parameters, "\"lines\": %u, \"others\": 60", lines);
    measure_chain(&row, false);
  }
}

/// Configurations of lookups: of words of each lane.
static const uint32_t kOneWord = 0xffffffff, kFourWords = 0xfffffffc;

static uint32_t words_of(const struct loop* loop) {
  return (loop->configuration & 7) == 7 ? 1 : loop->configuration & 7;
}

/// Of what was read; a lane's words, from its address on, in each of the lookups of a turn.
static uint32_t expect_sum(const struct loop* loop, uint32_t run, uint32_t batch, uint32_t lane) {
  uint32_t lookups = 0, sum = 0;
  for (uint32_t i = 0; i < MAX_PIECES && loop->pieces[i].snippet; ++i)
    if (loop->pieces[i].snippet == &S_lookup || loop->pieces[i].snippet == &S_lookup_and_step ||
        loop->pieces[i].snippet == &S_lookup_and_yield)
      lookups += loop->pieces[i].times;
  uint32_t at = loop->address - data_bo.address + batch * loop->thread_bytes + lane * loop->lane_bytes;
  for (uint32_t i = 0; i < copies_in_all(loop, run) * lookups; ++i, at += loop->step_bytes)
    for (uint32_t word = 0; word < words_of(loop); ++word) sum += pattern(at / 4 + word);
  return sum;
}

static void fill(uint32_t from, uint32_t bytes) {
  uint32_t* const words = (uint32_t*)(void*)data_bo.map;
  for (uint32_t i = from / 4; i < (from + bytes) / 4; ++i) words[i] = pattern(i);
}

/// Lookups that do not wait for each other and find all in the TMU's cache; of each slice.
static void measure_lookups(void) {
  const uint32_t turns = amount(3000, 16);
  fill(0, 1 << 17);
  for (uint32_t all = 0; all < 2; ++all) {
    const uint32_t batches = all ? 2 * device.qpus : 1;
    const double share = all ? 2.0 * device.qpus / device.slices : 1;
    for (uint32_t words = 1; words <= 4 && wanted("lookup"); ++words) {
      const struct loop loop = {.pieces = {{&S_configure, words > 1},
                                           {&S_lookup, 1},
                                           {&S_configure, words > 1},
                                           {&S_lookup_and_yield, 1},
                                           {&S_take, 2 * words}},
                                .copies = {4, 20},
                                .turns = {turns, turns},
                                .batches = batches,
                                .address = data_bo.address,
                                .lane_bytes = words == 3 ? 16 : 4 * words,  // 4.2 keeps to 16 bytes

                                .configuration = words == 1 ? kOneWord : 0xfffffff8u | words,
                                .expected = expect_sum};
      struct row row = {.name = "lookup",
                        .unit = CLOCKS,
                        .work = 2 * share,
                        .constants = all ? "tmu_quad_words" : "tmu_return tmu_request tmu_quad_words"};
      snprintf(row.parameters, sizeof row.parameters, "\"words\": %u, \"threads\": %u", words, batches);
      measure_loop(&row, &loop);
    }
    const uint32_t strides[] = {0, 4, 16, 64, 256, 4096};
    for (uint32_t i = 0; i < sizeof strides / sizeof *strides && wanted("gather"); ++i) {
      const struct loop loop = {.pieces = {{&S_lookup, 3}, {&S_lookup_and_yield, 1}, {&S_take, 4}},
                                .copies = {4, 20},
                                .turns = {turns, turns},
                                .batches = batches,
                                .address = data_bo.address,
                                .lane_bytes = strides[i],
                                .configuration = kOneWord,
                                .expected = expect_sum};
      struct row row = {.name = "gather",
                        .unit = CLOCKS,
                        .work = 4 * share,
                        .constants = strides[i] < 4096 ? "tmu_quad_words" : "tmu_quad_words l1_ways"};
      snprintf(row.parameters, sizeof row.parameters, "\"lane_bytes\": %u, \"threads\": %u", strides[i],
               batches);
      measure_loop(&row, &loop);
    }
  }
}

/// Whether lanes' words are where a loop stored them: each has the place of its thread's result.
static bool stored(const struct loop* loop, uint32_t bytes) {
  const uint32_t* const words = (const uint32_t*)(const void*)(data_bo.map + SECOND_DATA);
  const uint32_t results = code_bo.address + (uint32_t)((uint8_t*)results_of(1) - code_bo.map);
  for (uint32_t at = 0; at < bytes; at += amount(4100, 4)) {
    const uint32_t batch = at / loop->thread_bytes % loop->batches,
                   lane = at % loop->thread_bytes / loop->lane_bytes;
    if (words[at / 4] != results + 64 * batch + 4 * lane) return false;
  }
  return true;
}

static bool copied(uint32_t bytes) {
  const uint32_t* const words = (const uint32_t*)(const void*)(data_bo.map + SECOND_DATA);
  for (uint32_t at = 0; at < bytes; at += amount(4100, 4))
    if (words[at / 4] != pattern(at / 4)) return false;
  return true;
}

/// Memory read, written and copied, 256 B of a thread beside those of the next one.
struct stream {
  const char* name;
  struct piece pieces[MAX_PIECES];
  uint32_t lookups;       ///< of a turn
  uint32_t most_threads;  ///< of a QPU
  const char *constants_of_few, *constants_of_many;
};
static const struct stream kRead = {
    "read",
    {{&S_configure, 1}, {&S_lookup_and_step, 1}, {&S_configure, 1}, {&S_lookup_and_yield, 1}, {&S_take, 8}},
    2,
    2,
    "dram_latency l2_latency tmu_return",
    "dram_read tmu_misses l2_misses axi_bytes"};
static const struct stream kWrite = {"write",
                                     {{&S_configure, 1}, {&S_store_word, 4}, {&S_store_and_step, 1}},
                                     1,
                                     1,
                                     "instruction dram_write",
                                     "dram_write"};
static const struct stream kCopy = {
    "copy",
    {{&S_configure, 1}, {&S_lookup_and_yield, 1}, {&S_configure, 1}, {&S_pass, 4}, {&S_store_and_step, 1}},
    1,
    2,
    "dram_latency l2_latency tmu_return",
    "dram_read dram_write"};

static void measure_stream(const struct stream* stream, uint32_t threads) {
  const uint32_t turn = threads * 256 * stream->lookups;
  struct loop loop = {.copies = {1, 1},
                      .turns = {amount(4 << 20, 1 << 18) / turn, amount(30 << 20, 3 << 18) / turn},
                      .batches = threads,
                      .address = data_bo.address,
                      .second_address = data_bo.address + SECOND_DATA,
                      .lane_bytes = 16,
                      .thread_bytes = 256,
                      .step_bytes = 256 * threads,
                      .configuration = kFourWords,
                      .expected = stream == &kRead ? expect_sum : NULL};
  memcpy(loop.pieces, stream->pieces, sizeof loop.pieces);
  struct row row = {.name = stream->name, .unit = MEGABYTES, .work = turn};
  row.constants = 2 * threads < device.qpus ? stream->constants_of_few : stream->constants_of_many;
  snprintf(row.parameters, sizeof row.parameters, "\"threads\": %u", threads);
  if (stream != &kRead) {
    const uint32_t bytes = turn * loop.turns[1];
    struct run run;
    memset(data_bo.map + SECOND_DATA, 0, bytes);
    prepare_loop(&loop, 1, &run);
    seconds_of(&run);
    row.wrong = stream == &kWrite ? !stored(&loop, bytes) : !copied(bytes);
  }
  measure_loop(&row, &loop);
}

static void measure_streams(void) {
  const struct stream* const streams[] = {&kRead, &kWrite, &kCopy};
  fill(0, amount(SECOND_DATA, 1 << 20));
  for (uint32_t i = 0; i < sizeof streams / sizeof *streams; ++i)
    for (uint32_t threads = 1; threads <= streams[i]->most_threads * device.qpus && wanted(streams[i]->name);
         threads = threads < device.qpus && 2 * threads > device.qpus ? device.qpus : 2 * threads)
      measure_stream(streams[i], threads);
}
