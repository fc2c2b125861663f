#include "samples/common/pictures.h"
#include "samples/gl/context.h"
#include "shader_sources.h"

namespace samples {
namespace {

constexpr GLsizei kMapSize = 1024;

/// Compares instead of fetching.
GLuint make_shadow_map() {
  GLuint map = 0;
  glGenTextures(1, &map);
  glBindTexture(GL_TEXTURE_2D, map);
  glTexStorage2D(GL_TEXTURE_2D, 1, GL_DEPTH_COMPONENT24, kMapSize, kMapSize);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
  return map;
}

void draw_shadow_map(const SceneBuffers& scene, GLuint map) {
  GLuint framebuffer = 0;
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, map, 0);
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "the shadow map is complete");
  glViewport(0, 0, kMapSize, kMapSize);
  glClear(GL_DEPTH_BUFFER_BIT);
  glEnable(GL_POLYGON_OFFSET_FILL);
  glPolygonOffset(2.5f, 4);  // keeps surfaces from shading themselves
  glUseProgram(make_program(kDepthVertSource, kDepthFragSource));
  scene.draw();
  glDisable(GL_POLYGON_OFFSET_FILL);
}

}  // namespace

Pixels draw_shadow(Size size) {
  const Context context;
  const SceneBuffers scene(shadow_scene(), size.aspect());
  const GLuint map = make_shadow_map();
  draw_shadow_map(scene, map);

  const Framebuffer framebuffer(size);
  scene.begin(framebuffer);
  glUseProgram(make_program(kMeshVertSource, kShadowFragSource));
  glActiveTexture(GL_TEXTURE1);
  glBindTexture(GL_TEXTURE_2D, map);
  scene.draw();
  return read_pixels(framebuffer);
}

}  // namespace samples
