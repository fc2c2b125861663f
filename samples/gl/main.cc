/// Pictures drawn off-screen with OpenGL ES 3.1: gl_samples --scene shadow --output shadow.ppm
#include "samples/gl/scenes.h"

int main(int argc, char** argv) {
  using namespace samples;
  const NamedScene scenes[] = {{"shadow", draw_shadow},
                               {"normal_map", draw_normal_map},
                               {"normal_map_trilinear", draw_normal_map_trilinear},
                               {"instancing", draw_instancing},
                               {"msaa", draw_msaa}};
  return run_program({argv, static_cast<size_t>(argc)}, scenes);
}
