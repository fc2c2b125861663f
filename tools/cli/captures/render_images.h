/// These functions write what a render job stored as pictures.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/device/surface_job.h"
#include "gpu/mmu/address_space.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::tools {

/// Which images of a client have blue in their first byte. Who draws one says so, by exchanging red and blue;
/// who copies its bytes, as drivers do between images and to what is presented, does not.
class ByteOrders {
 public:
  /// The tile buffer is stored. @param loaded  what was loaded there before it, or null
  /// @return  whether the image has blue first though the packet does not exchange it
  bool store(const tlb::LoadStore& packet, const tlb::LoadStore* loaded);

 private:
  std::set<GpuAddr> blue_first_;
};

struct StoredImage {
  tlb::LoadStore packet;
  uint32_t width, height;
  bool blue_first;  ///< see ByteOrders::store()
};

/// Colour stores of the tile lists of a rendering list, each image once.
/// @param orders  of the client, as the jobs before it left them
std::vector<StoredImage> stored_images(Memory memory, chip::Generation generation, GpuAddr start, GpuAddr end,
                                       ByteOrders* orders);

/// The same of a frame of VideoCore IV: the colours that it resolves. Nothing says which image has blue
/// first.
std::vector<StoredImage> stored_images(const device::SurfaceJob& frame, bool blue_first);

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;  ///< rows from the top
};

/// The image as RGBA8; empty, with the reason in *error, for formats that have no such form.
Picture read_image(mmu::AddressSpace& space, const StoredImage& image, std::string* error);

}  // namespace v3d::tools
