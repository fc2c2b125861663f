/// Input: the words of a program.
#include <cstdlib>
#include <vector>

#include "ioctl/vc4/program.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {

void vc4_programs(Bytes bytes) {
  Input input(bytes);
  std::vector<uint64_t> words;
  while (!input.empty()) words.push_back(input.take<uint64_t>());
  const auto program = ioctl::vc4::analyse_program(words);
  if (!program.ok()) return;
  if (program->checked_words > words.size()) std::abort();
  const auto is_in_stream = [&](uint32_t at) { return at % 4 == 0 && at < program->uniform_bytes; };
  for (const uint32_t at : program->stream_addresses)
    if (!is_in_stream(at)) std::abort();
  for (const auto& sample : program->samples)
    for (const uint32_t at : sample.parameters)
      if (at != ioctl::vc4::TextureSample::kAbsent && !is_in_stream(at)) std::abort();
  // The first and the last parameter are always there.
  for (const auto& sample : program->samples)
    if (sample.parameters[0] == ioctl::vc4::TextureSample::kAbsent ||
        sample.parameters[1] == ioctl::vc4::TextureSample::kAbsent)
      std::abort();
}

}  // namespace v3d::fuzz
