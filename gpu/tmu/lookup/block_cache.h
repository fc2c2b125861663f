/// A BlockCache has decoded blocks of compressed textures. They live until the job ends: drivers do not write
/// textures that a running job samples.
#pragma once

#include <memory>

#include "gpu/base/memory.h"
#include "gpu/base/work_meter.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

class BlockCache {
 public:
  /// The texels of the block at an address, valid until the next call.
  /// @param meter  is charged for those that have to be decoded
  const BlockTexel* find(WorkMeter& meter, Memory memory, const Format& format, bool srgb, GpuAddr address) {
    if (!entries_) entries_ = std::make_unique<Entry[]>(kEntries);
    Entry& entry = entries_[(address / 8 ^ address / (8 * kEntries)) % kEntries];
    if (entry.address != address || entry.kind != kind_of(format, srgb)) {
      meter.charge(kDecodeCost);
      decode(memory, format, srgb, address, entry);
    }
    return entry.texels;
  }

  void clear() {
    if (!entries_) return;
    for (int i = 0; i < kEntries; ++i) entries_[i].kind = 0;
  }

 private:
  static constexpr int kEntries = 256;
  static constexpr uint32_t kDecodeCost = 100;
  struct Entry {
    GpuAddr address = 0;
    uint32_t kind = 0;  ///< format and sRGB; 0: empty
    BlockTexel texels[kMaxBlockTexels];
  };
  static uint32_t kind_of(const Format& format, bool srgb) {
    return static_cast<uint32_t>(format.type) * 2 + srgb + 1;
  }
  static void decode(Memory memory, const Format& format, bool srgb, GpuAddr address, Entry& entry);

  std::unique_ptr<Entry[]> entries_;
};

}  // namespace v3d::tmu
