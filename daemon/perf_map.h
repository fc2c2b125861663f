/// From /tmp/perf-PID.map perf(1) learns the names of code that a process compiled.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

namespace v3d::daemon {

/// Thread safe. The file stays behind, for `perf report`.
class PerfMap {
 public:
  /// null if the file cannot be made; logs why.
  static std::unique_ptr<PerfMap> create();
  ~PerfMap();

  void add(const void* code, size_t bytes, const std::string& name);

 private:
  explicit PerfMap(FILE* file) : file_(file) {}
  std::mutex mutex_;
  FILE* const file_;
};

}  // namespace v3d::daemon
