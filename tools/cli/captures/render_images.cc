#include "tools/cli/captures/render_images.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "gpu/cle/packet_table.h"
#include "gpu/cle/render_list.h"
#include "gpu/cle/surfaces.h"

namespace v3d::tools {
namespace {

constexpr uint32_t kMaxPackets = 1u << 20;
/// More than any job has, whose layers are 256 at most, of 8 images each.
constexpr uint32_t kMostLists = 1u << 14;
constexpr size_t kMostImages = 4096;
constexpr uint8_t kRgba8 = 27, kSrgb8Alpha8 = 0;

/// A place in the client's space that nothing is mapped at.
GpuAddr free_range(const mmu::AddressSpace& space, uint64_t size) {
  uint64_t at = mmu::kPageSize;
  for (const auto& range : space.mapped_ranges()) {
    if (range.address >= at + size) break;
    at = std::max(at, range.address + range.size);
  }
  return at + size <= mmu::kSpaceSize ? static_cast<GpuAddr>(at) : 0;
}

}  // namespace

bool ByteOrders::store(const tlb::LoadStore& packet, const tlb::LoadStore* loaded) {
  const bool is_copy = !packet.rb_swap && loaded && !loaded->rb_swap && loaded->address != packet.address &&
                       blue_first_.contains(loaded->address);
  if (packet.rb_swap || is_copy)
    blue_first_.insert(packet.address);
  else
    blue_first_.erase(packet.address);
  return is_copy;
}

std::vector<StoredImage> stored_images(Memory memory, chip::Generation generation, GpuAddr start, GpuAddr end,
                                       ByteOrders* orders) {
  std::vector<StoredImage> images;
  cle::FrameConfig frame(generation);
  std::string error;
  GpuAddr pc = start;
  cle::Packet packet;
  std::unordered_set<GpuAddr> known;
  uint32_t lists = 0;
  for (uint32_t i = 0; pc != end && i < kMaxPackets && cle::decode(memory, pc, generation, &packet); ++i) {
    pc += packet.length;
    if (packet.opcode == cle::Opcode::kTileRenderingModeCfg) frame.apply(packet, &error);
    if (packet.opcode != cle::Opcode::kStartAddressOfGenericTileList) continue;
    if (++lists > kMostLists) break;
    cle::TileProgram program;
    const auto list_start =
        static_cast<GpuAddr>(packet.get(cle::field("Start Address of Generic Tile List", "start")));
    const auto list_end =
        static_cast<GpuAddr>(packet.get(cle::field("Start Address of Generic Tile List", "end")));
    if (!cle::parse_generic_list(memory, generation, list_start, list_end, &program, &error)) continue;
    std::array<const tlb::LoadStore*, 8> loaded{};  // by buffer
    for (const cle::TileCommand& command : program.commands) {
      if (command.kind == cle::TileCommand::Kind::kLoad && command.transfer.buffer <= 7)
        loaded[command.transfer.buffer] = &command.transfer;
      if (command.kind != cle::TileCommand::Kind::kStore || command.transfer.buffer > 7) continue;
      if (images.size() == kMostImages) return images;
      if (!known.insert(command.transfer.address).second) continue;
      const bool blue_first = orders->store(command.transfer, loaded[command.transfer.buffer]);
      images.push_back({command.transfer, frame.config().width, frame.config().height, blue_first});
    }
  }
  return images;
}

std::vector<StoredImage> stored_images(const device::SurfaceJob& frame, bool blue_first) {
  std::vector<StoredImage> images;
  cle::TileProgram program;
  std::string error;
  if (!cle::surface_program(frame, &program, &error)) return images;
  for (const cle::TileCommand& command : program.commands)
    if (command.kind == cle::TileCommand::Kind::kStore && command.transfer.buffer <= 7)
      images.push_back({command.transfer, frame.width, frame.height, blue_first});
  return images;
}

Picture read_image(mmu::AddressSpace& space, const StoredImage& image, std::string* error) {
  // The tile buffer itself does the conversion: loaded from the image, stored as raster RGBA8 beside it.
  const uint64_t bytes =
      (uint64_t{image.width} * image.height * 4 + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
  const GpuAddr at = free_range(space, bytes);
  Picture picture;
  if (at == 0 || !space.map_zeros(at, bytes).ok()) {
    *error = "no memory";
    return picture;
  }
  tlb::Config config;
  config.width = image.width;
  config.height = image.height;
  config.tile_width = config.tile_height = 64;
  config.targets[0].used = true;
  tlb::TileBuffer tile(space.memory());
  tile.configure(config);
  tlb::LoadStore load = image.packet, store;
  load.buffer = store.buffer = 0;
  if (load.decimate == 1) load.decimate = 0;              // memory holds the average
  if (load.format == kSrgb8Alpha8) load.format = kRgba8;  // the bytes as a screen shows them
  if (image.blue_first) load.rb_swap = true;
  store.format = kRgba8;
  store.stride_or_height = image.width * 4;
  store.address = at;
  bool good = image.packet.decimate != 3 && !image.packet.raw_samples;
  if (!good) *error = "it keeps four samples per pixel";
  for (uint32_t y = 0; good && y * 64 < image.height; ++y)
    for (uint32_t x = 0; good && x * 64 < image.width; ++x) {
      tile.begin_tile(x, y);
      good = tile.load(load, error) && tile.store(store, error);
    }
  if (good) {
    picture = {image.width, image.height, std::vector<uint8_t>(uint64_t{image.width} * image.height * 4)};
    space.memory().read(at, picture.rgba.data(), picture.rgba.size());
  }
  space.unmap(at, bytes);
  return picture;
}

}  // namespace v3d::tools
