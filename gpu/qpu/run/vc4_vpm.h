/// QPUs of V3D 2.1 reach the vertex pipe memory in two ways (vc4-qpu.md 5): by vectors through queues with
/// set-up words, and by DMA. Vectors through queues with set-up words, and DMA.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"

namespace v3d::qpu::vc4 {

/// Of all of the VPM: rows that QPUs can address.
inline constexpr uint32_t kVpmRows = 64;

/// Rows of 16 words, which those outside stand for: writes there are dropped and reads give 0.
struct VpmRows {
  AlignedLanes* rows = nullptr;
  uint32_t count = 0;
};

/// Vectors at rising addresses.
struct VpmBlock {
  uint8_t parts = 1;  ///< elements in a word: 1, 2 or 4
  bool horizontal = true, laned = false;
  uint8_t stride = 1, address = 0;
  uint8_t vectors = 0;  ///< still to be read
};
/// @param setup  of vr_setup or vw_setup with bits 31:30 = 0; number of vectors: of vr_setup alone
VpmBlock decode_vpm_block(uint32_t setup);

/// Reads or writes the next vector.
Lanes read_vector(const VpmRows& rows, VpmBlock& block);
void write_vector(const VpmRows& rows, VpmBlock& block, const Lanes& value);

/// Reads that were set up. A third one is ignored.
struct VpmQueue {
  VpmBlock blocks[2];
  uint8_t count = 0;
  void push(const VpmBlock& block) {
    if (count < 2) blocks[count++] = block;
  }
  /// 0 after the last vector.
  Lanes read(const VpmRows& rows);
};

/// Set-up words of DMA.
struct VpmDma {
  uint32_t load = 0x80000000, load_pitch = 0;
  uint32_t store = 0x80000000, store_stride = 0;
};
/// Rows of a transfer in memory.
struct DmaRows {
  uint32_t count, bytes;
  uint32_t pitch;  ///< from the begin of one to that of the next
};
DmaRows rows_of_load(const VpmDma& dma);
DmaRows rows_of_store(const VpmDma& dma);
/// Both execute at once. @return  elements
uint32_t dma_load(const VpmDma& dma, const VpmRows& rows, Memory memory, GpuAddr address);
uint32_t dma_store(const VpmDma& dma, const VpmRows& rows, Memory memory, GpuAddr address);

}  // namespace v3d::qpu::vc4
