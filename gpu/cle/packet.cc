#include "gpu/cle/packet.h"

#include <array>
#include <bit>
#include <cstring>

#include "gpu/cle/fields_fit.h"
#include "gpu/cle/packet_table.h"

namespace v3d::cle {

namespace {

using packet_table::kPackets;
using packet_table::kRecords;

constexpr int kNumPackets = std::size(kPackets);

constexpr bool tables_hold() {
  for (int i = 0; i < kNumPackets; ++i) {
    if (i > 0 && kPackets[i].opcode < kPackets[i - 1].opcode) return false;
    if (static_cast<uint8_t>(kPackets[i].opcode) >= 128) return false;
    if (!fields_fit(kPackets[i], kPackets[i].length - 1)) return false;
    if (kPackets[i].length - 1u + 8 > sizeof(Packet::body) + 1) return false;
  }
  for (const RecordInfo& r : kRecords) {
    if (!fields_fit(r, r.length) || r.length + 8u > sizeof(Record::body)) return false;
  }
  return true;
}
static_assert(tables_hold());

/// First row of each opcode, or -1.
constexpr std::array<int16_t, 128> make_index(chip::Generations generation) {
  std::array<int16_t, 128> index{};
  index.fill(-1);
  for (int i = kNumPackets - 1; i >= 0; --i)
    if (kPackets[i].generations & generation)
      index[static_cast<uint8_t>(kPackets[i].opcode)] = static_cast<int16_t>(i);
  return index;
}
constexpr std::array<int16_t, 128> kIndex42 = make_index(k42), kIndex71 = make_index(k71);

constexpr Field kNumSpecs = field("Transform Feedback Specs", "Number of 16-bit Output Data Specs following");

/// The row of a TILE_RENDERING_MODE_CFG packet: forms differ in the value of their sub-id.
const PacketInfo* find_form(const PacketInfo* info, chip::Generations generation, const uint8_t* body) {
  for (; info != std::end(kPackets) && info->opcode == Opcode::kTileRenderingModeCfg; ++info) {
    if ((info->generations & generation) &&
        read_bits(body, info->fields[0]) == static_cast<uint64_t>(info->sub_id))
      return info;
  }
  return nullptr;
}

}  // namespace

uint64_t read_bits(const uint8_t* body, const Field& field) {
  uint64_t word;
  std::memcpy(&word, body + field.start / 8, sizeof(word));
  word >>= field.start % 8;
  return field.width >= 64 ? word : word & ((uint64_t{1} << field.width) - 1);
}

uint32_t read_value(const uint8_t* body, const Field& field) {
  const auto bits = static_cast<uint32_t>(read_bits(body, field));
  switch (field.type) {
    case FieldType::kMinusOne:
      return bits + 1;
    case FieldType::kInt:
    case FieldType::kSigned4: {
      const uint32_t sign = 1u << (field.width - 1);
      return (bits ^ sign) - sign;
    }
    case FieldType::kAddress:
      return bits << (32 - field.width);
    case FieldType::kBf16:
      return bits << 16;
    default:
      return bits;
  }
}

float read_float(const uint8_t* body, const Field& field) {
  const uint32_t value = read_value(body, field);
  if (field.type == FieldType::kFixed8) return static_cast<float>(value) / 256.0f;
  if (field.type == FieldType::kSigned4) return static_cast<float>(static_cast<int32_t>(value)) / 16.0f;
  return std::bit_cast<float>(value);
}

bool decode(Memory memory, GpuAddr address, chip::Generation generation, Packet* packet) {
  const std::array<int16_t, 128>* index = nullptr;
  switch (generation) {
    case chip::Generation::k21:
      return decode_vc4(memory, address, packet);
    case chip::Generation::k42:
      index = &kIndex42;
      break;
    case chip::Generation::k71:
      index = &kIndex71;
      break;
  }
  const auto opcode = memory.load<uint8_t>(address);
  packet->address = address;
  packet->number = opcode;
  packet->opcode = static_cast<Opcode>(opcode);
  packet->info = nullptr;
  packet->length = 0;
  if (opcode >= index->size()) return false;
  const int row = (*index)[opcode];
  if (row < 0) return false;
  const PacketInfo* info = &kPackets[row];
  memory.read(address + 1, packet->body, info->length - 1u);
  if (info->opcode == Opcode::kTileRenderingModeCfg) {
    info = find_form(info, set_of(generation), packet->body);
    if (info == nullptr) return false;
  }
  packet->info = info;
  packet->length = info->length;
  if (info->opcode == Opcode::kTransformFeedbackSpecs) packet->length += 2 * packet->get(kNumSpecs);
  return true;
}

void Record::load(Memory memory, GpuAddr from, const RecordInfo& info) {
  address = from;
  memory.read(from, body, info.length);
}

}  // namespace v3d::cle
