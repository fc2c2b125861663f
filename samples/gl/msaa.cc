#include "samples/common/pictures.h"
#include "samples/gl/context.h"
#include "shader_sources.h"

namespace samples {

Pixels draw_msaa(Size size) {
  const Context context;
  const SceneBuffers scene(msaa_scene(), size.aspect());
  const Framebuffer resolved(size), samples(size, 4);
  scene.begin(samples);
  glUseProgram(make_program(kMeshVertSource, kMeshFragSource));
  scene.draw();
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, resolved.handle);
  const auto width = static_cast<GLint>(size.width), height = static_cast<GLint>(size.height);
  glBlitFramebuffer(0, 0, width, height, 0, 0, width, height, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  return read_pixels(resolved);
}

}  // namespace samples
