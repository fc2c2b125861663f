/// The sample programs draw these: one function per picture, which each program defines in a file of its own.
/// Every call opens the device anew.
#pragma once

#include "samples/common/program.h"

namespace samples {

Pixels draw_shadow(Size size);                ///< a depth pass from the lamp, then comparisons with it
Pixels draw_normal_map(Size size);            ///< tangent-space normals, mipmaps, anisotropic filtering
Pixels draw_normal_map_trilinear(Size size);  ///< the same with the filter that all devices have
Pixels draw_instancing(Size size);            ///< thousands of instances in one draw call
Pixels draw_msaa(Size size);                  ///< four samples, resolved to one

inline const NamedScene kPictures[] = {{"shadow", draw_shadow},
                                       {"normal_map", draw_normal_map},
                                       {"normal_map_trilinear", draw_normal_map_trilinear},
                                       {"instancing", draw_instancing},
                                       {"msaa", draw_msaa}};

}  // namespace samples
