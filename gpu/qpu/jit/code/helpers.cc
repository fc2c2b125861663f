#include "gpu/qpu/jit/code/helpers.h"

#include <utility>

#include "gpu/qpu/jit/code/lookup_compiler.h"
#include "gpu/qpu/run/ports.h"
#include "gpu/tmu/lookup/unit.h"

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

namespace {

void find_code(LookupCompiler& lookups, const Thread& t) {
  const tmu::LookupKind* const kind = t.tmu->kind_without_code();
  if (kind == nullptr) return;
  if (auto made = lookups.code_of(*kind, t.memory.host(0)))
    t.tmu->set_code(std::move(made->code), made->cost);
}

}  // namespace

uint32_t start_lookup(Frame* frame, uint32_t effect, uint32_t takes_uniform, uint32_t waddr) {
  if (write_to_port(frame, effect, takes_uniform, waddr) != 0) return 1;
  if (frame->lookups != nullptr && frame->thread->tmu != nullptr)
    keep_exceptions(frame, [&] { find_code(*frame->lookups, *frame->thread); });
  return static_cast<bool>(frame->exception);
}

namespace {

/// TlbBinding::counts_depth, where it may be.
bool counts_by_itself(const Thread& t, LaneMask exec) {
  return t.tlb_binding.counts_depth && exec == kAllLanes && t.tlb_block.live == kAllLanes &&
         nonzero(t.msf ^ 1u) == 0;
}

}  // namespace

uint32_t write_to_tlb(Frame* frame, uint32_t takes_uniform) {
  Thread& t = *frame->thread;
  Thread::Pending& p = t.pending;
  const TlbBinding& binding = t.tlb_binding;
  if (takes_uniform) {
    const GpuAddr before = t.uniforms;
    const uint32_t word = next_uniform(t);
    if (binding.write_depth && (word & kTlbInvariantDepthMask) == kTlbInvariantDepth) {
      t.tlb_config = word >> 8 | 0xff000000u;
      p.tlb_have = p.tlb_need = 0;
      if (counts_by_itself(t, frame->exec)) {
        ++t.tlb_block.tested;
        return 0;
      }
      keep_exceptions(frame, [&] { binding.write_depth(t, frame->exec); });
      return static_cast<bool>(frame->exception);
    }
    t.uniforms = before;
  } else if (binding.write_halves && p.tlb_halves && p.tlb_have == 1 && p.tlb_need == 2) {
    p.tlb_words[1] = frame->a;
    p.tlb_have = p.tlb_need = 0;
    keep_exceptions(frame, [&] { binding.write_halves(t, p.tlb_exec & frame->exec); });
    return static_cast<bool>(frame->exception);
  }
  return write_to_port(frame, static_cast<uint32_t>(Effect::kTlb), takes_uniform, kWaddrNop);
}

void load_tlb(Frame* frame, uint32_t with_config) {
  keep_exceptions(frame, [&] { frame->result = read_tlb(*frame->thread, with_config != 0); });
}

}  // namespace v3d::qpu::jit
