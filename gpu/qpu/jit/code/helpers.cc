#include "gpu/qpu/jit/code/helpers.h"

#include "gpu/qpu/run/ports.h"

namespace v3d::qpu::jit {

namespace {

template <typename Work>
void keep_exceptions(Frame* frame, const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    frame->exception = std::current_exception();
  }
}

}  // namespace

void evaluate(Frame* frame, AluFn alu, FlagFn flag) {
  keep_exceptions(frame, [&] {
    frame->result = alu(*frame->thread, frame->a, frame->b, frame->exec);
    if (flag) frame->x = flag(frame->a, frame->b, frame->result);
  });
}

void evaluate_active(Frame* frame, AluFn alu, FlagFn flag) {
  frame->exec &= active_lanes(*frame->thread);
  evaluate(frame, alu, flag);
}

uint32_t write_to_port(Frame* frame, uint32_t effect, uint32_t takes_uniform, uint32_t waddr) {
  const Port port = {static_cast<Effect>(effect), takes_uniform != 0, static_cast<uint8_t>(waddr)};
  keep_exceptions(frame, [&] { frame->error = write_port(*frame->thread, port, frame->a, frame->exec); });
  return frame->error != nullptr || frame->exception;
}

void load_tlb(Frame* frame, uint32_t with_config) {
  keep_exceptions(frame, [&] { frame->result = read_tlb(*frame->thread, with_config != 0); });
}

}  // namespace v3d::qpu::jit
