/// @file Bin jobs: coordinate shading, and the PTB after it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/vertex_feed.h"

namespace v3d::timing {
namespace {

class BinReplay : JobReplay {
 public:
  BinReplay(const BinJob& job, const chip::Profile& profile, const Parameters& parameters)
      : JobReplay(JobKind::kBin, profile, parameters),
        job_(job),
        qpus_(job.trace, profile, p_, memory_, &result_),
        vertices_(p_, memory_, qpus_, &result_.units) {
    for (const DrawRecord& draw : job.draws) {
      for (uint32_t i = 0; i < draw.num_batches; ++i) vertices_.add(job.trace.batches[draw.first_batch + i]);
      result_.draws.push_back(
          {.vertices = draw.vertices, .primitives = draw.primitives, .vertex_batches = draw.num_batches});
    }
  }

  Prediction run() {
    const uint64_t list = job_.packets * p_.cle_packet;
    vertices_.launch(0, 0, vertices_.size());
    while (const auto ended = qpus_.run()) {
      vertices_.end(VertexFeed::number_of(ended->tag), ended->clock);
      vertices_.launch(ended->clock, 0, vertices_.size());
    }
    return finish(std::max(list, bin()));
  }

 private:
  /// The PTB takes the batches in their order. @return when it is done
  uint64_t bin() {
    uint64_t entries = 0;
    for (const DrawRecord& draw : job_.draws) entries += draw.entries;
    uint64_t free = 0;
    size_t batch = 0;
    for (size_t i = 0; i < job_.draws.size(); ++i) {
      const DrawRecord& draw = job_.draws[i];
      const uint64_t outside = std::min<uint64_t>(draw.outside, draw.primitives);
      const uint64_t cost = (draw.primitives - outside) * p_.ptb_primitive + outside * p_.ptb_outside +
                            draw.entries * p_.ptb_entry;
      const uint64_t begin = std::max(free, vertices_.ready(std::min<size_t>(batch + 1, vertices_.size())));
      for (uint64_t n = 0; n < draw.num_batches; ++n)
        free = std::max(free, vertices_.ready(++batch)) + cost * (n + 1) / draw.num_batches -
               cost * n / draw.num_batches;
      if (draw.num_batches == 0) free += cost;
      if (entries != 0)
        free = std::max(free, memory_.write_list(job_.written_bytes * draw.entries / entries, free));
      result_.units.binner += cost;
      result_.spans.push_back({"binner", absl::StrCat("draw ", i), begin, free});
    }
    return free;
  }

  const BinJob& job_;
  QpuArray qpus_;
  VertexFeed vertices_;
};

}  // namespace

Prediction replay(const BinJob& job, const chip::Profile& profile, const Parameters& parameters) {
  return BinReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
