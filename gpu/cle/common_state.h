/// State packets that all generations have hold the same fields, at other places; what they set is said here.
#pragma once

#include <cstdint>

#include "gpu/base/compare.h"
#include "gpu/cle/packet.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

/// Where a generation has the fields of these packets.
struct StateFields {
  Field point_size, line_width;
  Field offset_factor, offset_units;
  Field clip_left, clip_bottom, clip_width, clip_height;
  Field half_width, half_height;  ///< of the viewport
  Field z_scale, z_offset;
};
/// The same of the configuration bits.
struct CfgFields {
  Field draw_front, draw_back, clockwise, depth_offset, oversample, depth_func, z_write;
};

/// @return  false if the packet is none of them
template <const StateFields& kFields>
bool apply_common_state(const Packet& p, draw::DrawState* s) {
  const auto pixels = [&p](const Field& f) { return static_cast<uint16_t>(p.get(f)); };
  switch (p.opcode) {
    case Opcode::kPointSize:
      s->point_size = p.get_float(kFields.point_size);
      return true;
    case Opcode::kLineWidth:
      s->line_width = p.get_float(kFields.line_width);
      return true;
    case Opcode::kDepthOffset:
      s->offset_factor = p.get_float(kFields.offset_factor);
      s->offset_units = p.get_float(kFields.offset_units);
      return true;
    case Opcode::kClipWindow:
      s->clip_left = pixels(kFields.clip_left);
      s->clip_bottom = pixels(kFields.clip_bottom);
      s->clip_width = pixels(kFields.clip_width);
      s->clip_height = pixels(kFields.clip_height);
      return true;
    case Opcode::kClipperXyScaling:
      s->xy_half_width = p.get_float(kFields.half_width);
      s->xy_half_height = p.get_float(kFields.half_height);
      return true;
    case Opcode::kClipperZScaleAndOffset:
      s->z_scale = p.get_float(kFields.z_scale);
      s->z_offset = p.get_float(kFields.z_offset);
      return true;
    default:
      return false;
  }
}

template <const CfgFields& kFields>
void set_common_cfg_bits(const Packet& p, draw::CfgBits* c) {
  c->draw_front = p.flag(kFields.draw_front);
  c->draw_back = p.flag(kFields.draw_back);
  c->clockwise = p.flag(kFields.clockwise);
  c->depth_offset = p.flag(kFields.depth_offset);
  c->oversample = static_cast<uint8_t>(p.get(kFields.oversample));
  c->depth_func = static_cast<Compare>(p.get(kFields.depth_func));
  c->z_write = p.flag(kFields.z_write);
}

}  // namespace v3d::cle
