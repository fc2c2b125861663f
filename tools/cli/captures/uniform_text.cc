#include "tools/cli/captures/uniform_text.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_format.h"

namespace v3d::tools {

std::string uniform_text(Memory memory, GpuAddr at) {
  const auto word = memory.load<uint32_t>(at);
  const auto number = std::bit_cast<float>(word);
  const float size = std::abs(number);
  std::string text = absl::StrFormat("0x%08x", word);
  if (size >= 1e-6F && size < 1e9F) absl::StrAppendFormat(&text, " (%g)", number);
  return text;
}

bool append_stream(Memory memory, GpuAddr stream, uint32_t extent, size_t streams, size_t number,
                   std::string* text) {
  constexpr size_t kMostStreams = 16;
  constexpr uint32_t kPerLine = 8 * 4;
  if (number > kMostStreams) {
    absl::StrAppendFormat(text, "  ... %d streams of uniforms in all\n", streams);
    return false;
  }
  absl::StrAppendFormat(text, "  uniforms at 0x%08x:\n", stream);
  for (uint32_t offset = 0; offset < extent; offset += 4) {
    if (offset % kPerLine == 0) absl::StrAppendFormat(text, "    +0x%02x:", offset);
    absl::StrAppendFormat(text, " %08x", memory.load<uint32_t>(stream + offset));
    if (offset % kPerLine == kPerLine - 4 || offset + 4 >= extent) *text += '\n';
  }
  return true;
}

}  // namespace v3d::tools
