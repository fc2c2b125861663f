/// Input: which parser, then its text: an .npy file, the shape and value of a buffer, a uniform, or an
/// expression and a condition of the debugger.
#include <string>

#include "tests/fuzz/input.h"
#include "tools/cli/kernels/kernel.h"
#include "tools/cli/kernels/npy.h"
#include "tools/debugger/expression.h"

namespace v3d::fuzz {
namespace {

void require_message(const absl::Status& status) {
  if (!status.ok() && status.message().empty()) std::abort();
}

/// What was read is the same when it has been written and read again.
void npy(const std::string& file) {
  const auto array = tools::parse_npy(file);
  require_message(array.status());
  if (!array.ok()) return;
  const auto again = tools::parse_npy(tools::npy_of(*array));
  if (!again.ok() || again->text() != array->text() || again->data != array->data) std::abort();
  if (array->elements() != 0 && tools::elements_text(*array).empty()) std::abort();
}

/// Small ones alone are made.
void shape(const std::string& text) {
  const size_t value = text.find("]=");
  const std::string of = text.substr(0, value == text.npos ? value : value + 1);
  uint64_t digits = 0;
  for (const char c : of) digits += c >= '0' && c <= '9';
  if (digits > 8) return;
  auto array = tools::parse_shape(of);
  require_message(array.status());
  if (array.ok() && array->elements() <= 4096 && value != text.npos)
    require_message(tools::fill(text.substr(value + 2), &*array));
}

}  // namespace

void arrays(Bytes bytes) {
  Input input(bytes);
  const auto which = input.take<uint8_t>() % 4;
  const std::string text(reinterpret_cast<const char*>(input.rest().data()), input.rest().size());
  if (which == 0) return npy(text);
  if (which == 1) return shape(text);
  tools::Kernel kernel;
  kernel.buffers.push_back({.name = "a", .array = *tools::parse_shape("f32[64]")});
  tools::place(&kernel);
  if (which == 2) return require_message(tools::parse_uniform(text, kernel).status());
  for (const auto generation : {chip::Generation::k71, chip::Generation::k42}) {
    require_message(debugger::parse_operand(text, generation, kernel).status());
    require_message(debugger::parse_condition(text, generation, kernel).status());
  }
}

}  // namespace v3d::fuzz
