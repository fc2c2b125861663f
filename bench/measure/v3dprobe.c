/// @file v3dprobe: what a Raspberry Pi's GPU computes where no source tells (questions), and how long it
/// takes for small pieces of work (rows), from which assumptions and constants of v3demu follow. Build and
/// run it on the board; send what it prints (docs/recording.md).
///
///     cc -O2 -o v3dprobe v3dprobe.c && ./v3dprobe > board.json
///
/// Most rows are the difference of two runs, one of which does more of the same, divided by how much more:
/// what both have in common (the submit, the launch, caches that are cold) is in none. Times are those of the
/// CPU's clock around submit and wait.

#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <sys/utsname.h>

#include "v3d_lookups.h"
#include "v3d_loops.h"
#include "v3d_questions.h"

static uint32_t expect_count(const struct loop* loop, uint32_t run, uint32_t batch, uint32_t lane) {
  (void)batch, (void)lane;
  return copies_in_all(loop, run);
}

/// 7.1 and 4.2 take four clocks for an instruction: what an ALU loop takes is the clock.
static void measure_clock(const char* when) {
  const uint32_t turns = amount(20000, 20);
  const struct loop loop = {
      .pieces = {{&S_count, 1}}, .copies = {64, 192}, .turns = {turns, turns}, .expected = expect_count};
  struct row row = {.name = "clock", .unit = MEGAHERTZ, .work = 4, .constants = "instruction"};
  snprintf(row.parameters, sizeof row.parameters, "\"when\": \"%s\"", when);
  const double mhz = measure_loop(&row, &loop);
  if (clock_mhz == 0) clock_mhz = mhz;
}

static void measure_instructions(void) {
  const struct {
    const char *name, *key, *value;
    struct piece pieces[MAX_PIECES];
    const char* constants;
  } rows[] = {
      {"sfu", "used", "next", {{&S_sfu_next, 1}}, "sfu_stall"},
      {"sfu", "used", "later", {{&S_sfu_later, 1}}, "instruction"},
      {"rep", "used", "next", {{&S_rep_next, 1}}, "rep_stall"},
      {"rep", "used", "later", {{&S_rep_later, 1}}, "instruction"},
      {"rotation", "used", "next", {{&S_rotate_next, 1}}, "sfu_stall"},
      {"rotation", "used", "later", {{&S_rotate_later, 1}}, "instruction"},
      {"product", "of", "an element", {{&S_product, 1}}, "rep_stall"},
      {"alu", "operations", "two", {{&S_two_operations, 1}}, "instruction"},
  };
  const uint32_t turns = amount(20000, 20);
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (!wanted(rows[i].name)) continue;
    struct loop loop = {.copies = {16, 80}, .turns = {turns, turns}};
    memcpy(loop.pieces, rows[i].pieces, sizeof loop.pieces);
    struct row row = {.name = rows[i].name, .unit = CLOCKS, .work = 1, .constants = rows[i].constants};
    snprintf(row.parameters, sizeof row.parameters, "\"%s\": \"%s\"", rows[i].key, rows[i].value);
    measure_loop(&row, &loop);
  }
  for (uint32_t threads = 1; threads <= 4 && wanted("switch"); threads *= 2) {
    const struct loop loop = {.pieces = {{&S_yield, 1}},
                              .copies = {16, 48},
                              .turns = {turns / 2, turns / 2},
                              .batches = threads * device.qpus};
    struct row row = {.name = "switch", .unit = CLOCKS, .work = threads, .constants = "thread_switch"};
    snprintf(row.parameters, sizeof row.parameters, "\"threads_of_a_qpu\": %u", threads);
    measure_loop(&row, &loop);
  }
  if (wanted("supergroups")) {
    // Copies and turns of the first run, one supergroup, are those of each of the others.
    struct loop loop = {
        .pieces = {{&S_count, 1}}, .copies = {64, 64}, .turns = {turns, turns}, .expected = expect_count};
    struct run one, all;
    struct row row = {.name = "supergroups",
                      .unit = CLOCKS,
                      .work = (device.qpus - 1) * 69.0 * turns,
                      .constants = "supergroups"};
    snprintf(row.parameters, sizeof row.parameters, "\"supergroups\": %u", device.qpus);
    prepare_loop(&loop, 0, &one);
    loop.batches = device.qpus;
    loop.supergroups = true;
    prepare_loop(&loop, 1, &all);
    seconds_of(&all);
    row.wrong = !right(&loop, 1);
    measure(&row, &one, &all);
  }
}

static void measure_code(void) {
  const uint32_t kilobytes[] = {2, 4, 6, 8, 16, 32, 64};
  for (uint32_t i = 0; i < sizeof kilobytes / sizeof *kilobytes && wanted("code"); ++i)
    for (uint32_t all = 0; all < 2; ++all) {
      const uint32_t copies = kilobytes[i] * 128 - S_again.count[chip()];
      const uint32_t turns = amount(4000000 / copies, 2), batches = all ? device.qpus : 1;
      const struct loop loop = {
          .pieces = {{&S_idle, 1}}, .copies = {copies, copies}, .turns = {2, 2 + turns}, .batches = batches};
      struct row row = {.name = "code",
                        .unit = CLOCKS,
                        .work = 128.0 * kilobytes[i] / copies,
                        .constants = kilobytes[i] < 4    ? "instruction"
                                     : kilobytes[i] == 4 ? "code_bytes"
                                     : kilobytes[i] <= 8 ? "l2_latency code_bytes"
                                                         : "l2_latency"};
      snprintf(row.parameters, sizeof row.parameters, "\"kilobytes\": %u, \"qpus\": %u", kilobytes[i],
               batches);
      measure_loop(&row, &loop);
    }
}

static uint32_t expect_uniforms(const struct loop* loop, uint32_t run, uint32_t batch, uint32_t lane) {
  (void)batch, (void)lane;
  const uint32_t pass = loop->copies[run] * loop->turns[run];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < copies_in_all(loop, run); ++i) sum += pattern(HEAD_UNIFORMS + i % pass);
  return sum;
}

/// A stream of uniforms, or some that are read again and again.
static void measure_uniforms(void) {
  const uint32_t kilobytes[] = {0, 1, 2, 3, 5, 8, 16};
  for (uint32_t i = 0; i < sizeof kilobytes / sizeof *kilobytes && wanted("uniforms"); ++i) {
    struct loop loop = {
        .pieces = {{&S_uniform, 1}}, .copies = {64, 64}, .stream = true, .expected = expect_uniforms};
    for (uint32_t run = 0; run < 2; ++run) {
      loop.turns[run] = kilobytes[i] ? 4 * kilobytes[i] : amount(run ? 20000 : 5000, run ? 40 : 10);
      if (kilobytes[i]) loop.passes[run] = run ? 2 + amount(20000, 128) / loop.turns[run] : 2;
      const uint32_t words = loop.copies[run] * loop.turns[run];
      uint32_t* const stream = (uint32_t*)(void*)(data_bo.map + STREAM_UNIFORMS + run * STREAM_BYTES);
      for (uint32_t word = HEAD_UNIFORMS; word < HEAD_UNIFORMS + words; ++word) stream[word] = pattern(word);
      stream[HEAD_UNIFORMS + words] = 0u - 4 * (words + 1);  // over those of a pass and itself
    }
    struct row row = {.name = "uniforms", .unit = CLOCKS, .work = 1};
    row.constants = kilobytes[i] == 0  ? "dram_latency l2_latency"
                    : kilobytes[i] < 4 ? "uniform_bytes"
                                       : "l2_latency uniform_bytes";
    if (kilobytes[i] == 0)
      snprintf(row.parameters, sizeof row.parameters, "\"order\": \"a stream\"");
    else
      snprintf(row.parameters, sizeof row.parameters, "\"order\": \"again\", \"kilobytes\": %u",
               kilobytes[i]);
    measure_loop(&row, &loop);
  }
}

// ---- Rows of the other queues, and of submits

/// An image of 32-bit texels, from rows to UIF. Registers: Mesa src/broadcom/common/v3d_tfu.h.
static struct run transfer(uint32_t side) {
  enum { R32F = 29, UIF = 6 };
  struct run run = {.kind = TRANSFER, .times = 1};
  run.tfu.iia = data_bo.address;
  run.tfu.iis = side;
  run.tfu.ios = side << 16 | side;
  if (device.version >= 71) {
    run.tfu.icfg = R32F << 16;
    run.tfu.ioa = data_bo.address + SECOND_DATA;
    run.tfu.ioc = UIF << 12 | side / 8 << 16;
  } else {
    run.tfu.icfg = R32F << 9;
    run.tfu.ioa = (data_bo.address + SECOND_DATA) | UIF << 3;
  }
  return run;
}

static const struct tile_format kFormats[] = {
    {"rgba8, rows", FORMAT_RGBA8, BUFFER_COLOR, 4, 0, 2, 8, 0, 1, {0x80402010}, {0x80402010}},
    {"rgba8, UIF", FORMAT_RGBA8, BUFFER_COLOR, 4, 8, 2, 8, 0, 1, {0x80402010}, {0x80402010}},
    {"rgba16f, UIF",
     FORMAT_RGBA16F,
     BUFFER_COLOR,
     8,
     4,
     6,
     9,
     1,
     1,
     {0x3c003800, 0x34003000},
     {0x3c003800, 0x34003000}},
    {"d24, UIF", FORMAT_D24S8, BUFFER_DEPTH, 4, 8, 2, 8, 0, 1, {0}, {0xffffff00}},
    {"d32f, UIF", FORMAT_D32F, BUFFER_DEPTH, 4, 8, 2, 8, 0, 0, {0}, {0x3f800000}},
};

/// Whether all pixels that are looked at are the colour that the tile buffer was cleared to.
static bool cleared(const struct frame* f) {
  const uint32_t words = f->format->bytes / 4;
  const uint32_t* const image = (const uint32_t*)(const void*)(data_bo.map + SECOND_DATA);
  for (uint32_t i = 0; i < f->width * f->height * words; i += amount(1025, 1))
    if ((image[i] ^ f->format->stored[i % words]) &
        (f->format->image_format == FORMAT_D24S8 ? 0xffffff00 : 0xffffffff))
      return false;
  return true;
}

static void measure_tiles(void) {
  const uint32_t side = amount(1024, 256);
  for (uint32_t store = 0; store < 2 && wanted("tile"); ++store) {
    struct frame few = {.width = side / 4,
                        .height = side / 4,
                        .format = &kFormats[0],
                        .store = store,
                        .image = data_bo.address + SECOND_DATA};
    struct frame many = few;
    many.width = many.height = side;
    struct run less = frame(0, &few), more = frame(1, &many);
    less.times = more.times = amount(4, 1);
    const uint32_t tiles = tiles_across(&many) * tiles_down(&many) - tiles_across(&few) * tiles_down(&few);
    struct row row = {.name = "tile",
                      .unit = NANOSECONDS,
                      .constants = store ? "tile_start tile_write" : "tile_start",
                      .work = more.times * (double)tiles};
    snprintf(row.parameters, sizeof row.parameters, "\"stored\": %s", store ? "true" : "false");
    measure(&row, &less, &more);
  }
  for (uint32_t i = 0; i < sizeof kFormats / sizeof *kFormats; ++i)
    for (uint32_t load = 0; load < 2; ++load) {
      const char* const name = load ? "tile_load" : "tile_store";
      if (!wanted(name)) continue;
      const struct frame none = {
          .width = side, .height = side, .format = &kFormats[i], .image = data_bo.address + SECOND_DATA};
      struct frame all = none;
      all.load = load;
      all.store = !load;
      struct run less = frame(0, &none), more = frame(1, &all);
      less.times = more.times = amount(4, 1);
      struct row row = {
          .name = name, .unit = PICOSECONDS, .work = more.times * (double)side * side * kFormats[i].bytes};
      row.constants = load ? "dram_read" : kFormats[i].buffer == BUFFER_DEPTH ? "depth_write" : "tile_write";
      snprintf(row.parameters, sizeof row.parameters, "\"format\": \"%s\"", kFormats[i].name);
      if (!load) {
        memset(data_bo.map + SECOND_DATA, 0, side * side * kFormats[i].bytes);
        seconds_of(&more);
        row.wrong = !cleared(&all);
      }
      measure(&row, &less, &more);
    }
}

/// One by one, and queued: the first of `few` hides what a submit takes after the others.
static void measure_submits(const char* name, struct run run, const char* constants) {
  if (!wanted(name)) return;
  struct row one = {.name = name,
                    .parameters = "\"queued\": false",
                    .unit = MICROSECONDS,
                    .work = 1,
                    .constants = constants,
                    .repetitions = MAX_REPETITIONS};
  measure(&one, NULL, &run);
  struct run few = run, many = run;
  few.times = amount(8, 2);
  many.times = amount(264, 6);
  const struct row queued = {.name = name,
                             .parameters = "\"queued\": true",
                             .unit = MICROSECONDS,
                             .work = many.times - few.times,
                             .constants = constants};
  measure(&queued, &few, &many);
}

/// Threads that end at once, in one dispatch.
static void measure_batches(void) {
  if (!wanted("batch")) return;
  const uint32_t groups[] = {amount(64, 4), amount(4064, 20)};
  struct code code = {.words = (uint64_t*)(void*)code_bo.map};
  struct run runs[2];
  put(&code, &S_finish, 1);
  for (uint32_t i = 0; i < 2; ++i) {
    set_dispatch(&runs[i], code_bo.address, 0, 16, false);
    runs[i].cfg[0] = 16 * groups[i] << 16;
    runs[i].cfg[4] += 16 * (groups[i] - 1);
  }
  const struct row row = {.name = "batch",
                          .parameters = "\"batches_of_a_supergroup\": 16",
                          .unit = CLOCKS,
                          .work = 16.0 * (groups[1] - groups[0]),
                          .constants = "batch_launch"};
  measure(&row, &runs[0], &runs[1]);
}

static void measure_transfer(void) {
  if (!wanted("tfu")) return;
  const uint32_t sides[] = {256, amount(2048, 512)};
  fill(0, 4 * sides[1] * sides[1]);
  const struct run few = transfer(sides[0]), many = transfer(sides[1]);
  const struct row row = {.name = "tfu",
                          .parameters = "\"from\": \"rows\", \"to\": \"UIF\"",
                          .unit = MEGABYTES,
                          .work = 4.0 * (sides[1] * sides[1] - sides[0] * sides[0]),
                          .constants = "dram_read dram_write"};
  measure(&row, &few, &many);
}

static void measure_queues(void) {
  struct code code = {.words = (uint64_t*)(void*)code_bo.map};
  struct run nothing;
  put(&code, &S_finish, 1);
  set_dispatch(&nothing, code_bo.address, 0, 1, false);
  measure_submits("dispatch", nothing, "submit");
  measure_submits("transfer", transfer(64), "submit dram_read dram_write");
  const struct frame one = {.width = 64, .height = 64, .format = &kFormats[0]};
  measure_submits("frame", frame(0, &one), "submit");
}

// ---- The program

static void print_text(const char* key, const char* text) {
  printf("  \"%s\": \"", key);
  for (; *text; ++text)
    if (*text >= ' ' && *text != '"' && *text != '\\') putchar(*text);
  printf("\",\n");
}

/// What the firmware says of the clock while the GPU works; 0: nothing.
static double reported_clock(void) {
  const struct loop loop = {.pieces = {{&S_count, 1}}, .copies = {64, 64}, .turns = {amount(200000, 1), 1}};
  struct run run;
  prepare_loop(&loop, 0, &run);
  for (uint32_t i = 0; i < amount(4, 1); ++i) submit(&run);
  double hertz = 0;
  FILE* const answer = popen("vcgencmd measure_clock v3d 2>/dev/null", "r");
  if (answer) {
    if (fscanf(answer, "frequency(%*d)=%lf", &hertz) != 1) hertz = 0;
    pclose(answer);
  }
  wait_bo(&device, &data_bo);
  return hertz * 1e-6;
}

static void print_head(void) {
  char model[128] = "";
  struct utsname kernel;
  FILE* const file = fopen("/proc/device-tree/model", "r");
  if (file) {
    model[fread(model, 1, sizeof model - 1, file)] = 0;
    fclose(file);
  }
  if (uname(&kernel) != 0) fail("uname: %s", strerror(errno));
  printf("{\n  \"program\": \"v3dprobe\",\n  \"format\": %d,\n  \"quick\": %s,\n", FORMAT,
         quick ? "true" : "false");
  print_text("board", model);
  print_text("kernel", kernel.release);
  print_text("machine", kernel.machine);
  printf("  \"chip\": {\"version\": %u, \"revision\": %u, \"slices\": %u, \"qpus\": %u},\n  \"idents\": [",
         device.version, device.revision, device.slices, device.qpus);
  for (uint32_t i = 0; i < NUM_IDENTS; ++i) printf("%s\"0x%08x\"", i ? ", " : "", device.idents[i]);
  printf("],\n  \"reported_mhz\": %.1f,", reported_clock());
  fprintf(stderr, "%s: V3D %u.%u.%u, %u slices, %u QPUs; %s\n%-14s %-34s %12s %-5s %12s %12s\n", device.node,
          device.version / 10, device.version % 10, device.revision, device.slices, device.qpus,
          model[0] ? model : "no model in the device tree", "row", "of", "median", "", "least", "most");
}

static void measure_rows(void) {
  measure_clock("first");
  measure_instructions();
  measure_code();
  measure_uniforms();
  measure_chains();
  measure_ways();
  measure_scatter();
  measure_lookups();
  measure_streams();
  measure_queues();
  measure_batches();
  measure_transfer();
  measure_tiles();
  measure_clock("last");
}

enum { NUM_QUESTIONS = sizeof kQuestions / sizeof *kQuestions };

static void ask_questions(void) {
  for (uint32_t i = 0; i < NUM_QUESTIONS; ++i)
    if (kQuestions[i].of[chip()] && wanted(kQuestions[i].name)) ask(&kQuestions[i], kQuestions[i].of[chip()]);
}

static void list_questions(void) {
  static const char* const kChips[] = {"7.1", "4.2"};
  for (uint32_t i = 0; i < NUM_QUESTIONS; ++i) {
    printf("%s (%s): %s\n", kQuestions[i].name, kQuestions[i].where, kQuestions[i].asks);
    for (uint32_t of = 0; of < 2; ++of) {
      const struct asked* const asked = kQuestions[i].of[of];
      for (uint32_t a = 0; asked && a < asked->alternative_count; ++a)
        printf("  %s  %c %s\n", kChips[of], a == asked->assumed ? '*' : ' ', asked->alternatives[a].name);
    }
  }
}

static _Noreturn void usage(int status) {
  fprintf(status ? stderr : stdout,
          "usage: v3dprobe [--quick] [--rows | --questions] [--only NAME] [--node PATH] > board.json\n"
          "       v3dprobe --list\n"
          "  --quick      little of every row, once: for the emulator\n"
          "  --rows       times alone\n"
          "  --questions  what is computed, alone\n"
          "  --only NAME  rows and questions whose names begin so, and the clock\n"
          "  --node PATH  default: the first of /dev/dri/renderD* that is a V3D\n"
          "  --list       the questions with their answers, of which * is what v3demu's model assumes; no "
          "job is run\n");
  exit(status);
}

int main(int argc, char** argv) {
  const char* node = NULL;
  bool rows = true, questions = true;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--quick") == 0)
      quick = true;
    else if (strcmp(argv[i], "--rows") == 0)
      questions = false;
    else if (strcmp(argv[i], "--questions") == 0)
      rows = false;
    else if (strcmp(argv[i], "--list") == 0)
      return list_questions(), 0;
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (strcmp(argv[i], "--node") == 0 && i + 1 < argc)
      node = argv[++i];
    else
      usage(strcmp(argv[i], "--help") == 0 ? 0 : 2);
  }
  if (!rows && !questions) usage(2);
  device = open_device(node);
  code_bo = make_bo(&device, 2 * (CODE_BYTES + UNIFORM_BYTES + RESULT_BYTES));
  list_bo = make_bo(&device, 2 * LIST_BYTES);
  data_bo = make_bo(&device, DATA_BYTES);
  print_head();
  printf("\n  \"rows\": [");
  if (rows) measure_rows();
  printf("\n  ],\n  \"clock_mhz\": %.2f,\n  \"questions\": [", clock_mhz);
  if (questions) ask_questions();
  printf("\n  ]\n}\n");
  if (!all_right) fprintf(stderr, "some results are not what they must be: send the output all the same\n");
  return all_right ? 0 : 1;
}
