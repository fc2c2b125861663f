/// Input: number of segments, then repeated {u8 address, u8 size, u8 flags}, then repeated {u8 address, u8
/// size, u8 write}: a client's memory as a request brings it, beside a plain model of it.
#include <array>
#include <optional>
#include <vector>

#include "daemon/client_memory.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

constexpr size_t kSize = 512;  // of the model

/// At the end of all addresses when the input says so, where sums wrap around.
constexpr uint64_t kBases[] = {0, 0x7000'0000'0000, ~uint64_t{0} - 300};

struct Model {
  std::array<bool, kSize> readable{}, writable{};
  /// Segments are filled with the low byte of their address plus the offset, so that copies agree.
  static uint8_t content(uint64_t address) { return static_cast<uint8_t>(address * 7); }
};

template <typename T>
void append(std::vector<uint8_t>* to, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  to->insert(to->end(), bytes, bytes + sizeof value);
}

void add_segment(Input& input, uint64_t base, std::vector<uint8_t>* payload, Model* model) {
  wire::Segment segment = {};
  const auto offset = input.take<uint8_t>();
  segment.address = base + offset;
  segment.size = input.take<uint8_t>();
  segment.flags = input.take<uint8_t>() & 7;
  append(payload, segment);
  for (uint64_t i = 0; i < segment.size; ++i)
    if (segment.flags & wire::kIn) payload->push_back(Model::content(segment.address + i));
  if (segment.address + segment.size < segment.address) return;  // such a segment is none
  for (uint64_t i = 0; i < segment.size; ++i) {
    if (segment.flags & wire::kIn) model->readable[offset + i] = true;
    if (segment.flags & wire::kOut) model->writable[offset + i] = true;
  }
}

bool all(const std::array<bool, kSize>& allowed, size_t offset, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!allowed[offset + i]) return false;
  return true;
}

void access(Input& input, uint64_t base, const Model& model, daemon::SegmentMemory* memory) {
  const auto offset = input.take<uint8_t>(), count = input.take<uint8_t>();
  const uint64_t address = base + offset;
  if (address + count < address) return;  // no memory to read reaches there
  std::vector<uint8_t> bytes(count, 0xcc);
  if (input.take<uint8_t>() & 1) {
    if (memory->write(address, bytes.data(), count) != all(model.writable, offset, count)) std::abort();
    return;
  }
  if (memory->read(address, bytes.data(), count) != all(model.readable, offset, count)) std::abort();
  if (!all(model.readable, offset, count)) return;
  for (uint64_t i = 0; i < count; ++i)
    if (bytes[i] != Model::content(address + i)) std::abort();
}

}  // namespace

void segments(Bytes bytes) {
  Input input(bytes);
  const auto number = input.take<uint8_t>();
  const uint64_t base = kBases[input.take<uint8_t>() % std::size(kBases)];
  const auto cut = input.take<uint8_t>();  // bytes that are missing, in one of eight inputs
  std::vector<uint8_t> payload;
  Model model;
  for (int i = 0; i < number; ++i) add_segment(input, base, &payload, &model);
  const size_t missing = cut % 8 == 0 ? std::min<size_t>(payload.size(), cut / 8) : 0;
  payload.erase(payload.end() - static_cast<std::ptrdiff_t>(missing), payload.end());
  daemon::SegmentMemory memory;
  daemon::PayloadReader reader(payload);
  if (memory.parse(reader, number) != (missing == 0)) std::abort();
  if (missing != 0) return;
  if (!reader.empty()) std::abort();
  while (!input.empty()) access(input, base, model, &memory);
}

}  // namespace v3d::fuzz
