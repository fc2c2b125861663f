#include <array>
#include <cstddef>

#include "gpu/cle/fields_fit.h"
#include "gpu/cle/packet.h"
#include "gpu/cle/vc4_packet_table.h"

namespace v3d::cle {
namespace {

using vc4_table::kPackets;
using vc4_table::kRecords;

constexpr bool tables_hold() {
  for (size_t i = 0; i < std::size(kPackets); ++i) {
    const PacketInfo& info = kPackets[i].info;
    if (i > 0 && kPackets[i].number <= kPackets[i - 1].number) return false;
    if (!fields_fit(info, info.length - 1) || info.length - 1u + 8 > sizeof(Packet::body) + 1) return false;
  }
  for (const RecordInfo& r : kRecords)
    if (!fields_fit(r, r.length) || r.length + 8u > sizeof(Record::body)) return false;
  return true;
}
static_assert(tables_hold());

constexpr auto kIndex = [] {
  std::array<const PacketInfo*, 256> index{};
  for (const vc4_table::Row& row : kPackets) index[row.number] = &row.info;
  return index;
}();

}  // namespace

bool decode_vc4(Memory memory, GpuAddr address, Packet* packet) {
  packet->address = address;
  packet->number = memory.load<uint8_t>(address);
  packet->info = kIndex[packet->number];
  packet->opcode = packet->info ? packet->info->opcode : Opcode{};
  packet->length = packet->info ? packet->info->length : 0;
  if (packet->info) memory.read(address + 1, packet->body, packet->length - 1);
  return packet->info != nullptr;
}

}  // namespace v3d::cle
