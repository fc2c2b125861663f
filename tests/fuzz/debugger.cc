/// Input: a kernel's text, a line of "%%", and what an editor sends: a message in each line, or after a line
/// of
/// "%%%" bytes as they come. Where a message lets the kernel run, the next one follows once it stands still.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/input.h"
#include "tools/debugger/adapter.h"

namespace v3d::fuzz {
namespace {

using Json = nlohmann::json;

/// What the editor says and hears.
class Editor {
 public:
  explicit Editor(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  /// The next piece, as far as there is room for it.
  size_t say(char* to, size_t room) {
    if (at_ == pieces_.size()) return 0;
    std::string& piece = pieces_[at_];
    if (begun_ == 0) wait();
    const size_t count = std::min(room, piece.size() - begun_);
    std::copy_n(piece.data() + begun_, count, to);
    begun_ += count;
    if (begun_ == piece.size()) {
      waits_ = lets_run(piece);
      ++at_;
      begun_ = 0;
    }
    return count;
  }
  void hear(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (text.find("\"event\":\"stopped\"") == text.npos && text.find("\"event\":\"terminated\"") == text.npos)
      return;
    ++halts_;
    halted_.notify_all();
  }

 private:
  static bool lets_run(std::string_view piece) {
    for (const char* const command :
         {"\"configurationDone\"", "\"continue\"", "\"next\"", "\"step", "\"reverseContinue\""})
      if (piece.find(command) != piece.npos) return true;
    return false;
  }
  /// Not for long: a kernel that hangs does not halt.
  void wait() {
    std::unique_lock lock(mutex_);
    if (std::exchange(waits_, false))
      halted_.wait_for(lock, std::chrono::milliseconds(20), [this] { return halts_ != halts_seen_; });
    halts_seen_ = halts_;
  }

  std::vector<std::string> pieces_;
  size_t at_ = 0, begun_ = 0;
  bool waits_ = false;
  std::mutex mutex_;
  std::condition_variable halted_;
  int halts_ = 0, halts_seen_ = 0;
};

FILE* input_of(Editor& editor) {
  const cookie_io_functions_t functions{
      .read = [](void* of, char* to,
                 size_t room) { return static_cast<ssize_t>(static_cast<Editor*>(of)->say(to, room)); },
      .write = nullptr,
      .seek = nullptr,
      .close = nullptr};
  return fopencookie(&editor, "r", functions);
}

FILE* output_of(Editor& editor) {
  const cookie_io_functions_t functions{.read = nullptr,
                                        .write =
                                            [](void* of, const char* from, size_t count) {
                                              static_cast<Editor*>(of)->hear({from, count});
                                              return static_cast<ssize_t>(count);
                                            },
                                        .seek = nullptr,
                                        .close = nullptr};
  return fopencookie(&editor, "w", functions);
}

/// What the text of a buffer names: no file, and no more memory than a fuzzer has.
bool is_small_and_new(const std::string& text) {
  const auto digits = std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits <= 8 && (text.ends_with("]") || text.find("]=") != std::string::npos);
}

/// Files are the user's own to name; here they are the kernel, and no others are read or written.
void keep_from_files(Json& arguments, const std::string& kernel) {
  if (!arguments.is_object()) return;
  arguments.erase("outputs");
  if (arguments.contains("program")) arguments["program"] = kernel;
  if (!arguments.contains("buffers") || !arguments["buffers"].is_array()) return;
  for (Json& buffer : arguments["buffers"])
    if (buffer.is_string() && !is_small_and_new(buffer.get<std::string>())) buffer = "a=f32[64]=count";
}

std::string framed(const std::string& body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A line that is JSON, with harmless files; any other one as it is, in a frame.
std::string message_of(std::string_view line, const std::string& kernel) {
  Json message = Json::parse(line, nullptr, false);
  if (message.is_discarded()) return framed(std::string(line));
  if (message.is_object() && message.contains("arguments")) keep_from_files(message["arguments"], kernel);
  return framed(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<std::string> pieces_of(std::string_view text, const std::string& kernel) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line == "%%%") {
      // With such a request, files could be named.
      if (text.find("launch") == text.npos && text.find('\\') == text.npos) pieces.emplace_back(text);
      break;
    }
    if (!line.empty()) pieces.push_back(message_of(line, kernel));
  }
  std::erase_if(pieces, [](const std::string& piece) { return piece.empty(); });
  return pieces;
}

}  // namespace

void debugger(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t border = text.find("\n%%\n");
  if (border == text.npos) return;
  const int file = memfd_create("kernel", MFD_CLOEXEC);
  if (file < 0 || write(file, text.data(), border + 1) != static_cast<ssize_t>(border + 1)) std::abort();
  Editor editor(pieces_of(text.substr(border + 4), "/proc/self/fd/" + std::to_string(file)));
  FILE* const input = input_of(editor);
  FILE* const output = output_of(editor);
  {
    v3d::debugger::Messages messages(input, output);
    v3d::debugger::serve_editor(messages);
  }
  std::fclose(input);
  std::fclose(output);
  close(file);
}

}  // namespace v3d::fuzz
