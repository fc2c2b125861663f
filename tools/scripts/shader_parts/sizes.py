"""How much a shader has to do in the one draw, or dispatch, that it is measured with."""
SIDE = 128  # pixels of the picture that a fragment shader covers, each way
VERTICES = 4096
GROUPS = 64  # of a compute shader
TEXELS = 64  # of textures, each way
