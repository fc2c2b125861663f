/// Compares the packet table with Mesa's description of the same packets. Without V3DEMU_MESA there is
/// nothing to compare with and the file is empty (said at configure time).
#ifdef V3DEMU_PACKET_XML

#include "tests/cle/packet_xml.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/cle/packet_table.h"
#include "gtest/gtest.h"

namespace v3d::cle {
namespace {

class PacketXml : public testing::TestWithParam<chip::Generation> {};

TEST_P(PacketXml, PacketsAgree) {
  const chip::Generation generation = GetParam();
  const Xml xml = read_xml(V3DEMU_PACKET_XML);
  size_t compared = 0, rows = 0;
  for (const XmlLayout& theirs : xml.layouts) {
    if (!theirs.is_packet || !theirs.in(generation)) continue;
    const PacketInfo* ours = nullptr;
    for (const PacketInfo& p : packet_table::kPackets) {
      if (static_cast<int>(p.opcode) == theirs.opcode && (p.generations & set_of(generation)) != 0 &&
          p.sub_id == theirs.sub_id())
        ours = &p;
    }
    ASSERT_NE(ours, nullptr) << theirs.name;
    expect_same_layout(*ours, theirs);
    ++compared;
  }
  for (const PacketInfo& p : packet_table::kPackets) rows += (p.generations & set_of(generation)) != 0;
  EXPECT_EQ(compared, rows);
  EXPECT_GT(compared, 80u);
}

TEST_P(PacketXml, RecordsAgree) {
  const chip::Generation generation = GetParam();
  const Xml xml = read_xml(V3DEMU_PACKET_XML);
  // Records of the TMU, and words for a VPM set-up that programs of these generations do not have.
  const std::vector<std::string> elsewhere = {"TMU Config Parameter 0",
                                              "TMU Config Parameter 1",
                                              "TMU Config Parameter 2",
                                              "Texture Shader State",
                                              "Sampler State",
                                              "VPM generic block write setup",
                                              "VPM generic block read setup",
                                              "Transform Feedback Output Address"};
  size_t compared = 0;
  for (const XmlLayout& theirs : xml.layouts) {
    if (theirs.is_packet || !theirs.in(generation)) continue;
    if (std::find(elsewhere.begin(), elsewhere.end(), theirs.name) != elsewhere.end()) continue;
    const auto* ours = std::find_if(
        std::begin(packet_table::kRecords), std::end(packet_table::kRecords), [&](const RecordInfo& r) {
          return theirs.name == r.name && (r.generations & set_of(generation)) != 0;
        });
    ASSERT_NE(ours, std::end(packet_table::kRecords)) << theirs.name;
    expect_same_layout(*ours, theirs);
    ++compared;
  }
  EXPECT_GE(compared, 7u);
}

INSTANTIATE_TEST_SUITE_P(Versions, PacketXml, testing::Values(chip::Generation::k42, chip::Generation::k71),
                         [](const auto& p) { return std::to_string(version_number(p.param)); });

TEST(PacketXmlEnums, EveryValueHasAName) {
  const Xml xml = read_xml(V3DEMU_PACKET_XML);
  for (const auto& [name, type] : kXmlEnumTypes) {
    ASSERT_TRUE(xml.enums.contains(name)) << name;
    for (const auto& [value, value_text] : xml.enums.at(name)) {
      if (type == FieldType::kTypeClamp && value == 32) continue;  // "invalid" does not fit the field
      EXPECT_NE(value_name(type, static_cast<uint32_t>(value)), nullptr) << name << " " << value_text;
    }
  }
}

}  // namespace
}  // namespace v3d::cle

#endif  // V3DEMU_PACKET_XML
