/// Field tables are for generated code: they decode formats of up to 32 bits whose channels are fields of a
/// word with few values.
#pragma once

#include <cstdint>

#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

/// A channel: the word shifted to the left and then to the right, which leaves nothing of a channel that is
/// not there, is an index of `values`.
struct Field {
  uint64_t left, right;
  const float* values;
};
struct Fields {
  Field channel[4];
  /// Of four channels of a byte each, the values of the first three, which are the same: byte k of that of n
  /// is planes[kBytes k + n]. Null: of others.
  static constexpr uint32_t kBytes = 256;
  const uint8_t* planes;
};

/// Whether a format has such channels.
bool has_fields(const Format& format);
/// Of such a format, as its decoder, a transfer function applied, gives them. Made at the first use of each
/// decoder and kept: 17 KiB at most. Thread safe.
const Fields& field_tables(const Format& format, DecodeTexels decode);

}  // namespace v3d::tmu
