#include "gpu/qpu/jit/program_functions.h"

namespace v3d::qpu::jit {

void ProgramFunctions::refuse(const Program& program, const char* why,
                              std::chrono::steady_clock::time_point begin) {
  describe(program, absl::StrFormat("not compiled (%s)\n", why));
  counters_.count({}, 0, begin, &Statistics::functions, &Statistics::others);
}

void ProgramFunctions::describe(const Program& program, const std::string& text) const {
  if (lister_)
    lister_(absl::StrFormat("%s of the program at 0x%08x: %s", names_.what, program.entry(), text));
}

std::string to_string(const ProgramFunctions::Statistics& s, const char* what, const char* others) {
  std::string text =
      absl::StrFormat("%d functions for %s: %d instructions, %d KiB, %.1f ms; %d %s", s.functions, what,
                      s.instructions, s.code_bytes >> 10, s.seconds * 1e3, s.others, others);
  append_missing(text, s.without_code, s.operation);
  return text;
}

}  // namespace v3d::qpu::jit
