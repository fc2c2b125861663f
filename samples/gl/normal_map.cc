#include <GLES3/gl31.h>
// After the former, which says how functions are declared.
#include <GLES2/gl2ext.h>

#include <algorithm>
#include <cstring>

#include "samples/common/pictures.h"
#include "samples/common/textures.h"
#include "samples/gl/context.h"
#include "shader_sources.h"

namespace samples {
namespace {

constexpr uint32_t kTextureSize = 512;
constexpr float kAnisotropy = 8;  ///< texels along the longer side of a pixel's footprint

bool has_anisotropy() {
  GLint count = 0;
  glGetIntegerv(GL_NUM_EXTENSIONS, &count);
  for (GLuint i = 0; i < static_cast<GLuint>(count); ++i) {
    const auto* const name = reinterpret_cast<const char*>(glGetStringi(GL_EXTENSIONS, i));
    if (std::strcmp(name, "GL_EXT_texture_filter_anisotropic") == 0) return true;
  }
  return false;
}

void bind_mipmapped(GLenum unit, const Texture& texture, float anisotropy) {
  const auto size = static_cast<GLsizei>(texture.size);
  GLuint handle = 0;
  glGenTextures(1, &handle);
  glActiveTexture(unit);
  glBindTexture(GL_TEXTURE_2D, handle);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, texture.texels.data());
  glGenerateMipmap(GL_TEXTURE_2D);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_LINEAR);
  if (anisotropy <= 1 || !has_anisotropy()) return;
  float most = 1;
  glGetFloatv(GL_MAX_TEXTURE_MAX_ANISOTROPY_EXT, &most);
  glTexParameterf(GL_TEXTURE_2D, GL_TEXTURE_MAX_ANISOTROPY_EXT, std::min(anisotropy, most));
}

Pixels draw_bricks(Size size, float anisotropy) {
  const Context context;
  const SceneBuffers scene(normal_map_scene(), size.aspect());
  const BrickTextures bricks = brick_textures(kTextureSize);
  bind_mipmapped(GL_TEXTURE1, bricks.color, anisotropy);
  bind_mipmapped(GL_TEXTURE2, bricks.normal, anisotropy);
  const Framebuffer framebuffer(size);
  scene.begin(framebuffer);
  glUseProgram(make_program(kTexturedVertSource, kNormalMapFragSource));
  scene.draw();
  return read_pixels(framebuffer);
}

}  // namespace

Pixels draw_normal_map(Size size) { return draw_bricks(size, kAnisotropy); }

Pixels draw_normal_map_trilinear(Size size) { return draw_bricks(size, 1); }

}  // namespace samples
