#include "gpu/cle/packet.h"

#include <gtest/gtest.h>

#include "gpu/cle/dump.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/shader_record.h"
#include "gpu/cle/state_packets.h"
#include "tests/cle/packet_writer.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

Packet decode_one(TestJob* test, GpuAddr address, chip::Generation generation) {
  Packet p;
  decode(test->memory(), address, generation, &p);
  return p;
}

TEST(Packet, FieldsStandWhereTheReferenceSays) {
  TestJob test;
  // STORE_TILE_BUFFER_GENERAL, bytes worked out from cle-and-tiles.md 1.4.
  const GpuAddr at =
      test.put<uint8_t>({29, 0x5b, 0xbc, 0xac, 0x56, 0x34, 0x12, 0, 0x40, 0x33, 0x22, 0x11, 0x80});
  const Packet p = decode_one(&test, at, chip::Generation::k71);
  ASSERT_NE(p.info, nullptr);
  EXPECT_EQ(p.length, 13u);
  constexpr std::string_view kOwner = "Store Tile Buffer General";
  EXPECT_EQ(p.get(field(kOwner, "Buffer to Store")), 11u);
  EXPECT_EQ(p.get(field(kOwner, "Memory Format")), 5u);
  EXPECT_FALSE(p.flag(field(kOwner, "Flip Y")));
  EXPECT_EQ(p.get(field(kOwner, "Decimate mode")), 3u);
  EXPECT_EQ(p.get(field(kOwner, "Output Image Format")), 11u);
  EXPECT_TRUE(p.flag(field(kOwner, "Clear buffer being stored")));
  EXPECT_TRUE(p.flag(field(kOwner, "Channel Reverse")));
  EXPECT_FALSE(p.flag(field(kOwner, "R/B swap")));
  EXPECT_EQ(p.get(field(kOwner, "Height in UB or Stride")), 0x12345u);
  EXPECT_EQ(p.get(field(kOwner, "Height")), 0x4000u);
  EXPECT_EQ(p.get(field(kOwner, "Address")), 0x80112233u);
}

TEST(Packet, AddressesSitInPlace) {
  TestJob test;
  const Packet p = decode_one(&test, test.put<uint8_t>({64, 0x63, 0x55, 0x34, 0x12}), chip::Generation::k71);
  EXPECT_EQ(p.get(field("GL Shader State", "address")), 0x12345560u);
  EXPECT_EQ(p.get(field("GL Shader State", "number of attribute arrays")), 3u);
}

TEST(Packet, Opcode25HasALengthPerVersion) {
  TestJob test;
  const GpuAddr at = test.put<uint8_t>({25, 3});
  EXPECT_EQ(decode_one(&test, at, chip::Generation::k71).length, 1u);
  EXPECT_EQ(decode_one(&test, at, chip::Generation::k42).length, 2u);
}

TEST(Packet, FormsOfRenderingModeCfgFollowTheirSubId) {
  TestJob test;
  const auto name = [&](uint8_t first, chip::Generation generation) -> std::string {
    const GpuAddr at = test.put<uint8_t>({121, first, 0, 0, 0, 0, 0, 0, 0}, 1);
    const Packet p = decode_one(&test, at, generation);
    return p.info ? p.info->name : "none";
  };
  EXPECT_EQ(name(0x70, chip::Generation::k71), "Tile Rendering Mode Cfg (Common)");
  EXPECT_EQ(name(0x01, chip::Generation::k71), "Tile Rendering Mode Cfg (ZS Clear Values)");
  for (int rt = 0; rt < 8; ++rt) {  // the target's number begins at bit 3
    EXPECT_EQ(name(static_cast<uint8_t>(rt << 3 | 2), chip::Generation::k71),
              "Tile Rendering Mode Cfg (Render Target Part1)");
    EXPECT_EQ(name(static_cast<uint8_t>(rt << 3 | 3), chip::Generation::k71),
              "Tile Rendering Mode Cfg (Render Target Part2)");
    EXPECT_EQ(name(static_cast<uint8_t>(rt << 3 | 4), chip::Generation::k71),
              "Tile Rendering Mode Cfg (Render Target Part3)");
  }
  EXPECT_EQ(name(0x05, chip::Generation::k71), "none");
  EXPECT_EQ(name(0x01, chip::Generation::k42), "Tile Rendering Mode Cfg (Color)");
  EXPECT_EQ(name(0x02, chip::Generation::k42), "Tile Rendering Mode Cfg (ZS Clear Values)");
  EXPECT_EQ(name(0x35, chip::Generation::k42), "Tile Rendering Mode Cfg (Clear Colors Part3)");
  EXPECT_EQ(name(0x06, chip::Generation::k42), "none");
}

TEST(Packet, FeedbackSpecsBelongToTheirPacket) {
  TestJob test;
  EXPECT_EQ(decode_one(&test, test.put<uint8_t>({74, 0x83}), chip::Generation::k71).length, 2u + 3 * 2);
  EXPECT_EQ(decode_one(&test, test.put<uint8_t>({74, 0x00}), chip::Generation::k71).length, 2u);
}

// Its packets stand in a table of their own: none is taken for one of the others.
TEST(Packet, TheTableHasNoneOfVideoCoreIv) {
  for (const PacketInfo& p : packet_table::kPackets) EXPECT_EQ(p.generations & k21, 0) << p.name;
  for (const RecordInfo& r : packet_table::kRecords) EXPECT_EQ(r.generations & k21, 0) << r.name;
}

TEST(Packet, EveryOtherOpcodeIsUnknown) {
  TestJob test;
  int known = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const GpuAddr at =
        test.put<uint8_t>({static_cast<uint8_t>(opcode), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    for (const chip::Generation generation : {chip::Generation::k42, chip::Generation::k71}) {
      Packet p;
      const bool found = decode(test.memory(), at, generation, &p);
      EXPECT_EQ(found, p.info != nullptr);
      EXPECT_EQ(static_cast<int>(p.opcode), opcode);
      EXPECT_EQ(found, p.length > 0);
      known += found;
    }
  }
  EXPECT_GT(known, 150);
}

TEST(Packet, NothingIsReadBeyondThePacket) {
  TestJob test;
  for (const PacketInfo& info : packet_table::kPackets) {
    const chip::Generation generation =
        info.generations & k71 ? chip::Generation::k71 : chip::Generation::k42;
    std::vector<uint8_t> bytes(info.length);
    bytes[0] = static_cast<uint8_t>(info.opcode);
    if (info.sub_id >= 0) put_field(&bytes[1], info.fields[0], static_cast<uint8_t>(info.sub_id));
    const GpuAddr at = TestJob::end() - info.length;
    test.memory().write(at, bytes.data(), bytes.size());
    Packet p;
    EXPECT_TRUE(decode(test.memory(), at, generation, &p)) << info.name;
  }
  EXPECT_EQ(test.space().take_faults().count, 0u);
}

// ---- State

draw::DrawState apply(const PacketWriter& list, chip::Generation generation = chip::Generation::k71) {
  TestJob test;
  draw::DrawState state = initial_state();
  GpuAddr pc = list.build(&test);
  for (const GpuAddr end = pc + list.size(); pc != end;) {
    const Packet p = decode_one(&test, pc, generation);
    EXPECT_NE(p.info, nullptr);
    EXPECT_TRUE(apply_state(p, generation, &state)) << p.info->name;
    pc += p.length;
  }
  return state;
}

TEST(StatePackets, CfgBitsOfBothVersions) {
  for (const chip::Generation generation : {chip::Generation::k71, chip::Generation::k42}) {
    PacketWriter list(generation);
    list.packet("Cfg Bits", {{"Enable Reverse Facing Primitive", 1},
                             {"Clockwise Primitives", 1},
                             {"Line Rasterization", 1},
                             {"Rasterizer Oversample Mode", 1},
                             {"Depth-Test Function", 3},
                             {"Z updates enable", 1},
                             {"Direct3D Provoking Vertex", 1}});
    const draw::DrawState s = apply(list, generation);
    EXPECT_FALSE(s.cfg.draw_front);
    EXPECT_TRUE(s.cfg.draw_back);
    EXPECT_TRUE(s.cfg.clockwise);
    EXPECT_EQ(s.cfg.line_mode, 1);
    EXPECT_EQ(s.cfg.oversample, 1);
    EXPECT_EQ(s.cfg.depth_func, Compare::kLequal);
    EXPECT_TRUE(s.cfg.z_write);
    EXPECT_TRUE(s.cfg.provoking_first);
    EXPECT_FALSE(s.cfg.blend);
    EXPECT_EQ(s.cfg.z_clip_mode, generation == chip::Generation::k71 ? 0 : draw::CfgBits::kZClipRange);
  }
  // Raw bits: 7.1 has depth bounds where 4.2 has the second bit of the line mode.
  TestJob test;
  const GpuAddr at = test.put<uint8_t>({96, 0x20, 0x04, 0x80});
  draw::DrawState v71 = initial_state(), v42 = initial_state();
  apply_state(decode_one(&test, at, chip::Generation::k71), chip::Generation::k71, &v71);
  apply_state(decode_one(&test, at, chip::Generation::k42), chip::Generation::k42, &v42);
  EXPECT_TRUE(v71.cfg.depth_bounds);
  EXPECT_TRUE(v71.cfg.z_clamp);
  EXPECT_EQ(v71.cfg.z_clip_mode, 2);
  EXPECT_EQ(v42.cfg.line_mode, 2);
  EXPECT_FALSE(v42.cfg.depth_bounds);
}

TEST(StatePackets, StencilGoesToTheFacesItNames) {
  PacketWriter list;
  list.packet("Stencil Cfg", {{"Stencil Ref Value", 7},
                              {"Stencil Test Mask", 0xf0},
                              {"Stencil Test Function", 1},
                              {"Stencil Test Fail Op", 3},
                              {"Depth Test Fail Op", 5},
                              {"Stencil Pass Op", 2},
                              {"Stencil Write Mask", 0x3c},
                              {"Back Config", 1}});
  const draw::DrawState s = apply(list);
  EXPECT_EQ(s.front.ref, 0);
  EXPECT_EQ(s.back.ref, 7);
  EXPECT_EQ(s.back.test_mask, 0xf0);
  EXPECT_EQ(s.back.write_mask, 0x3c);
  EXPECT_EQ(s.back.func, Compare::kLess);
  EXPECT_EQ(s.back.fail, draw::StencilOp::kIncr);
  EXPECT_EQ(s.back.depth_fail, draw::StencilOp::kInvert);
  EXPECT_EQ(s.back.pass, draw::StencilOp::kReplace);
}

TEST(StatePackets, BlendStatePerTarget) {
  PacketWriter list;
  list.packet("Blend Cfg",
              {{"Color blend src factor", 6}, {"Color blend dst factor", 7}, {"Render Target Mask", 0x81}})
      .packet("Blend Cfg", {{"Alpha blend mode", 4}, {"Render Target Mask", 0x02}})
      .packet("Blend Enables", {{"Mask", 0x83}})
      .packet("Color Write Masks", {{"Mask", 0xf000000au}})
      .packet("Blend Constant Color", {{"Red (F16)", 0x3c00}, {"Alpha (F16)", 0xc000}});
  const draw::DrawState s = apply(list);
  EXPECT_EQ(s.blend[0].color_src, draw::BlendFactor::kSrcAlpha);
  EXPECT_EQ(s.blend[7].color_dst, draw::BlendFactor::kOneMinusSrcAlpha);
  EXPECT_EQ(s.blend[1].alpha_mode, draw::BlendMode::kMax);
  EXPECT_EQ(s.blend[1].color_src, draw::BlendFactor::kZero);
  EXPECT_EQ(s.blend[2].color_src, draw::BlendConfig().color_src);
  EXPECT_EQ(s.blend_enables, 0x83);
  EXPECT_EQ(s.color_masks[0], 0xa);
  EXPECT_EQ(s.color_masks[7], 0xf);
  EXPECT_EQ(s.blend_color[0], 1.0f);
  EXPECT_EQ(s.blend_color[3], -2.0f);
}

TEST(StatePackets, VaryingFlagsComeInBlocksOf24) {
  PacketWriter list;
  list.packet("Flat Shade Flags", {{"Varying offset V0", 1},
                                   {"Flat Shade Flags for varyings V0*24", 0x800001},
                                   {"Action for Flat Shade Flags of higher numbered varyings", 2}})
      .packet("Centroid Flags", {{"Centroid Flags for varyings V0*24", 0x5}})
      .packet("Non-perspective Flags", {{"Varying offset V0", 2},
                                        {"Non-perspective Flags for varyings V0*24", 1},
                                        {"Action for Non-perspective Flags of lower numbered varyings", 2}});
  draw::DrawState s = apply(list);
  EXPECT_FALSE(s.flat.test(23));
  EXPECT_TRUE(s.flat.test(24));
  EXPECT_FALSE(s.flat.test(25));
  EXPECT_TRUE(s.flat.test(47));
  EXPECT_TRUE(s.flat.test(48));
  EXPECT_TRUE(s.flat.test(71));
  EXPECT_FALSE(s.flat.test(72));
  EXPECT_TRUE(s.centroid.test(2));
  EXPECT_TRUE(s.noperspective.test(0));
  EXPECT_TRUE(s.noperspective.test(48));
  list.packet("Zero All Flat Shade Flags");
  s = apply(list);
  EXPECT_FALSE(s.flat.test(24));
  EXPECT_TRUE(s.noperspective.test(0));
}

TEST(StatePackets, ViewportWindowAndDepth) {
  PacketWriter list;
  list.packet("Viewport Offset",
              {{"Fine X", 320 * 256 + 128}, {"Coarse X", -1}, {"Fine Y", 64}, {"Coarse Y", 3}})
      .packet("clip_window", {{"Clip Window Left Pixel Coordinate", 1},
                              {"Clip Window Bottom Pixel Coordinate", 2},
                              {"Clip Window Width in pixels", 3},
                              {"Clip Window Height in pixels", 4}})
      .packet("Clipper XY Scaling", {{"Viewport Half-Width in 1/64th of pixel", 20480.0f},
                                     {"Viewport Half-Height in 1/64th of pixel", -1.5f}})
      .packet("Clipper Z Scale and Offset no guardband",
              {{"Viewport Z Scale (Zc to Zs)", 0.25f}, {"Viewport Z Offset (Zc to Zs)", 0.75f}})
      .packet("Clipper Z min/max clipping planes", {{"Minimum Zw", 0.5f}, {"Maximum Zw", 1.0f}})
      .packet("Depth Offset",
              {{"Depth Offset Factor", 2.0f}, {"Depth Offset Units", -8.0f}, {"Limit", 0.125f}})
      .packet("Depth Bounds Test Limits", {{"Lower Test Limit", 0.1f}, {"Upper Test Limit", 0.9f}})
      .packet("Point size", {{"Point Size", 3.5f}})
      .packet("Line width", {{"Line width", 2.5f}})
      .packet("Sample State", {{"Mask", 5}, {"Coverage", 1.0f}})
      .packet("Occlusion Query Counter", {{"address", 0x123400}});
  const draw::DrawState s = apply(list);
  EXPECT_EQ(s.viewport_x, 320 * 256 + 128 - 64 * 256);
  EXPECT_EQ(s.viewport_y, 64 + 3 * 64 * 256);
  EXPECT_EQ(s.clip_left, 1);
  EXPECT_EQ(s.clip_bottom, 2);
  EXPECT_EQ(s.clip_width, 3);
  EXPECT_EQ(s.clip_height, 4);
  EXPECT_EQ(s.xy_half_width, 20480.0f);
  EXPECT_EQ(s.xy_half_height, -1.5f);
  EXPECT_EQ(s.z_scale, 0.25f);
  EXPECT_EQ(s.z_offset, 0.75f);
  EXPECT_EQ(s.z_min_clip, 0.5f);
  EXPECT_EQ(s.z_max_clip, 1.0f);
  EXPECT_EQ(s.offset_factor, 2.0f);
  EXPECT_EQ(s.offset_units, -8.0f);
  EXPECT_EQ(s.offset_limit, 0.125f);
  EXPECT_EQ(s.depth_bounds_min, 0.1f);
  EXPECT_EQ(s.depth_bounds_max, 0.9f);
  EXPECT_EQ(s.point_size, 3.5f);
  EXPECT_EQ(s.line_width, 2.5f);
  EXPECT_EQ(s.sample_mask, 5);
  EXPECT_EQ(s.occlusion_counter, 0x123400u);
}

// ---- Records

TEST(ShaderRecords, WithAGeometryShaderTheMainRecordFollowsItsRecords) {
  for (const chip::Generation generation : {chip::Generation::k71, chip::Generation::k42}) {
    TestJob test;
    std::vector<uint8_t> bytes;
    const auto append = [&bytes](const std::vector<uint8_t>& more) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    append(make_record(record("Geometry Shader State Record"),
                       {{"Geometry Bin Mode Shader Code Address", 0x1230},
                        {"Geometry Bin Mode Shader Start in final thread section", 1},
                        {"Geometry Render Mode Shader Code Address", 0x4560},
                        {"Geometry Render Mode Shader Uniforms Address", 0x7890}}));
    append(make_record(record("Tessellation/Geometry Common Params"),
                       {{"Geometry Shader output format", 2}, {"Geometry Shader Instances", 0}}));
    append(make_record(record("Tessellation/Geometry Shader Params"),
                       {{"GS output segment size in sectors", 5}, {"GS output segment pack mode", 0}}));
    append(make_record(record("Tessellation/Geometry Shader Params"),
                       {{"GS output segment size in sectors", 3}, {"GS output segment pack mode", 3}}));
    EXPECT_EQ(bytes.size(), 36u);
    const RecordInfo& main = generation == chip::Generation::k71 ? record("GL Shader State Record", k71)
                                                                 : record("GL Shader State Record", k42);
    append(make_record(main, {{"Enable clipping", 1},
                              {"Number of varyings in Fragment Shader", 9},
                              {"Coordinate Shader output VPM segment size", 2},
                              {"Vertex Shader output VPM segment size", 4},
                              {"Coordinate Shader Code Address", 0xabc8},
                              {"Coordinate Shader Uniforms Address", 0xdef0},
                              {"Fragment Shader 4-way threadable", 1}}));
    append(make_record(
        record("GL Shader State Attribute Record"),
        {{"Address", 0x5001}, {"Type", 4}, {"Normalized int type", 1}, {"Instance Divisor", 300}}));
    append(make_record(record("GL Shader State Attribute Record"),
                       {{"Vec size", 3},
                        {"Type", 2},
                        {"Stride", 12},
                        {"Maximum Index", 99},
                        {"Number of values read by Vertex shader", 15}}));
    const draw::ShaderRecord r =
        load_shader_record(test.memory(), test.put(bytes), 2, true,
                           generation == chip::Generation::k71 ? chip::default_profile() : profile_42());
    EXPECT_TRUE(r.has_gs);
    EXPECT_EQ(r.gs_bin.code, 0x1230u);
    EXPECT_TRUE(r.gs_bin.final_section);
    EXPECT_EQ(r.gs_render.code, 0x4560u);
    EXPECT_EQ(r.gs_render.uniforms, 0x7890u);
    EXPECT_EQ(r.gs_output, 2);
    EXPECT_EQ(r.gs_invocations, 32);
    EXPECT_EQ(r.gs_bin_rows, 5 * 8);
    EXPECT_EQ(r.gs_render_rows, 3 * 8 * 16);  // one lane has the sectors of 16
    EXPECT_TRUE(r.clipping);
    EXPECT_EQ(r.num_varyings, 9);
    EXPECT_EQ(r.cs_output_sectors, 2);
    EXPECT_EQ(r.vs_output_sectors, 4);
    EXPECT_EQ(r.cs.code, 0xabc8u);
    EXPECT_EQ(r.cs.uniforms, 0xdef0u);
    EXPECT_TRUE(r.fs.four_threads);
    EXPECT_FALSE(r.cs.four_threads);
    ASSERT_EQ(r.num_attributes, 2);
    EXPECT_EQ(r.attributes[0].address, 0x5001u);
    EXPECT_EQ(r.attributes[0].vec_size, 4);
    EXPECT_EQ(r.attributes[0].type, 4);
    EXPECT_TRUE(r.attributes[0].normalized);
    EXPECT_EQ(r.attributes[0].divisor, 300);
    EXPECT_EQ(r.attributes[1].vec_size, 3);
    EXPECT_EQ(r.attributes[1].stride, 12u);
    EXPECT_EQ(r.attributes[1].max_index, 99u);
    EXPECT_EQ(r.attributes[1].vs_words, 15);
  }
}

TEST(ShaderRecords, OfVersion7_1_10TellOfBaseVertexAndDrawIndex) {
  chip::Profile profile = chip::default_profile();
  profile.revision = 10;
  TestJob test;
  std::vector<uint8_t> bytes(32);
  bytes[0] = 0x42;  // clipping; draw index for the coordinate program
  bytes[1] = 0x14;  // base vertex for the vertex program; depth written
  bytes[2] = 0x25;  // sample shading, primitive id as varying, no implicit varyings
  bytes[3] = 7;
  const draw::ShaderRecord r = load_shader_record(test.memory(), test.put(bytes), 1, false, profile);
  EXPECT_TRUE(r.clipping);
  EXPECT_TRUE(r.cs_draw_index);
  EXPECT_FALSE(r.cs_base_vertex);
  EXPECT_FALSE(r.vs_draw_index);
  EXPECT_TRUE(r.vs_base_vertex);
  EXPECT_FALSE(r.vs_vertex_id);
  EXPECT_TRUE(r.fs_writes_z);
  EXPECT_TRUE(r.sample_shading);
  EXPECT_TRUE(r.primitive_id_varying);
  EXPECT_TRUE(r.no_implicit_varyings);
  EXPECT_EQ(r.num_varyings, 7);
  EXPECT_EQ(shader_record_layout(0x1000, false, profile).attributes, 0x1020u);
}

// ---- Dump

std::vector<std::string> dump(TestJob* test, GpuAddr start, GpuAddr end,
                              std::vector<std::string>* shaders = nullptr) {
  std::vector<std::string> lines;
  DumpSink sink{.line = [&](std::string_view s) { lines.emplace_back(s); }};
  if (shaders) sink.shader = [=](std::string_view stage, const auto&) { shaders->emplace_back(stage); };
  dump_list(test->memory(), start, end, chip::default_profile(), sink);
  return lines;
}

bool contains(const std::vector<std::string>& lines, std::string_view text) {
  for (const std::string& l : lines)
    if (l.find(text) != std::string::npos) return true;
  return false;
}

TEST(Dump, FollowsBranchesSubListsAndRecords) {
  TestJob test;
  const GpuAddr shader_record = test.allocate(256);
  const GpuAddr sub =
      PacketWriter()
          .packet("Line width", {{"Line width", 2.0f}})
          .packet("GL Shader State", {{"address", shader_record}, {"number of attribute arrays", 1}})
          .packet("Return from sub-list")
          .build(&test);
  PacketWriter tail;
  tail.packet("Vertex Array Prims", {{"mode", 5}, {"Length", 4}}).packet("Flush");
  const GpuAddr second = tail.build(&test);
  PacketWriter head;
  head.packet("Branch to Sub-list", {{"address", sub}})
      .packet("Transform Feedback Specs",
              {{"Number of 16-bit Output Data Specs following", 1}, {"Enable", 1}})
      .byte(6)
      .byte(0x10)
      .packet("Branch", {{"address", second}});
  std::vector<std::string> shaders;
  const auto lines = dump(&test, head.build(&test), second + tail.size(), &shaders);
  EXPECT_TRUE(contains(lines, "Line width: 2"));
  EXPECT_TRUE(contains(lines, "GL Shader State Attribute Record"));
  EXPECT_TRUE(contains(lines, "First Shaded Vertex Value to output: 6"));
  EXPECT_TRUE(contains(lines, "mode: 5 (triangle strip)"));
  EXPECT_TRUE(contains(lines, ": Flush"));
  EXPECT_EQ(shaders, (std::vector<std::string>{"coordinate"}));  // all addresses are 0: one program
}

TEST(Dump, EndsOnLoopsAndGarbage) {
  TestJob test;
  const GpuAddr at = test.allocate(16, 1);
  PacketWriter loop;
  loop.packet("NOP").packet("Branch", {{"address", at}});
  test.memory().write(at, loop.bytes().data(), loop.size());
  EXPECT_TRUE(contains(dump(&test, at, 0), "continues as above"));
  EXPECT_TRUE(contains(dump(&test, test.put<uint8_t>({200}), 0), "unknown packet 200"));
}

TEST(Dump, GenericTileListsOfRenderLists) {
  TestJob test;
  PacketWriter generic;
  generic.packet("Tile Coordinates Implicit")
      .packet("End of Loads")
      .packet(
          "Store Tile Buffer General",
          {{"Buffer to Store", 0}, {"Memory Format", 5}, {"Output Image Format", 27}, {"Address", 0x40000}})
      .packet("Return from sub-list");
  const GpuAddr start = generic.build(&test);
  PacketWriter rcl;
  rcl.packet("Start Address of Generic Tile List", {{"start", start}, {"end", start + generic.size()}})
      .packet("Supertile Coordinates")
      .packet("End of rendering");
  const GpuAddr at = rcl.build(&test);
  const auto lines = dump(&test, at, at + rcl.size());
  EXPECT_TRUE(contains(lines, "Output Image Format: 27 (rgba8)"));
  EXPECT_TRUE(contains(lines, "End of rendering"));
}

}  // namespace
}  // namespace v3d::cle
