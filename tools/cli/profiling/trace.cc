/// @file A profile in Chrome's trace event format: an event for each job on the track of its queue, its spans
/// on tracks of their own, and counters.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/json_writer.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {

using daemon::JsonWriter;

namespace {

constexpr int kProcess = 1;
/// Room for tracks of spans after that of each queue.
constexpr uint64_t kTracksPerQueue = 32;

double us(uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

class Trace {
 public:
  explicit Trace(const Profile& profile) : profile_(profile) {}

  std::string text() {
    json_.begin_object().field("displayTimeUnit", "ns").key("traceEvents").begin_array();
    metadata("process_name", 0, absl::StrCat(profile_.board, ", predicted"));
    for (size_t kind = 0; kind < kKinds; ++kind) {
      const auto id = (kind + 1) * kTracksPerQueue;
      metadata("thread_name", id, kind_name(static_cast<Kind>(kind)));
      sort_index(id);
    }
    for (const Job& job : profile_.jobs) add(job);
    counters();
    json_.end_array().end_object();
    return json_.take() + "\n";
  }

 private:
  JsonWriter& event(const char* phase, std::string_view name, uint64_t track) {
    json_.on_new_line().begin_object().field("ph", phase).field("name", name).field("pid", kProcess);
    return json_.field("tid", track);
  }
  void metadata(const char* what, uint64_t track, const std::string& name) {
    event("M", what, track).key("args").begin_object().field("name", name).end_object().end_object();
  }
  void sort_index(uint64_t track) {
    event("M", "thread_sort_index", track).key("args").begin_object().field("sort_index", track);
    json_.end_object().end_object();
  }
  JsonWriter& complete(const char* category, std::string_view name, uint64_t track, uint64_t begin_ns,
                       uint64_t end_ns) {
    event("X", name, track).field("cat", category).key("ts").time(begin_ns);
    return json_.key("dur").time(end_ns - begin_ns);
  }

  uint64_t track_of(const Job& job, const std::string& span_track) {
    const auto first = (static_cast<uint64_t>(job.kind) + 1) * kTracksPerQueue;
    std::map<std::string, uint64_t>& known = tracks_[static_cast<size_t>(job.kind)];
    const auto last = std::min<uint64_t>(known.size() + 1, kTracksPerQueue - 1);
    const auto [found, is_new] = known.try_emplace(span_track, first + last);
    if (is_new) {
      metadata("thread_name", found->second, absl::StrCat(kind_name(job.kind), ": ", span_track));
      sort_index(found->second);
    }
    return found->second;
  }

  void add(const Job& job) {
    if (!job.predicted) return;
    const auto queue = (static_cast<uint64_t>(job.kind) + 1) * kTracksPerQueue;
    complete("job", absl::StrFormat("%s %d", kind_name(job.kind), job.number), queue, job.begin_ns,
             job.end_ns);
    args(job);
    const auto mhz = static_cast<uint64_t>(job.times.clock_mhz);
    for (const Span& span : job.spans) {
      const uint64_t track = track_of(job, span.track);
      complete("span", span.name, track, job.begin_ns + span.begin * 1000 / mhz,
               job.begin_ns + span.end * 1000 / mhz)
          .key("args")
          .begin_object()
          .field("job", job.number)
          .field("clocks", span.end - span.begin)
          .end_object()
          .end_object();
    }
  }
  void args(const Job& job) {
    const timing::Prediction& p = job.times;
    json_.key("args").begin_object().field("client", job.client).field("frame", job.frame);
    json_.field("bound by", timing::bound_name(p.bound())).field("clocks", p.clocks);
    json_.field("QPU share", p.qpu_share()).field("TMU share", p.tmu_share());
    json_.field("L2T share", p.l2_share()).field("DRAM share", p.dram_share());
    json_.field("DRAM bytes read", p.memory.all_read()).field("DRAM bytes written", p.memory.all_written());
    for (const ShaderUse& use : job.shaders)
      json_.field(profile_.shaders[use.shader].name, qpu_clocks(use.instructions, use.stalls));
    json_.end_object().end_object();
  }

  /// Means over each job, of jobs that overlap their sum.
  void counters() {
    counter("DRAM bytes/us", [](const Job& job) {
      return static_cast<double>(job.times.memory.all_read() + job.times.memory.all_written()) /
             us(job.end_ns - job.begin_ns);
    });
    counter("threads per QPU", [](const Job& job) {
      return static_cast<double>(job.times.resident) /
             static_cast<double>(job.times.clocks * static_cast<uint64_t>(job.times.qpus));
    });
  }
  template <typename Value>
  void counter(const char* name, const Value& value) {
    std::map<uint64_t, double> steps;  // by time
    for (const Job& job : profile_.jobs) {
      if (!job.predicted || job.end_ns == job.begin_ns) continue;
      steps[job.begin_ns] += value(job);
      steps[job.end_ns] -= value(job);
    }
    double now = 0;
    for (const auto& [at_ns, step] : steps) {
      now += step;
      constexpr double kRounding = 1e-9;  // what is left of a sum that should be 0
      event("C", name, 0).key("ts").time(at_ns).key("args").begin_object();
      json_.field("value", now < kRounding ? 0.0 : now).end_object().end_object();
    }
  }

  const Profile& profile_;
  JsonWriter json_;
  std::array<std::map<std::string, uint64_t>, kKinds> tracks_;
};

}  // namespace

std::string to_trace(const Profile& profile) { return Trace(profile).text(); }

}  // namespace v3d::tools::profiling
