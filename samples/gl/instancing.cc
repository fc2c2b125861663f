#include "samples/common/pictures.h"
#include "samples/gl/context.h"
#include "shader_sources.h"

namespace samples {

Pixels draw_instancing(Size size) {
  const Context context;
  const SceneBuffers scene(instancing_scene(), size.aspect());
  const Framebuffer framebuffer(size);
  scene.begin(framebuffer);
  glUseProgram(make_program(kMeshVertSource, kMeshFragSource));
  scene.draw();
  return read_pixels(framebuffer);
}

}  // namespace samples
