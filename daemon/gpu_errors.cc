#include "daemon/gpu_errors.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "daemon/run_report.h"

namespace v3d::daemon {

template <size_t N>
void GpuErrors::Text<N>::set(std::string_view text) {
  size = static_cast<uint16_t>(std::min(text.size(), N));
  // A line of what a client wrote stays a line.
  std::transform(text.begin(), text.begin() + size, bytes.begin(),
                 [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c; });
}

void GpuErrors::add(GpuErrorKind kind, const ioctl::Job& job, const ioctl::User& user,
                    std::string_view text) {
  Entry entry;
  entry.time_ns = ioctl::monotonic_ns();
  entry.kind = kind;
  entry.queue = job.queue;
  entry.job = job.done->seqno();
  entry.pid = user.pid;
  entry.program.set(user.program);
  entry.text.set(text);
  {
    const std::lock_guard lock(mutex_);
    entries_[added_++ % kRemembered] = entry;
    ++counts_[static_cast<size_t>(kind)];
  }
  if (user.run.empty()) return;
  char line[kMostText + 128];
  const int length = absl::SNPrintF(line, sizeof line, "%s (pid %d), %s job %d: %s", entry.program.view(),
                                    entry.pid, ioctl::queue_name(entry.queue), entry.job, entry.text.view());
  if (length > 0)
    add_to_run_reports(
        user.run, row_of(kind).word,
        std::string_view(line, std::min<size_t>(static_cast<size_t>(length), sizeof line - 1)));
}

std::vector<GpuErrors::Error> GpuErrors::last() const {
  std::vector<Error> errors;
  errors.reserve(kRemembered);
  const std::lock_guard lock(mutex_);
  for (uint64_t n = added_ > kRemembered ? added_ - kRemembered : 0; n < added_; ++n) {
    const Entry& e = entries_[n % kRemembered];
    errors.push_back({n + 1, e.time_ns, e.kind, e.queue, e.job, e.pid, std::string(e.program.view()),
                      std::string(e.text.view())});
  }
  return errors;
}

uint64_t GpuErrors::count(GpuErrorKind kind) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<size_t>(kind)];
}

}  // namespace v3d::daemon
