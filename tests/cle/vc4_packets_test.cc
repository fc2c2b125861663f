/// @file Packets and records of VideoCore IV's binning list: bytes as Mesa packs them (vc4-graphics.md 1.8),
/// and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cle/vc4_draw_packets.h"
#include "gpu/cle/vc4_packet_table.h"
#include "tests/cle/packet_writer.h"
#include "tests/cle/packet_xml.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

using testing::HasSubstr;

/// The bytes that Mesa's functions pack for a frame of 256 x 256 pixels, one triangle, two attributes, y
/// flipped, depth range 0.25 to 0.75.
const std::vector<uint8_t> kList = {112, 0,    0, 0,    0,    0, 0, 0,    0,    0, 0, 0, 0, 4, 4, 0,  //
                                    6,                                                                //
                                    56,  0x12,                                                        //
                                    102, 0,    0, 0,    0,    0, 1, 0,    1,                          //
                                    101, 0,    0, 0,    0,                                            //
                                    98,  0,    0, 0x80, 0x3f,                                         //
                                    99,  0,    0, 0x80, 0x3f,                                         //
                                    105, 0,    0, 0,    0x45, 0, 0, 0,    0xc5,                       //
                                    106, 0,    0, 0,    0x3f, 0, 0, 0x80, 0x3e,                       //
                                    103, 0,    8, 0xf8, 7,                                            //
                                    97,  0,    0, 0,    0,                                            //
                                    33,  4,    3, 0,    0,    0, 0, 0,    0,    0,                    //
                                    7,                                                                //
                                    4};

class Vc4Packets : public testing::Test {
 protected:
  Packet decoded(const std::vector<uint8_t>& bytes) {
    Packet packet;
    EXPECT_TRUE(decode_vc4(test_.memory(), test_.put(bytes, 1), &packet));
    return packet;
  }
  draw::DrawState state_of(const std::vector<uint8_t>& bytes) {
    draw::DrawState state;
    EXPECT_TRUE(apply_vc4_state(decoded(bytes), &state, &error_));
    return state;
  }

  TestJob test_;
  std::string error_;
};

TEST_F(Vc4Packets, MesasListIsReadToItsEnd) {
  GpuAddr pc = test_.put(kList, 1);
  const GpuAddr end = pc + static_cast<GpuAddr>(kList.size());
  draw::DrawState state;
  std::vector<std::string> names;
  while (pc != end) {
    Packet packet;
    ASSERT_TRUE(decode_vc4(test_.memory(), pc, &packet)) << int{packet.number};
    EXPECT_EQ(packet.number, test_.memory().load<uint8_t>(pc));
    apply_vc4_state(packet, &state, &error_);
    names.emplace_back(packet.info->name);
    pc += packet.length;
  }
  EXPECT_EQ(error_, "");
  EXPECT_EQ(names.front(), "Tile Binning Mode Configuration");
  EXPECT_EQ(names.back(), "Flush");
  EXPECT_EQ(state.clip_width, 256);
  EXPECT_EQ(state.clip_height, 256);
  EXPECT_EQ(state.point_size, 1.0f);
  EXPECT_EQ(state.xy_half_width, 2048.0f);
  EXPECT_EQ(state.xy_half_height, -2048.0f);
  EXPECT_EQ(state.z_scale, 0.5f);
  EXPECT_EQ(state.z_offset, 0.25f);
  EXPECT_EQ(state.viewport_x, 128 * 256);
  EXPECT_EQ(state.viewport_y, 127 * 256 + 128);
}

TEST_F(Vc4Packets, Configuration) {
  const draw::DrawState state = state_of({96, 0x4d, 0xb0, 0x03});
  EXPECT_TRUE(state.cfg.draw_front);
  EXPECT_FALSE(state.cfg.draw_back);
  EXPECT_TRUE(state.cfg.clockwise);
  EXPECT_TRUE(state.cfg.depth_offset);
  EXPECT_EQ(state.cfg.oversample, 1);
  EXPECT_EQ(state.cfg.depth_func, Compare::kLequal);
  EXPECT_TRUE(state.cfg.z_write);
  EXPECT_FALSE(state.cfg.provoking_first);
  EXPECT_EQ(error_, "");
  state_of({96, 0x80, 0, 0});
  EXPECT_THAT(error_, HasSubstr("oversample mode 2"));
}

TEST_F(Vc4Packets, FlagsOfAllVaryings) {
  const draw::DrawState state = state_of({97, 0x01, 0, 0, 0x82});
  for (uint32_t varying = 0; varying < 40; ++varying)
    EXPECT_EQ(state.flat.test(varying), varying == 0 || varying == 25 || varying == 31) << varying;
}

TEST_F(Vc4Packets, OffsetsAreUpperHalvesOfFloats) {
  const draw::DrawState state = state_of({101, 0x80, 0x3f, 0x00, 0xc0});
  EXPECT_EQ(state.offset_factor, 1.0f);
  EXPECT_EQ(state.offset_units, -2.0f);
}

TEST_F(Vc4Packets, CentresMayBeNegative) {
  const draw::DrawState state = state_of({103, 0xff, 0xff, 0x00, 0x80});
  EXPECT_EQ(state.viewport_x, -16);
  EXPECT_EQ(state.viewport_y, -2048 * 256);
}

TEST_F(Vc4Packets, ShaderStateOfEightAttributes) {
  draw::DrawState state = state_of({64, 0x50, 0x34, 0x12, 0x00});
  EXPECT_EQ(state.shader_record, 0x00123450u);
  EXPECT_EQ(state.num_attributes, 8);
  EXPECT_FALSE(state.extended_record);
  state = state_of({64, 0x5b, 0x34, 0x12, 0x00});
  EXPECT_EQ(state.num_attributes, 3);
  EXPECT_TRUE(state.extended_record);
}

TEST_F(Vc4Packets, Draws) {
  auto call = vc4_draw_call(decoded({33, 4, 3, 0, 0, 0, 9, 0, 0, 0}));
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->mode, draw::Mode::kTriangles);
  EXPECT_FALSE(call->indexed);
  EXPECT_EQ(call->count, 3u);
  EXPECT_EQ(call->first_vertex, 9u);
  EXPECT_EQ(call->max_index, ~0u);
  call = vc4_draw_call(decoded({32, 0x15, 6, 0, 0, 0, 0, 0x10, 0, 0, 0xff, 0xff, 0, 0}));
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->mode, draw::Mode::kTriangleStrip);
  EXPECT_TRUE(call->indexed);
  EXPECT_EQ(call->index_size, 2);
  EXPECT_EQ(call->index_buffer, 0x1000u);
  EXPECT_EQ(call->index_buffer_size, 12u);
  EXPECT_EQ(call->max_index, 0xffffu);
  EXPECT_FALSE(vc4_draw_call(decoded({4})).has_value());
}

TEST_F(Vc4Packets, Binning) {
  std::vector<uint8_t> config(kList.begin(), kList.begin() + 16);
  const Vc4Binning binning = vc4_binning(decoded(config));
  EXPECT_EQ(binning.tiles_x, 4u);
  EXPECT_EQ(binning.tile_size, 64u);
  EXPECT_EQ(binning.unsupported, nullptr);
  config[15] = 1;
  EXPECT_EQ(vc4_binning(decoded(config)).tile_size, 32u);
  config[15] = 2;
  EXPECT_STREQ(vc4_binning(decoded(config)).unsupported, "Tile Buffer 64-bit Color Depth");
}

TEST_F(Vc4Packets, Records) {
  std::vector<uint8_t> bytes =
      make_record(vc4_record("Shader Record"), {{"Point Size included in shaded vertex data", 1},
                                                {"Enable Clipping", 1},
                                                {"Fragment Shader Number of Varyings", 5},
                                                {"Fragment Shader Code Address", 0x1000},
                                                {"Fragment Shader Uniforms Address", 0x1100},
                                                {"Vertex Shader Attribute Array select bits", 3},
                                                {"Vertex Shader Code Address", 0x2000},
                                                {"Vertex Shader Uniforms Address", 0x2100},
                                                {"Coordinate Shader Attribute Array select bits", 2},
                                                {"Coordinate Shader Code Address", 0x3000},
                                                {"Coordinate Shader Uniforms Address", 0x3100}});
  for (uint32_t i = 0; i < 2; ++i) {
    const std::vector<uint8_t> attribute =
        make_record(vc4_record("Attribute Record"), {{"Address", 0x4000 + 256 * i},
                                                     {"Number of Bytes minus 1", i == 0 ? 255 : 11},
                                                     {"Stride", 255 - i},
                                                     {"Vertex Shader VPM offset", 16 * i},
                                                     {"Coordinate Shader VPM offset", 8 * i}});
    bytes.insert(bytes.end(), attribute.begin(), attribute.end());
  }
  const GpuAddr at = test_.put(bytes, 16);
  const draw::ShaderRecord r = load_vc4_shader_record(test_.memory(), at, 2, false);
  EXPECT_TRUE(r.raw_attributes && r.packed_positions && r.point_size_in_vertices && r.clipping);
  EXPECT_EQ(r.num_varyings, 5);
  EXPECT_TRUE(r.fs.two_threads);
  EXPECT_EQ(r.fs.code, 0x1000u);
  EXPECT_EQ(r.fs.uniforms, 0x1100u);
  EXPECT_EQ(r.vs.code, 0x2000u);
  EXPECT_EQ(r.vs.uniforms, 0x2100u);
  EXPECT_EQ(r.cs.code, 0x3000u);
  EXPECT_EQ(r.cs.uniforms, 0x3100u);
  EXPECT_EQ(r.num_attributes, 2);
  EXPECT_EQ(r.attributes[0].vs_bytes, 256);
  EXPECT_EQ(r.attributes[0].cs_bytes, 0);
  EXPECT_EQ(r.attributes[1].vs_bytes, 12);
  EXPECT_EQ(r.attributes[1].cs_bytes, 12);
  EXPECT_EQ(r.attributes[1].address, 0x4100u);
  EXPECT_EQ(r.attributes[1].stride, 254u);
  EXPECT_EQ(r.attributes[1].vs_offset, 16);
  EXPECT_EQ(r.attributes[1].cs_offset, 8);
}

TEST_F(Vc4Packets, ExtendedRecordsHaveTheirStridesBehindEightAttributes) {
  const GpuAddr at = test_.allocate(256, 16);
  test_.memory().store<uint8_t>(at + 36 + 5, 7);
  test_.memory().store<uint32_t>(at + 100, 70000);
  EXPECT_EQ(load_vc4_shader_record(test_.memory(), at, 1, true).attributes[0].stride, 70000u);
  EXPECT_EQ(load_vc4_shader_record(test_.memory(), at, 1, false).attributes[0].stride, 7u);
}

#ifdef V3DEMU_VC4_PACKET_XML

/// What the description has wrong: vc4-graphics.md 1.1 and 1.5.
void correct(std::vector<XmlLayout>& layouts) {
  const auto find_named = [](auto& all, const char* name) -> auto& {
    for (auto& one : all)
      if (one.name == name) return one;
    throw std::out_of_range(name);
  };
  const auto place = [&](const char* owner, const char* name) -> XmlField& {
    return find_named(find_named(layouts, owner).fields, name);
  };
  const auto replace = [](XmlField& field, int& member, int wrong, int right) {
    ASSERT_EQ(member, wrong) << field.name;
    member = right;
  };
  XmlField& record = place("GL Shader State", "Address");
  replace(record, record.start, 0, 4);
  record.type = "address";
  for (const char* upper_half : {"Depth Offset Factor", "Depth Offset Units"})
    place("Depth Offset", upper_half).type = "f187";
  XmlField& uniforms = place("Shader Record", "Vertex Shader Uniforms Address");
  replace(uniforms, uniforms.start, 128, 160);
  XmlField& unused = place("Shader Record", "Fragment Shader Number of Uniforms (not used currently)");
  replace(unused, unused.width, 16, 8);
}

TEST(Vc4PacketXml, TablesAgreeWithMesa) {
  Xml xml = read_xml(V3DEMU_VC4_PACKET_XML);
  correct(xml.layouts);
  for (const XmlLayout& theirs : xml.layouts) {
    if (theirs.is_packet) {
      const auto row = std::find_if(std::begin(vc4_table::kPackets), std::end(vc4_table::kPackets),
                                    [&](const vc4_table::Row& r) { return r.number == theirs.opcode; });
      ASSERT_NE(row, std::end(vc4_table::kPackets)) << theirs.name;
      expect_same_layout(row->info, theirs);
    } else {
      const auto record = std::find_if(std::begin(vc4_table::kRecords), std::end(vc4_table::kRecords),
                                       [&](const RecordInfo& r) { return theirs.name == r.name; });
      ASSERT_NE(record, std::end(vc4_table::kRecords)) << theirs.name;
      expect_same_layout(*record, theirs);
    }
  }
  EXPECT_EQ(xml.layouts.size(), std::size(vc4_table::kPackets) + std::size(vc4_table::kRecords));
}

#endif

TEST_F(Vc4Packets, NumbersOfOtherChipsAreUnknown) {
  for (const uint8_t number : {2, 20, 30, 65, 107, 121, 255}) {
    Packet packet;
    EXPECT_FALSE(decode_vc4(test_.memory(), test_.put(std::vector<uint8_t>{number}, 1), &packet));
    EXPECT_EQ(packet.number, number);
  }
}

}  // namespace
}  // namespace v3d::cle
