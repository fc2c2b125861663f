#include "gpu/qpu/run/known_textures.h"

#include <algorithm>
#include <cstddef>

namespace v3d::qpu {

void KnownTextures::add(tmu::Unit& unit, std::vector<tmu::LookupKind>& kinds) {
  tmu::TextureData data;
  tmu::LookupKind kind = unit.describe(lookup_, data);
  if (kind.none == tmu::NotGenerated::kNothing) kind.texture = number_of(kind, data);
  kinds.push_back(kind);
}

uint8_t KnownTextures::number_of(const tmu::LookupKind& kind, const tmu::TextureData& data) {
  const auto found = std::find_if(textures_.begin(), textures_.end(),
                                  [&](const tmu::TextureData& known) { return known.words == data.words; });
  const auto number = static_cast<uint8_t>(found - textures_.begin());
  if (found == textures_.end())
    textures_.push_back(data);
  else if (kind.has_levels())
    found->levels = data.levels;
  return number;
}

}  // namespace v3d::qpu
