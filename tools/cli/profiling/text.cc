/// @file A profile for the terminal.
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_format.h"
#include "gpu/perf/timing/events.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {
namespace {

using timing::Prediction;
using timing::share;

constexpr size_t kMostJobs = 10, kMostFrames = 5, kMostShaders = 5, kMostInstructions = 5, kMostDraws = 5;

double percent(uint64_t part, uint64_t whole) { return 100 * share(part, whole); }
double ms(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }
double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// The largest first, of equals the earlier one; no more than `most`.
template <typename T, typename Size>
std::vector<const T*> largest(const std::vector<T>& values, size_t most, const Size& size) {
  std::vector<const T*> order;
  order.reserve(values.size());
  for (const T& value : values) order.push_back(&value);
  std::stable_sort(order.begin(), order.end(), [&](const T* a, const T* b) { return size(*a) > size(*b); });
  if (order.size() > most) order.resize(most);
  return order;
}

std::string stalls_text(const Stalls& stalls, uint64_t whole) {
  std::string text;
  for (size_t n = 0; n < stalls.size(); ++n)
    if (stalls[n] != 0)
      absl::StrAppendFormat(&text, "%s%s %.1f %%", text.empty() ? "" : ", ",
                            timing::stall_name(static_cast<timing::Stall>(n)), percent(stalls[n], whole));
  return text.empty() ? "none" : text;
}

/// Sums over all jobs that have a prediction.
struct Totals {
  explicit Totals(const Profile& profile) {
    for (const Job& job : profile.jobs) {
      const auto kind = static_cast<size_t>(job.kind);
      ++jobs[kind];
      if (!job.predicted) continue;
      ++predicted[kind];
      busy_ns[kind] += job.gpu_ns();
      bound_ns[job.times.bound()] += job.gpu_ns();
      add(job.times);
    }
    all_ns = std::accumulate(busy_ns.begin(), busy_ns.end(), uint64_t{0});
  }

  void add(const Prediction& p) {
    const auto slots = p.clocks * static_cast<uint64_t>(p.qpus);
    qpu_clocks += slots;
    instructions += p.instructions;
    resident += p.resident;
    waiting += p.waiting;
    for (size_t n = 0; n < stalls.size(); ++n) stalls[n] += p.stalls[n];
    const timing::MemoryCounts& m = p.memory;
    dram_read += m.all_read();
    dram_written += m.all_written();
    l2_read += timing::kLineBytes * (m.hits() + m.misses());
    l2_written += timing::kLineBytes * m.l2_writes;
    tiles_loaded += m.tile_loaded;
    tiles_stored += m.tile_stored;
    lists_read += m.list_read;
    lists_written += m.list_written;
    l1_hits += m.l1_hits;
    l1_all += m.l1_hits + m.l1_misses;
  }

  std::array<uint64_t, kKinds> jobs{}, predicted{}, busy_ns{};
  std::map<timing::Bound, uint64_t> bound_ns;
  uint64_t all_ns = 0, qpu_clocks = 0, instructions = 0, resident = 0, waiting = 0;
  Stalls stalls{};
  uint64_t dram_read = 0, dram_written = 0, l2_read = 0, l2_written = 0, l1_hits = 0, l1_all = 0;
  uint64_t tiles_loaded = 0, tiles_stored = 0, lists_read = 0, lists_written = 0;
};

std::string head(const Profile& profile, const Totals& totals) {
  const uint64_t end_ns = profile.end_ns();
  std::string text = absl::StrFormat(
      "%s, %s\njobs: %d, predicted: %d; all queues together take %.3f ms\n\n%-8s %6s %10s %12s %7s\n",
      profile.board, profile.description, profile.jobs.size(),
      std::accumulate(totals.predicted.begin(), totals.predicted.end(), uint64_t{0}), ms(end_ns), "queue",
      "jobs", "predicted", "busy ms", "busy");
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (totals.jobs[kind] != 0)
      absl::StrAppendFormat(&text, "%-8s %6d %10d %12.3f %5.1f %%\n", kind_name(static_cast<Kind>(kind)),
                            totals.jobs[kind], totals.predicted[kind], ms(totals.busy_ns[kind]),
                            percent(totals.busy_ns[kind], end_ns));
  return text;
}

std::string units(const Totals& t) {
  std::string text = "\nbound by";
  for (const auto& [bound, ns] : t.bound_ns)
    absl::StrAppendFormat(&text, " %s %.1f %%", timing::bound_name(bound), percent(ns, t.all_ns));
  absl::StrAppendFormat(
      &text,
      " of the time of jobs\nQPUs: issue %.1f %%, %.2f threads each; stalls: %s; all threads wait %.1f %%\n",
      percent(4 * t.instructions, t.qpu_clocks), share(t.resident, t.qpu_clocks),
      stalls_text(t.stalls, t.qpu_clocks), percent(t.waiting, t.qpu_clocks));
  absl::StrAppendFormat(
      &text, "MiB: DRAM %.2f read, %.2f written; L2T %.2f read, %.2f written; TMU caches hit %.1f %%\n",
      mib(t.dram_read), mib(t.dram_written), mib(t.l2_read), mib(t.l2_written), percent(t.l1_hits, t.l1_all));
  if (t.tiles_loaded + t.tiles_stored + t.lists_read + t.lists_written != 0)
    absl::StrAppendFormat(&text,
                          "  of DRAM's: tiles %.2f loaded, %.2f stored; lists %.2f read, %.2f written\n",
                          mib(t.tiles_loaded), mib(t.tiles_stored), mib(t.lists_read), mib(t.lists_written));
  return text;
}

std::string frames(const Profile& profile) {
  if (profile.frames.empty()) return "";
  const auto duration = [](const Frame& f) { return f.end_ns - f.begin_ns; };
  const char* what = profile.frames_are_submissions ? "submissions" : "frames";
  std::string text = absl::StrFormat(
      "\n%d %s, one each %.3f ms; the slowest from begin to end:\n%8s %6s %12s %12s %12s %10s\n",
      profile.frames.size(), what, ms(profile.end_ns()) / static_cast<double>(profile.frames.size()),
      "number", "jobs", "ms", "bin ms", "render ms", "DRAM MiB");
  for (const Frame* f : largest(profile.frames, kMostFrames, duration))
    absl::StrAppendFormat(&text, "%8d %6d %12.3f %12.3f %12.3f %10.2f\n", f->number, f->jobs,
                          ms(duration(*f)), ms(f->busy_ns[0]), ms(f->busy_ns[1]), mib(f->dram_bytes));
  return text;
}

std::string slowest_jobs(const Profile& profile) {
  const auto order = largest(profile.jobs, kMostJobs, [](const Job& job) { return job.gpu_ns(); });
  if (order.empty() || !order.front()->predicted) return "";
  std::string text =
      absl::StrFormat("\nslowest jobs\n%6s %-8s %6s %6s %12s  %-8s %7s %7s %7s %7s\n", "job", "queue",
                      "client", "frame", "ms", "bound by", "QPU", "TMU", "L2T", "DRAM");
  for (const Job* job : order) {
    if (!job->predicted) break;
    const Prediction& p = job->times;
    absl::StrAppendFormat(&text, "%6d %-8s %6d %6d %12.3f  %-8s %5.1f %% %5.1f %% %5.1f %% %5.1f %%\n",
                          job->number, kind_name(job->kind), job->client, job->frame, ms(job->gpu_ns()),
                          timing::bound_name(p.bound()), 100 * p.qpu_share(), 100 * p.tmu_share(),
                          100 * p.l2_share(), 100 * p.dram_share());
  }
  return text;
}

/// A draw, and the job that it is in.
struct PlacedDraw {
  const Job* job;
  const Draw* draw;
};

std::string slowest_draws(const Profile& profile) {
  std::vector<PlacedDraw> draws;
  for (const Job& job : profile.jobs)
    for (const Draw& draw : job.draws) draws.push_back({&job, &draw});
  if (draws.empty()) return "";
  std::string text = absl::StrFormat("\nslowest draws\n%6s %-8s %6s %10s %10s %10s %14s\n", "job", "queue",
                                     "draw", "vertices", "primitives", "quads", "QPU clocks");
  for (const PlacedDraw* d : largest(draws, kMostDraws, [](const PlacedDraw& d) { return d.draw->clocks; }))
    absl::StrAppendFormat(&text, "%6d %-8s %6d %10d %10d %10d %14d\n", d->job->number,
                          kind_name(d->job->kind), d->draw->number, d->draw->vertices, d->draw->primitives,
                          d->draw->quads, d->draw->clocks);
  return text;
}

std::string instructions(const Shader& shader) {
  const auto time = [](const Instruction& i) { return qpu_clocks(i.issued, i.stalls); };
  const uint64_t whole = qpu_clocks(shader.instructions, shader.stalls);
  std::string text;
  for (const Instruction* i : largest(shader.at, kMostInstructions, time)) {
    if (i->issued == 0) break;
    absl::StrAppendFormat(&text, "    %5.1f %%  %5d  %s  (%d times; stalls: %s)\n", percent(time(*i), whole),
                          i - shader.at.data(), i->text, i->issued, stalls_text(i->stalls, time(*i)));
  }
  return text;
}

std::string hottest_shaders(const Profile& profile) {
  const auto time = [](const Shader& s) { return qpu_clocks(s.instructions, s.stalls); };
  uint64_t whole = 0;
  for (const Shader& shader : profile.shaders) whole += time(shader);
  std::string text = profile.shaders.empty() ? "" : "\nhottest shaders, of the clocks of QPUs that run any\n";
  for (const Shader* s : largest(profile.shaders, kMostShaders, time)) {
    absl::StrAppendFormat(&text, "  %5.1f %%  %s: %d jobs, %d batches, %d instructions; stalls: %s\n",
                          percent(time(*s), whole), s->name, s->jobs, s->batches, s->instructions,
                          stalls_text(s->stalls, time(*s)));
    text += instructions(*s);
  }
  return text;
}

std::string without_prediction(const Profile& profile) {
  std::map<std::pair<Kind, std::string>, uint64_t> reasons;
  for (const Job& job : profile.jobs)
    if (!job.predicted) ++reasons[{job.kind, job.no_prediction}];
  std::string text = reasons.empty() ? "" : "\nwithout prediction, and taken as nothing\n";
  for (const auto& [reason, count] : reasons)
    absl::StrAppendFormat(&text, "  %d %s: %s\n", count, kind_name(reason.first), reason.second);
  return text;
}

}  // namespace

std::string to_text(const Profile& profile) {
  const Totals totals(profile);
  std::string text = head(profile, totals);
  if (totals.all_ns != 0) text += units(totals);
  return text + frames(profile) + slowest_jobs(profile) + slowest_draws(profile) + hottest_shaders(profile) +
         without_prediction(profile);
}

}  // namespace v3d::tools::profiling
