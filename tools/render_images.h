/// What a render job stored, as pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/mmu/address_space.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::tools {

struct StoredImage {
  tlb::LoadStore packet;
  uint32_t width, height;
};

/// Colour stores of the tile lists of a rendering list, each image once.
std::vector<StoredImage> stored_images(Memory memory, int version, GpuAddr start, GpuAddr end);

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;  ///< rows from the top
};

/// The image as RGBA8; empty, with the reason in *error, for formats that have no such form.
Picture read_image(mmu::AddressSpace& space, const StoredImage& image, std::string* error);

}  // namespace v3d::tools
