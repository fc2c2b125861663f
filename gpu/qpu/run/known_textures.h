/// KnownTextures are the textures that a function reads which is made for their kinds: of a draw, or of a
/// dispatch; and known words those of its uniforms for which it is made.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/qpu/run/block_code.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::qpu {

/// @param uniform  (number) gives the word of the program's stream
template <typename Uniform>
void read_known(const BlockLookups& found, const Uniform& uniform, std::vector<KnownUniform>& known) {
  known.clear();
  for (const uint16_t number : found.known) known.push_back({number, uniform(number)});
}

class KnownTextures {
 public:
  /// What the lookups of a program are, in their order, and which textures, each once, they have.
  /// @param uniform  (number) gives the word of the program's stream
  template <typename Uniform>
  void describe(const BlockLookups& found, tmu::Unit& unit, const Uniform& uniform,
                std::vector<tmu::LookupKind>& kinds) {
    kinds.clear();
    textures_.clear();
    for (const BlockLookup& of : found.lookups) {
      const auto word = [&](size_t n, uint32_t otherwise) {
        return of.uniforms[n] == BlockLookup::kNone ? otherwise : uniform(of.uniforms[n]);
      };
      lookup_.launcher = of.launcher;
      lookup_.written = of.written;
      lookup_.num_data = of.num_data;
      lookup_.p0 = word(0, 0);
      lookup_.p1 = word(1, tmu::kDefaultP1);
      lookup_.p2 = word(2, tmu::kDefaultP2);
      add(unit, kinds);
    }
  }
  /// By LookupKind::texture.
  const tmu::TextureData* data() const { return textures_.data(); }

 private:
  void add(tmu::Unit& unit, std::vector<tmu::LookupKind>& kinds);
  uint8_t number_of(const tmu::LookupKind& kind, const tmu::TextureData& data);

  tmu::TextureLookup lookup_;
  std::vector<tmu::TextureData> textures_;
};

}  // namespace v3d::qpu
