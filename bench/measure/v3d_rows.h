/// A row says how often a job is run and what is printed of it.
#pragma once

#include "v3d_device.h"

/// Counted up when rows of a name mean something else than before.
enum { FORMAT = 1 };
enum { MAX_REPETITIONS = 101 };

/// One of the two runs of a row: a job, submitted `times` times before it is waited for.
struct run {
  enum { DISPATCH, TRANSFER, FRAME } kind;
  uint32_t times;
  uint32_t cfg[7];
  struct submit_tfu_args tfu;
  struct submit_cl_args cl;
};

/// Each of the two runs of a row has half of the buffers of code and lists.
enum { CODE_BYTES = 1 << 18, UNIFORM_BYTES = 1 << 16, RESULT_BYTES = 1 << 16, LIST_BYTES = 1 << 21 };
enum { DATA_BYTES = 64 << 20, SECOND_DATA = 32 << 20, STREAM_UNIFORMS = 48 << 20, STREAM_BYTES = 8 << 20 };
/// Of the buffer of lists.
enum { RENDER_LIST = 4096, TILE_LIST = 32768, TILE_STATE = 65536, TILE_MEMORY = 262144 };

static struct device device;
static struct bo code_bo, list_bo, data_bo;
static bool quick;         ///< amounts that the emulator runs in seconds, and each once
static const char* only;   ///< names of rows begin so
static double clock_mhz;   ///< as the first row says
static uint32_t num_jobs;  ///< submitted so far, as v3demu replay counts them: a frame is two
static bool all_right = true;

static uint32_t chip(void) { return device.version >= 71 ? 0 : 1; }
static uint32_t amount(uint32_t full, uint32_t reduced) { return quick ? reduced : full; }
static uint32_t at_most(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t at_least(uint32_t a, uint32_t b) { return a > b ? a : b; }

/// CFG0 to CFG6 (v3d_regs.h). The batches are one supergroup, so that all of them can be on the QPUs
/// together.
static void set_dispatch(struct run* run, uint32_t code, uint32_t uniforms, uint32_t batches, bool alone) {
  const uint32_t per_workgroup = batches <= 16 ? 1 : batches / device.qpus;
  const uint32_t workgroups = batches / per_workgroup;
  const bool exact = device.version >= 71 && device.revision >= 6;
  run->kind = DISPATCH;
  run->times = 1;
  run->cfg[0] = workgroups << 16;
  run->cfg[1] = run->cfg[2] = 1u << 16;
  run->cfg[3] = 16 * per_workgroup | (alone ? 1 : workgroups & 15) << 8 | (alone ? 0 : batches - 1) << 12;
  run->cfg[4] = exact ? batches : batches - 1;
  run->cfg[5] = code | (batches > 2 * device.qpus);  // four threads of a QPU, or two
  run->cfg[6] = uniforms;
}

/// 0, or the errno of the kernel's refusal.
static int try_submit(const struct run* run) {
  const uint32_t handles[] = {code_bo.handle, data_bo.handle, list_bo.handle};
  int result;
  if (run->kind == TRANSFER) {
    struct submit_tfu_args tfu = run->tfu;
    tfu.bo_handles[0] = data_bo.handle;
    result = call(device.fd, IOCTL_SUBMIT_TFU, &tfu);
  } else if (run->kind == FRAME) {
    struct submit_cl_args cl = run->cl;
    cl.bo_handles = (uintptr_t)handles;
    cl.bo_handle_count = 3;
    result = call(device.fd, IOCTL_SUBMIT_CL, &cl);
  } else {
    struct submit_csd_args csd = {.bo_handles = (uintptr_t)handles, .bo_handle_count = 2};
    memcpy(csd.cfg, run->cfg, sizeof csd.cfg);
    result = call(device.fd, IOCTL_SUBMIT_CSD, &csd);
  }
  if (result != 0) return errno;
  num_jobs += run->kind == FRAME ? 2 : 1;
  return 0;
}

static void submit(const struct run* run) {
  const int refused = try_submit(run);
  if (refused != 0) fail("a job is refused: %s", strerror(refused));
}

static double seconds_of(const struct run* run) {
  const double start = now();
  for (uint32_t i = 0; i < run->times; ++i) submit(run);
  wait_bo(&device, &data_bo);
  return now() - start;
}

// ---- Rows

enum unit { CLOCKS, NANOSECONDS, MICROSECONDS, MEGABYTES, PICOSECONDS, MEGAHERTZ };
static const char* const kUnits[] = {"clk", "ns", "us", "MB/s", "ps/B", "MHz"};

struct row {
  const char* name;
  char parameters[96];  ///< members of a JSON object
  enum unit unit;
  double work;            ///< that the second run does more than the first one, if there is one
  const char* constants;  ///< of v3demu timing that the row depends on
  uint32_t repetitions;   ///< 0: the usual ones
  bool wrong;             ///< results are not those expected
};

static bool wanted(const char* name) { return !only || strncmp(name, only, strlen(only)) == 0; }

static double value_of(enum unit unit, double seconds, double work) {
  switch (unit) {
    case CLOCKS:
      return seconds / work * clock_mhz * 1e6;
    case NANOSECONDS:
      return seconds / work * 1e9;
    case MICROSECONDS:
      return seconds / work * 1e6;
    case MEGABYTES:
      return work / seconds * 1e-6;
    case PICOSECONDS:
      return seconds / work * 1e12;
    case MEGAHERTZ:
      return work / seconds * 1e-6;
  }
  return 0;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/// Rows of the output, with their median.
static double print_row(const struct row* row, double* values, uint32_t count, const uint32_t jobs[4]) {
  static bool later;
  qsort(values, count, sizeof *values, compare);
  const double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
  fprintf(stderr, "%-14s %-34s %12.3f %-5s %12.3f %12.3f%s\n", row->name, row->parameters, median,
          kUnits[row->unit], values[0], values[count - 1], row->wrong ? "  WRONG RESULTS" : "");
  printf("%s\n    {\"name\": \"%s\", \"parameters\": {%s}, \"unit\": \"%s\", \"right\": %s,\n     ",
         later ? "," : "", row->name, row->parameters, kUnits[row->unit], row->wrong ? "false" : "true");
  printf("\"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"repetitions\": %u,\n     ", median, values[0],
         values[count - 1], count);
  printf("\"constants\": \"%s\", \"work\": %.17g, \"jobs\": [[%u, %u], [%u, %u]]}", row->constants, row->work,
         jobs[0], jobs[1], jobs[2], jobs[3]);
  fflush(stdout);
  later = true;
  if (row->wrong) all_right = false;
  return median;
}

/// Runs less and more in turns. @param less  null: the row is what `more` takes
static double measure(const struct row* row, const struct run* less, const struct run* more) {
  double values[MAX_REPETITIONS];
  uint32_t jobs[4] = {0};
  const uint32_t count = quick ? 1 : row->repetitions ? row->repetitions : 7;
  if (!quick) {
    if (less) seconds_of(less);
    seconds_of(more);
  }
  for (uint32_t i = 0; i < count; ++i) {
    jobs[0] = num_jobs;
    const double few = less ? seconds_of(less) : 0;
    jobs[1] = jobs[2] = num_jobs;
    const double many = seconds_of(more);
    jobs[3] = num_jobs;
    const double seconds = many - few;
    values[i] = value_of(row->unit, seconds == 0 ? 1e-9 : seconds, row->work);
  }
  return print_row(row, values, count, jobs);
}
