/// One function per picture, each in a file of its own; every call makes a context.
#pragma once

#include "samples/common/program.h"

namespace samples {

Pixels draw_shadow(Size size);                ///< a depth pass from the lamp, then comparisons with it
Pixels draw_normal_map(Size size);            ///< tangent-space normals, mipmaps, anisotropic filtering
Pixels draw_normal_map_trilinear(Size size);  ///< the same with the filter that all devices have
Pixels draw_instancing(Size size);            ///< thousands of instances in one draw call
Pixels draw_msaa(Size size);  ///< four samples in a renderbuffer, resolved by glBlitFramebuffer

}  // namespace samples
