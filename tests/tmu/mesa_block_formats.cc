#include "tests/tmu/mesa_block_formats.h"

#include <cstring>

#include "util/format/u_formats.h"

namespace {
uint32_t g_width, g_height;
bool g_srgb;
}  // namespace

extern "C" {

// What Mesa's objects need from the rest of Mesa; the tables serve functions that are not called.
void _mesa_get_format_block_size(unsigned, unsigned* width, unsigned* height) {
  *width = g_width;
  *height = g_height;
}
bool _mesa_is_format_srgb(unsigned) { return g_srgb; }
uint16_t _mesa_uint16_div_64k_to_half(uint16_t v) { return v; }
extern const float _mesa_ubyte_to_float_color_tab[256] = {};
extern const float util_format_srgb_8unorm_to_linear_float_table[256] = {};
extern const uint8_t util_format_srgb_to_linear_8unorm_table[256] = {};
extern const uint8_t util_format_linear_to_srgb_8unorm_table[256] = {};
extern const unsigned util_format_linear_to_srgb_helper_table[104] = {};

void _mesa_unpack_astc_2d_ldr(uint8_t* to, unsigned to_stride, const uint8_t* from, unsigned from_stride,
                              unsigned width, unsigned height, unsigned format);
void _mesa_unpack_etc2_format(uint8_t* to, unsigned to_stride, const uint8_t* from, unsigned from_stride,
                              unsigned width, unsigned height, unsigned format, bool bgra);
void util_format_dxt1_rgba_unpack_rgba_8unorm(uint8_t*, unsigned, const uint8_t*, unsigned, unsigned,
                                              unsigned);
void util_format_dxt3_rgba_unpack_rgba_8unorm(uint8_t*, unsigned, const uint8_t*, unsigned, unsigned,
                                              unsigned);
void util_format_dxt5_rgba_unpack_rgba_8unorm(uint8_t*, unsigned, const uint8_t*, unsigned, unsigned,
                                              unsigned);
}

namespace v3d::tmu {

void mesa_decode_block(uint32_t type, bool srgb, const uint8_t* block, uint32_t width, uint32_t height,
                       uint8_t* texels) {
  g_width = width;
  g_height = height;
  g_srgb = srgb;
  switch (type) {
    case 48:
      return util_format_dxt1_rgba_unpack_rgba_8unorm(texels, 16, block, 8, 4, 4);
    case 49:
      return util_format_dxt3_rgba_unpack_rgba_8unorm(texels, 16, block, 16, 4, 4);
    case 50:
      return util_format_dxt5_rgba_unpack_rgba_8unorm(texels, 16, block, 16, 4, 4);
    default:
      break;
  }
  if (type >= 64) return _mesa_unpack_astc_2d_ldr(texels, 4 * width, block, 16, width, height, 0);
  const unsigned formats[] = {PIPE_FORMAT_ETC2_RGB8,       PIPE_FORMAT_ETC2_RGB8A1,
                              PIPE_FORMAT_ETC2_R11_UNORM,  PIPE_FORMAT_ETC2_R11_SNORM,
                              PIPE_FORMAT_ETC2_RG11_UNORM, PIPE_FORMAT_ETC2_RG11_SNORM,
                              PIPE_FORMAT_ETC2_RGBA8};
  const unsigned stride = type == 34 || type == 35 ? 8 : 16;
  _mesa_unpack_etc2_format(texels, stride, block, 16, 4, 4, formats[type - 32], false);
}

}  // namespace v3d::tmu
