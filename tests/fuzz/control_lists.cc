/// Input: flags, sizes of the two lists, number of packets; those packets, from the table with fields of the
/// input; then bytes for the rest of memory, which begins with the raw part of the lists.
#include <algorithm>
#include <vector>

#include "gpu/cle/dump.h"
#include "gpu/cle/executor.h"
#include "gpu/cle/packet_table.h"
#include "gpu/draw/bin_result.h"
#include "tests/cle/packet_writer.h"
#include "tests/fuzz/fuzz_job.h"
#include "tests/fuzz/input.h"

namespace v3d::fuzz {
namespace {

constexpr GpuAddr kData = JobMemory::kBase + 0x8000;  // after both lists

/// A packet of the chip with fields as in the input. Addresses lie in memory, but for one in sixteen.
void add_packet(Input& input, chip::Generation generation, std::vector<uint8_t>* list) {
  static const auto packets_of = [](chip::Generation v) {
    std::vector<const cle::PacketInfo*> packets;
    for (const cle::PacketInfo& p : cle::packet_table::kPackets)
      if (p.generations & chip::set_of(v)) packets.push_back(&p);
    return packets;
  };
  static const std::vector<const cle::PacketInfo*> packets71 = packets_of(chip::Generation::k71),
                                                   packets42 = packets_of(chip::Generation::k42);
  const auto& packets = generation == chip::Generation::k71 ? packets71 : packets42;
  const cle::PacketInfo& info = *packets[input.take<uint8_t>() % packets.size()];
  const Bytes fields = input.take_bytes(info.length - 1u);
  std::vector<uint8_t> body(info.length - 1u);
  std::copy(fields.begin(), fields.end(), body.begin());
  for (const cle::Field& f : info.fields) {
    if (f.name == nullptr) continue;
    if (f.type == cle::FieldType::kAddress) {
      const auto word = input.take<uint16_t>();
      if (word % 16 != 0) cle::put_field(body.data(), f, kData + (word >> 4) * 16u);
    }
    if (info.sub_id >= 0 && &f == &info.fields[0])
      cle::put_field(body.data(), f, static_cast<uint8_t>(info.sub_id));
  }
  list->push_back(static_cast<uint8_t>(info.opcode));
  list->insert(list->end(), body.begin(), body.end());
}

}  // namespace

void control_lists(Bytes bytes) {
  static JobMemory memory;
  Input input(bytes);
  const auto flags = input.take<uint8_t>();
  const chip::Generation generation = flags & 1 ? chip::Generation::k42 : chip::Generation::k71;
  std::vector<uint8_t> lists[2];
  for (auto& list : lists) {
    for (int packets = input.take<uint8_t>() % 32; packets > 0 && !input.empty(); --packets)
      add_packet(input, generation, &list);
    const Bytes raw = input.take_bytes(input.take<uint8_t>());
    list.insert(list.end(), raw.begin(), raw.end());
  }
  memory.reset({});
  memory.memory().write(kData, input.rest().data(), std::min<size_t>(input.rest().size(), 0x10000));
  chip::Profile profile = chip::default_profile();
  profile.generation = generation;
  GpuAddr at = JobMemory::kBase;
  GpuAddr starts[2];
  for (int i = 0; i < 2; ++i) {
    starts[i] = at;
    memory.memory().write(at, lists[i].data(), lists[i].size());
    at += static_cast<uint32_t>(lists[i].size()) + 1;
    cle::dump_list(
        memory.memory(), starts[i], at - 1, profile,
        {.line = [](std::string_view) {}, .shader = [](std::string_view, const draw::ShaderCode&) {}});
  }
  std::shared_ptr<draw::BinResult> bin;
  if (!lists[0].empty()) {
    FuzzJob job(memory, generation);
    bin = cle::run_bin_list(job.job(), starts[0], starts[1] - 1);
  }
  FuzzJob job(memory, generation);
  cle::run_render_list(job.job(), starts[1], at - 1, kData, bin.get());
}

}  // namespace v3d::fuzz
