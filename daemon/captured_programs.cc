#include "daemon/captured_programs.h"

#include <algorithm>

namespace v3d::daemon {
namespace {

enum Flags : uint32_t { kAlone = 1, kFresh = 2 };
constexpr size_t kHead = 2, kProgram = 4;

}  // namespace

std::vector<uint32_t> words_of(const CapturedPrograms& job) {
  std::vector<uint32_t> words{(job.alone ? kAlone : 0u) | (job.fresh ? kFresh : 0u), job.reserved_qpus};
  for (const csd::UserProgram& program : job.programs)
    words.insert(words.end(),
                 {program.code, program.uniforms, static_cast<uint32_t>(program.most_instructions),
                  static_cast<uint32_t>(program.most_instructions >> 32)});
  return words;
}

std::shared_ptr<const CapturedPrograms> programs_of(std::span<const uint32_t> words) {
  if (words.size() < kHead || (words.size() - kHead) % kProgram != 0 ||
      (words.size() - kHead) / kProgram > kMostCapturedPrograms || words[0] > (kAlone | kFresh))
    return nullptr;
  auto job = std::make_shared<CapturedPrograms>();
  job->alone = words[0] & kAlone;
  job->fresh = words[0] & kFresh;
  job->reserved_qpus = words[1];
  for (size_t at = kHead; at < words.size(); at += kProgram)
    job->programs.push_back({.code = words[at],
                             .uniforms = words[at + 1],
                             .most_instructions = uint64_t{words[at + 3]} << 32 | words[at + 2]});
  return job;
}

bool FirstPrograms::take(csd::UserProgram* program) {
  if (left_ == 0 || !queue_.take(program)) return false;
  --left_;
  return true;
}

std::vector<csd::UserProgram> FirstPrograms::queued() const {
  std::vector<csd::UserProgram> all = queue_.queued();
  all.resize(std::min(all.size(), left_));
  return all;
}

}  // namespace v3d::daemon
