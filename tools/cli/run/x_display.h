/// Programs with OpenGL windows need this display.
#pragma once

namespace v3d::tools {

/// Where $DISPLAY is of a server that cannot take the GPU's buffers, starts v3demu-x11 in front of it, which
/// runs as long as this process or what it becomes, and makes $DISPLAY its. Does nothing when there is no
/// such server; says on stderr why it cannot.
void add_dri3();

}  // namespace v3d::tools
