/// Transfer functions, for which textures ask, turn the codes of a texel's colours into the values that are
/// filtered.
#pragma once

#include <cstdint>

namespace v3d::tmu {

/// Values of the texture shader state's "Transfer func" (7.1; Mesa v3d_packet.xml). 4.2 knows kNone and
/// kSrgb.
enum class Transfer : uint8_t { kNone, kSrgb, kPq, kHlg, kPqBt1886, kHlgBt1886 };
inline constexpr int kTransfers = 6;

/// The values of the unorm codes 0 .. 2^bits - 1: not for kNone. @param bits  4, 5, 6, 8, 10 or 16
const float* transfer_table(Transfer transfer, int bits);

}  // namespace v3d::tmu
