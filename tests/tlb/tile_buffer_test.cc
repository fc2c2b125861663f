// Life of the tile's contents: configuration, clears, snapshots; and what hostile packets can say.

#include <bit>

#include "gpu/mmu/address_space.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

using tmu::Tiling;

class TileBufferTest : public ::testing::Test {
 protected:
  uint32_t pixel(uint8_t rt, uint32_t x, uint32_t y) {
    Lanes words[4];
    fixture_.read(block_batch(x & ~7u, y & ~1u, false), spec_32(rt), words);
    return words[0][(x & 7) / 2 * 4 + (y & 1) * 2 + (x & 1)];
  }
  void write(uint8_t rt, uint32_t x, uint32_t y, uint32_t value) {
    const Lanes words[4] = {splat(value), splat(value), splat(value), splat(value)};
    fixture_.write(fixture_.plain_state(), block_batch(x, y, false), spec_32(rt), words);
  }
  static Config two_targets() {
    Config config = TileFixture::one_target(ColorType::k8Ui, 0, 128, 128);
    config.num_render_targets = 2;
    config.targets[0].clear = {0x04030211, 0, 0, 0};
    config.targets[1].used = true;
    config.targets[1].type = ColorType::k32Ui;
    config.targets[1].bpp = 2;
    config.targets[1].clear = {1001, 1002, 1003, 1004};
    return config;
  }
  /// Depth (format 40) and stencil of pixel (0, 0).
  std::pair<float, int> depth_stencil() {
    LoadStore packet = TileFixture::image(9, 40, Tiling::kUif, 16);
    fixture_.store(packet);
    const float z = fixture_.memory().load<float>(packet.address);
    packet.buffer = 10;
    packet.format = 44;
    fixture_.store(packet);
    return {z, fixture_.memory().load<uint8_t>(packet.address)};
  }
  /// Depth and stencil of the first block become 0.25 and 3.
  void write_depth_stencil() {
    draw::DrawState state;
    state.cfg.z_write = state.cfg.stencil = true;
    state.front.ref = 3;
    state.front.pass = draw::StencilOp::kReplace;
    FragmentBatch batch = block_batch(0, 0, false);
    batch.z[0] = splat(0.25f);
    fixture_.test(state, batch);
  }

  TileFixture fixture_;
};

TEST_F(TileBufferTest, ConfigureClears) {
  fixture_.configure(two_targets());
  EXPECT_EQ(pixel(0, 5, 5), 0x11u);
  EXPECT_EQ(pixel(1, 63, 63), 1001u);
  write(0, 0, 0, 7);
  fixture_.configure(two_targets());
  EXPECT_EQ(pixel(0, 0, 0), 0x11u);
}

TEST_F(TileBufferTest, ColorsOutliveTilesAndDepthDoesNot) {
  Config config = two_targets();
  config.clear_z = 0.75f;
  config.clear_stencil = 9;
  fixture_.configure(config);
  fixture_.tile().begin_tile(0, 0);
  write(0, 8, 2, 77);
  write_depth_stencil();
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{0.25f, 3}));
  fixture_.tile().begin_tile(1, 1);
  EXPECT_EQ(pixel(0, 8, 2), 77u);
  EXPECT_EQ(pixel(0, 0, 0), 0x11u);
  fixture_.tile().begin_tile(0, 0);
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{0.75f, 9}));
  fixture_.tile().clear_colors();
  EXPECT_EQ(pixel(0, 8, 2), 0x11u);
}

TEST_F(TileBufferTest, WithoutAutomaticClearDepthStays) {
  Config config = two_targets();
  config.auto_clear_zs = false;
  fixture_.configure(config);
  write_depth_stencil();
  fixture_.tile().begin_tile(0, 0);
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{0.25f, 3}));
  fixture_.tile().clear_colors();
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{0.25f, 3}));
  fixture_.tile().clear_depth_stencil();
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{1.0f, 0}));
}

TEST_F(TileBufferTest, ClearAfterStoreTakesThatBufferOnly) {
  fixture_.configure(two_targets());
  write(0, 0, 0, 5);
  write(1, 0, 0, 6);
  LoadStore packet = TileFixture::image(0, 34, Tiling::kRaster, 1024);
  packet.clear_after = true;
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint32_t>(packet.address), 0x05050505u);
  EXPECT_EQ(pixel(0, 0, 0), 0x11u);
  EXPECT_EQ(pixel(1, 0, 0), 6u);
}

TEST_F(TileBufferTest, SnapshotsCopyContents) {
  Config config = two_targets();
  config.auto_clear_zs = false;
  fixture_.configure(config);
  TileBuffer worker(fixture_.memory());
  ASSERT_TRUE(worker.configure(config));
  const auto stored = [&](uint8_t buffer, uint8_t format) {
    LoadStore packet = TileFixture::image(buffer, format, Tiling::kUif, 16);
    std::string error;
    EXPECT_TRUE(worker.store(packet, &error)) << error;
    return fixture_.memory().load<uint32_t>(packet.address);
  };
  write(0, 0, 0, 5);
  write(1, 0, 0, 6);
  write_depth_stencil();
  worker.copy_from(fixture_.tile());
  EXPECT_EQ(stored(0, 34), 0x05050505u);
  EXPECT_EQ(stored(1, 15), 6u);
  EXPECT_EQ(stored(9, 40), std::bit_cast<uint32_t>(0.25f));
  EXPECT_EQ(stored(10, 44) & 0xff, 3u);
  // From a cleared buffer over a written one, and from a cleared one over a cleared one.
  fixture_.configure(config);
  for (int i = 0; i < 2; ++i) {
    worker.copy_from(fixture_.tile());
    EXPECT_EQ(stored(0, 34), 0x04030211u);
    EXPECT_EQ(stored(1, 15), 1001u);
    EXPECT_EQ(stored(9, 40), std::bit_cast<uint32_t>(1.0f));
  }
}

TEST_F(TileBufferTest, ClearsBetweenDrawsTakeWhatWasDrawn) {
  fixture_.configure(two_targets());
  write(0, 8, 2, 77);
  write_depth_stencil();
  fixture_.tile().clear_colors();
  fixture_.tile().clear_depth_stencil();
  write(0, 16, 4, 78);
  EXPECT_EQ(pixel(0, 8, 2), 0x11u);
  EXPECT_EQ(pixel(0, 16, 4), 78u);
  EXPECT_EQ(depth_stencil(), (std::pair<float, int>{1.0f, 0}));
}

TEST_F(TileBufferTest, LoadsOfEdgeTilesLeaveTheRestClear) {
  Config config = two_targets();
  config.width = 64 + 24;
  fixture_.configure(config);
  fixture_.randomize(3);
  const LoadStore packet = TileFixture::image(0, 34, Tiling::kRaster, 1024);
  fixture_.tile().begin_tile(1, 0);
  fixture_.load(packet);
  fixture_.tile().begin_tile(0, 0);
  EXPECT_EQ(pixel(0, 23, 1), fixture_.bytes()[packet.address + 1024 + (64 + 23) * 4]);
  EXPECT_EQ(pixel(0, 24, 1), 0x11u);
  EXPECT_EQ(pixel(0, 63, 63), 0x11u);
}

/// What is stored from a tile that nobody wrote equals what is stored pixel by pixel.
TEST_F(TileBufferTest, ClearedTilesStoreTheClearColor) {
  Config config = TileFixture::one_target(ColorType::k16F, 1, 75, 35);
  config.targets[0].clear = {0x38003c00, 0x34003800};
  fixture_.configure(config);
  fixture_.randomize(2);
  for (uint8_t format : {0, 3, 18}) {
    const uint32_t cpp = format == 18 ? 8 : 4;
    const LoadStore packet = TileFixture::image(0, format, Tiling::kUif, 8);
    LoadStore second = packet;
    second.address += 1 << 20;
    fixture_.configure(config);
    for (uint32_t column = 0; column < 2; ++column) {
      fixture_.tile().begin_tile(column, 0);
      fixture_.store(packet);
    }
    fixture_.load(packet);  // from now on the colours come from the planes
    for (uint32_t column = 0; column < 2; ++column) {
      fixture_.tile().begin_tile(column, 0);
      fixture_.load(packet);
      fixture_.store(second);
    }
    for (uint32_t y = 0; y < 35; ++y)
      for (uint32_t x = 0; x < 75; ++x) {
        const uint32_t offset = tmu::texel_offset(Tiling::kUif, cpp, 8, x, y);
        ASSERT_EQ(0, std::memcmp(&fixture_.bytes()[packet.address + offset],
                                 &fixture_.bytes()[second.address + offset], cpp));
      }
    if (format == 0) {
      EXPECT_EQ(fixture_.memory().load<uint32_t>(packet.address), 0x40bcbcffu);
    }
  }
}

TEST_F(TileBufferTest, TilesOutsideTheFrameStoreNothing) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0, 100, 20));
  fixture_.randomize(3);
  const std::vector<uint8_t> before = fixture_.bytes();
  for (uint32_t column : {2u, 4095u, 0xffffffffu})
    for (uint32_t row : {0u, 1u, 0x04000000u}) {
      if (column == 0 && row == 0) continue;
      fixture_.tile().begin_tile(column, row);
      fixture_.store(TileFixture::image(0, 27, Tiling::kUif, 8));
      fixture_.load(TileFixture::image(0, 27, Tiling::kRaster, 8));
    }
  EXPECT_TRUE(before == fixture_.bytes());
}

TEST_F(TileBufferTest, RefusesImpossibleConfigurations) {
  fixture_.configure(two_targets());
  const auto refused = [&](const std::function<void(Config&)>& change, const char* word) {
    Config config = two_targets();
    change(config);
    std::string error;
    EXPECT_FALSE(fixture_.tile().configure(config, &error)) << word;
    EXPECT_FALSE(fixture_.tile().configure(config));
    EXPECT_NE(error.find(word), std::string::npos) << error;
    EXPECT_EQ(pixel(1, 9, 9), 1001u);  // the old one still works
  };
  for (uint32_t size : {0u, 4u, 12u, 63u, 128u, 1024u, 0x80000000u}) {
    refused([&](Config& c) { c.tile_width = size; }, "tile of");
    refused([&](Config& c) { c.tile_height = size; }, "tile of");
  }
  refused([](Config& c) { c.width = 65537; }, "frame of");
  refused([](Config& c) { c.height = 0xffffffff; }, "frame of");
  refused([](Config& c) { c.num_render_targets = 9; }, "9 render targets");
  refused([](Config& c) { c.targets[1].bpp = 3; }, "bpp 3");
  refused([](Config& c) { c.targets[1].type = static_cast<ColorType>(9); }, "type 9");
  refused([](Config& c) { c.targets[1].clamp = static_cast<Clamp>(6); }, "clamp 6");
  refused([](Config& c) { c.depth_type = static_cast<DepthType>(3); }, "depth type 3");
}

/// The largest tile buffer that packets can ask for, written and stored at the far end of the largest frame.
TEST_F(TileBufferTest, LargestConfiguration) {
  Config config;
  config.width = config.height = 65536;
  config.multisample = true;
  config.num_render_targets = 8;
  for (RenderTarget& target : config.targets)
    target = {true, ColorType::k32Ui, Clamp::kNone, 2, {1, 2, 3, 4}};
  fixture_.configure(config);
  fixture_.tile().begin_tile(1023, 1023);
  const Lanes words[4] = {splat(11u), splat(12u), splat(13u), splat(14u)};
  for (uint8_t rt = 0; rt < 8; ++rt)
    fixture_.write(fixture_.plain_state(), block_batch(65528, 65534, true), spec_32(rt), words);
  LoadStore packet = TileFixture::image(7, 15, Tiling::kRaster, 64);
  packet.address -= 65535 * 64 + 65535 * 16;  // so that the last pixel lies at kImage
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint32_t>(TileFixture::kImage), 11u);
  EXPECT_EQ(fixture_.memory().load<uint32_t>(TileFixture::kImage + 12), 14u);
}

/// Random packets, positions and programs over a real address space with nothing mapped: it is enough to
/// live.
TEST(HostileTile, RandomPacketsDoNoHarm) {
  const std::unique_ptr<mmu::AddressSpace> space = mmu::AddressSpace::create().value();
  TileBuffer tile(space->memory());
  const auto thread = std::make_unique<qpu::Thread>();
  std::mt19937 random(23);
  int stored = 0;
  for (int i = 0; i < 400; ++i) {
    Config config;
    config.width = random() % (random() % 2 ? 100 : 70000);
    config.height = random() % (random() % 2 ? 100 : 70000);
    config.tile_width = 8u << random() % 5;
    config.tile_height = 8u << random() % 4;
    config.multisample = random() % 2;
    config.num_render_targets = static_cast<uint8_t>(random() % 10);
    for (RenderTarget& target : config.targets)
      target = {random() % 4 != 0,
                static_cast<ColorType>(random() % 9),
                static_cast<Clamp>(random() % 6),
                static_cast<uint8_t>(random() % 3),
                {1, 2, 3, 4}};
    config.depth_type = static_cast<DepthType>(random() % 3);
    tile.configure(config);
    tile.begin_tile(random() % 3, static_cast<uint32_t>(random() % 2 ? random() % 3 : random()));

    draw::DrawState state;
    const auto byte = [&] { return static_cast<uint8_t>(random()); };
    const auto mode = [&] { return static_cast<draw::BlendMode>(byte() & 15); };
    const auto factor = [&] { return static_cast<draw::BlendFactor>(byte() & 15); };
    state.cfg.blend = state.cfg.stencil = true;
    state.cfg.depth_func = static_cast<Compare>(random() % 8);
    state.blend_enables = byte();
    for (draw::BlendConfig& blend : state.blend)
      blend = {mode(), factor(), factor(), mode(), factor(), factor()};
    FragmentBatch batch{};
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      batch.x[lane] = static_cast<uint32_t>(random());
      batch.y[lane] = static_cast<uint32_t>(random());
      batch.coverage[lane] = thread->msf[lane] = static_cast<uint32_t>(random());
    }
    Lanes words[16] = {};
    qpu::TlbPort& port = tile.fragment_port(state, batch, random() % 2);
    tile.test();
    for (uint8_t rt = 0; rt < 8; ++rt) {
      const qpu::TlbSpec spec = random() % 2 ? spec_f16(rt, random() % 2, 1 + random() % 2)
                                             : spec_32(rt, random() % 2, 1 + random() % 4);
      port.write_depth(*thread, spec_depth(random() % 2), words[0], static_cast<LaneMask>(random()));
      port.write_color(*thread, spec, words, static_cast<LaneMask>(random()));
      port.read_color(*thread, spec, words);
    }
    LoadStore packet;
    packet.buffer = static_cast<uint8_t>(random() % 12);
    packet.memory_format = static_cast<uint8_t>(random() % 6);
    packet.decimate = static_cast<uint8_t>(random() % 4);
    packet.format = static_cast<uint8_t>(random() % 48);
    packet.channel_reverse = random() % 2;
    packet.rb_swap = random() % 2;
    packet.stride_or_height = static_cast<uint32_t>(random() % (random() % 2 ? 1024 : 1 << 20));
    packet.address = static_cast<GpuAddr>(random());
    std::string error;
    stored += tile.load(packet, &error);
    stored += tile.store(packet, &error);
  }
  EXPECT_GT(stored, 50);
}

/// Batches that lie outside the tile by mistake stay inside the host's memory.
TEST_F(TileBufferTest, PositionsWrap) {
  Config config = TileFixture::one_target(ColorType::k8Ui, 0, 8, 8);
  config.tile_width = config.tile_height = 8;
  fixture_.configure(config);
  FragmentBatch batch = block_batch(0xffffff00, 0xfffffffe, false);
  fixture_.test(fixture_.plain_state(), batch);
  const Lanes words[4] = {};
  fixture_.write(fixture_.plain_state(), batch, spec_32(0), words);
  EXPECT_EQ(pixel(0, 0, 6), 0u);
}

}  // namespace
}  // namespace v3d::tlb
