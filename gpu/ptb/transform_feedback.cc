#include "gpu/ptb/transform_feedback.h"

#include <utility>

namespace v3d::ptb {

void TransformFeedback::set_buffer(uint32_t number, GpuAddr address, uint32_t words) {
  buffers_[number % buffers_.size()] = {.address = address, .words = words, .next = 0};
}

bool TransformFeedback::fits(uint32_t vertices) const {
  std::array<uint64_t, 4> needed{};
  for (const Spec& s : specs_) needed[s.buffer] += uint64_t{s.num_words} * vertices;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (needed[i] > buffers_[i].words - buffers_[i].next) return false;
  return true;
}

void TransformFeedback::write(const draw::Primitive& primitive, uint32_t vertices,
                              const vpm::ShadedVertices& shaded) {
  for (uint32_t v = 0; v < vertices; ++v) {
    for (const Spec& s : specs_) {
      Buffer& buffer = buffers_[s.buffer];
      for (uint32_t i = 0; i < s.num_words; ++i) {
        const uint32_t word = shaded.word(primitive.vertex[v], uint32_t{s.first_word} + i);
        memory_.store<uint32_t>(buffer.address + 4 * buffer.next++, word);
      }
      counters_[kWords0 + s.buffer] += s.num_words;
      written_bytes_ += 4u * s.num_words;
    }
  }
}

void TransformFeedback::capture(const std::vector<draw::Primitive>& primitives, uint32_t vertices,
                                const vpm::ShadedVertices& shaded) {
  count(primitives.size());
  if (!enabled()) return;
  // For the meter: to see that nothing fits, and to write it.
  const uint32_t least_cost = 1 + static_cast<uint32_t>(specs_.size());
  uint32_t words = 0;
  for (const Spec& s : specs_) words += s.num_words;
  for (const draw::Primitive& p : primitives) {
    if (!meter_.charge(least_cost)) return;
    if (!fits(vertices)) {
      ++counters_[kOverflowed];
      continue;
    }
    meter_.charge(words * vertices);
    write(p, vertices, shaded);
    ++counters_[kWritten];
  }
}

void TransformFeedback::store_counters(GpuAddr address) const {
  memory_.write(address, counters_.data(), sizeof(counters_));
}

namespace {
struct BufferState {
  uint32_t remaining;
  GpuAddr next;
};
}  // namespace

void TransformFeedback::store_buffers(GpuAddr address) const {
  std::array<BufferState, 4> states;
  for (size_t i = 0; i < states.size(); ++i)
    states[i] = {buffers_[i].words - buffers_[i].next, buffers_[i].address + 4 * buffers_[i].next};
  memory_.write(address, states.data(), sizeof(states));
}

void TransformFeedback::load_buffers(GpuAddr address) {
  const auto states = memory_.load<std::array<BufferState, 4>>(address);
  for (uint32_t i = 0; i < states.size(); ++i) set_buffer(i, states[i].next, states[i].remaining);
}

uint64_t TransformFeedback::take_written_bytes() { return std::exchange(written_bytes_, 0); }

}  // namespace v3d::ptb
