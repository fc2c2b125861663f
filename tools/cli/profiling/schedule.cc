#include "tools/cli/profiling/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

namespace v3d::tools::profiling {
namespace {

/// Frames of a client that are under way at one time.
constexpr size_t kFramesInFlight = 2;

bool looks_like(const std::vector<Target>& a, const std::vector<Target>& b) {
  const auto same = [](const Target& x, const Target& y) {
    return x.width == y.width && x.height == y.height && x.format == y.format && x.layout == y.layout;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// The frames of one client as its jobs come.
struct ClientFrames {
  uint32_t current = 0;  // number; 0: none yet
  bool rendered = false;
  std::vector<Target> first;  // targets of the first render job of the frame
};

/// The render job of each submission, by its index.
std::map<std::pair<uint32_t, uint32_t>, size_t> render_jobs(const Profile& profile) {
  std::map<std::pair<uint32_t, uint32_t>, size_t> found;
  for (size_t i = 0; i < profile.jobs.size(); ++i) {
    const Job& job = profile.jobs[i];
    if (job.kind == Kind::kRender && job.submission != 0) found[{job.client, job.submission}] = i;
  }
  return found;
}

class Grouping {
 public:
  Grouping(FramesBy by, Profile* profile) : by_(by), profile_(*profile) {}

  void add(Job& job) {
    ClientFrames& client = clients_[job.client];
    const bool draws = job.kind == Kind::kRender && (by_ == FramesBy::kSubmission || !job.targets.empty());
    if (client.current == 0 || (draws && begins_frame(client, job))) begin(client, job);
    if (draws && !std::exchange(client.rendered, true)) client.first = job.targets;
    job.frame = client.current;
  }

 private:
  bool begins_frame(const ClientFrames& client, const Job& job) const {
    return client.rendered && (by_ == FramesBy::kSubmission || looks_like(client.first, job.targets));
  }
  void begin(ClientFrames& client, const Job& job) {
    client = {.current = static_cast<uint32_t>(profile_.frames.size()) + 1, .rendered = false, .first = {}};
    Frame frame;
    frame.number = client.current;
    frame.client = job.client;
    profile_.frames.push_back(frame);
  }

  const FramesBy by_;
  Profile& profile_;
  std::map<uint32_t, ClientFrames> clients_;
};

/// Ends of the frames of each client, as far as they are laid out.
class FrameEnds {
 public:
  explicit FrameEnds(const Profile& profile) {
    std::map<uint32_t, std::vector<uint32_t>> by_client;
    before_.resize(profile.frames.size() + 1);
    ends_.resize(profile.frames.size() + 1);
    for (const Frame& frame : profile.frames) {
      std::vector<uint32_t>& earlier = by_client[frame.client];
      if (earlier.size() >= kFramesInFlight)
        before_[frame.number] = earlier[earlier.size() - kFramesInFlight];
      earlier.push_back(frame.number);
    }
  }
  uint64_t may_begin(uint32_t frame) const { return ends_[before_[frame]]; }
  void add(uint32_t frame, uint64_t end_ns) {
    if (frame != 0) ends_[frame] = std::max(ends_[frame], end_ns);
  }

 private:
  std::vector<uint32_t> before_;  // by frame: the one that must be over, or 0
  std::vector<uint64_t> ends_;    // by frame
};

void add_to_frame(const Job& job, Frame* frame) {
  if (frame->jobs++ == 0) frame->begin_ns = job.begin_ns;
  frame->begin_ns = std::min(frame->begin_ns, job.begin_ns);
  frame->end_ns = std::max(frame->end_ns, job.end_ns);
  frame->busy_ns[static_cast<size_t>(job.kind)] += job.gpu_ns();
  if (job.predicted) frame->dram_bytes += job.times.memory.all_read() + job.times.memory.all_written();
}

}  // namespace

void group_frames(FramesBy by, Profile* profile) {
  profile->frames_are_submissions = by == FramesBy::kSubmission;
  const bool renders = std::any_of(profile->jobs.begin(), profile->jobs.end(),
                                   [](const Job& job) { return job.kind == Kind::kRender; });
  if (!renders) return;
  Grouping grouping(by, profile);
  const auto render = render_jobs(*profile);
  for (Job& job : profile->jobs)
    if (job.kind != Kind::kBin) grouping.add(job);
  // Bin jobs come earlier, but belong to their render jobs.
  for (Job& job : profile->jobs) {
    if (job.kind != Kind::kBin) continue;
    const auto found = render.find({job.client, job.submission});
    if (found != render.end()) job.frame = profile->jobs[found->second].frame;
  }
}

void schedule(Profile* profile) {
  std::array<uint64_t, kKinds> free_ns{};
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> binned_ns;
  FrameEnds frames(*profile);
  for (Job& job : profile->jobs) {
    uint64_t& queue_ns = free_ns[static_cast<size_t>(job.kind)];
    const std::pair submission(job.client, job.submission);
    job.begin_ns = std::max(queue_ns, frames.may_begin(job.frame));
    if (job.kind == Kind::kRender && job.submission != 0)
      job.begin_ns = std::max(job.begin_ns, binned_ns[submission]);
    job.end_ns = job.begin_ns + job.gpu_ns();
    if (job.predicted) queue_ns = job.end_ns;
    if (job.kind == Kind::kBin) binned_ns[submission] = job.end_ns;
    frames.add(job.frame, job.end_ns);
  }
  for (const Job& job : profile->jobs)
    if (job.frame != 0) add_to_frame(job, &profile->frames[job.frame - 1]);
}

}  // namespace v3d::tools::profiling
