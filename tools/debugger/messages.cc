#include "tools/debugger/messages.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace v3d::debugger {

std::optional<std::string> Messages::read() {
  constexpr const char kLength[] = "content-length:";
  std::optional<size_t> length;
  std::string line;
  for (size_t head = 0; head < kMostHeadBytes; ++head) {
    const int next = std::getc(input_);
    if (next == EOF) return {};
    if (next != '\n') {
      line += static_cast<char>(next);
      continue;
    }
    const std::string text(absl::StripAsciiWhitespace(line));
    line.clear();
    size_t value;
    if (absl::StartsWithIgnoreCase(text, kLength)) {
      if (!absl::SimpleAtoi(text.substr(sizeof kLength - 1), &value) || value > kMostBytes) return {};
      length = value;
    }
    if (!text.empty()) continue;
    if (!length) return {};
    std::string message(*length, '\0');
    if (std::fread(message.data(), 1, message.size(), input_) != message.size()) return {};
    return message;
  }
  return {};
}

void Messages::write(const std::string& json) {
  const std::string message = absl::StrCat("Content-Length: ", json.size(), "\r\n\r\n", json);
  const std::lock_guard lock(mutex_);
  std::fwrite(message.data(), 1, message.size(), output_);
  std::fflush(output_);
}

}  // namespace v3d::debugger
