#include "gpu/qpu/run/known_textures.h"

#include <algorithm>
#include <cstddef>

namespace v3d::qpu {

void KnownTextures::add(tmu::Unit& unit, std::vector<tmu::LookupKind>& kinds) {
  tmu::TextureData data;
  tmu::LookupKind kind = unit.describe(lookup_, data);
  if (kind.none == nullptr) kind.texture = number_of(kind, data);
  kinds.push_back(kind);
}

uint8_t KnownTextures::number_of(const tmu::LookupKind& kind, const tmu::TextureData& data) {
  const auto is_it = [&](const BlockTexture& texture) {
    for (size_t n = 0; n < tmu::kTextureWords; ++n)
      if (texture.words[n][0] != data.words[n]) return false;
    return true;
  };
  const auto found = std::find_if(textures_.begin(), textures_.end(), is_it);
  const auto number = static_cast<uint8_t>(found - textures_.begin());
  BlockTexture& texture = found == textures_.end() ? textures_.emplace_back() : *found;
  for (size_t n = 0; n < tmu::kTextureWords; ++n) texture.words[n].fill(data.words[n]);
  if (kind.levels != tmu::LookupKind::Levels::kBase) texture.levels = data.levels;
  return number;
}

}  // namespace v3d::qpu
