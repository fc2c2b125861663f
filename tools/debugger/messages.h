/// Messages of the Debug Adapter Protocol on two files: a head with their length, and JSON.
#pragma once

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

namespace v3d::debugger {

class Messages {
 public:
  /// The files outlive the object.
  Messages(FILE* input, FILE* output) : input_(input), output_(output) {}

  static constexpr size_t kMostBytes = 16 << 20, kMostHeadBytes = 4096;
  /// The next message. Nothing: the input ended, or what comes is no message.
  std::optional<std::string> read();
  /// Any thread.
  void write(const std::string& json);

 private:
  FILE* const input_;
  FILE* const output_;
  std::mutex mutex_;  // of the output
};

}  // namespace v3d::debugger
