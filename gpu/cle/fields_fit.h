/// These checks of the tables of packets and records, of all chips, are made where the tables are compiled.
#pragma once

#include "gpu/cle/packet.h"

namespace v3d::cle {

/// Every field lies inside its packet or record, and read_bits may read it.
template <typename Info>
constexpr bool fields_fit(const Info& info, int body_bytes) {
  for (const Field& f : info.fields) {
    if (f.name == nullptr) continue;
    if (f.width == 0 || f.start + f.width > body_bytes * 8 || f.start % 8 + f.width > 64) return false;
    if (f.type == FieldType::kAddress && (f.start + f.width) % 8 != 0) return false;
  }
  return true;
}

}  // namespace v3d::cle
