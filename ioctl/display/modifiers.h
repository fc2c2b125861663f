/// Modifiers say how rows of framebuffers lie in memory (Linux drm_fourcc.h, vc4_plane.c).
#pragma once

#include <cstdint>
#include <span>

#include "gpu/chip/board.h"
#include "ioctl/display/formats.h"

namespace v3d::ioctl::kms {

/// DRM_FORMAT_MOD_BROADCOM_*, without parameters.
inline constexpr uint64_t kTTiled = 0x0700000000000001, kSand64 = 0x0700000000000003,
                          kSand128 = 0x0700000000000004, kSand256 = 0x0700000000000005;

/// Without its parameter, which is the height of a column of SAND: rows from the start of one to that of the
/// next.
uint64_t base_of(uint64_t modifier);
uint64_t column_height(uint64_t modifier);
/// Of SAND; 0 of others.
uint32_t column_bytes(uint64_t modifier);

/// What planes list, in that order.
std::span<const uint64_t> modifiers();
/// Whether framebuffers of the format can lie so (vc4_format_mod_supported).
bool takes_modifier(const Format& format, uint64_t modifier);
/// Whether a board shows them, too: what a Pi 5 lists and does not show is an error of the commit.
bool shows_modifier(const chip::DisplayUnit& unit, uint64_t modifier);

/// The least bytes from row to row of a part that a framebuffer may have (drm_format_info_min_pitch).
uint64_t least_pitch(const Format& format, uint32_t width, uint32_t part);
/// The bytes of its samples: of those of 10 bits in whole words.
uint64_t row_bytes(const Format& format, uint32_t width, uint32_t part);

/// How many bytes of memory rows take; UINT64_MAX where they do not fit beside each other.
/// @param bytes  of a row
uint64_t extent(uint64_t modifier, uint64_t bytes, uint32_t rows, uint32_t pitch);
/// Where the byte x of row y lies in its part.
uint64_t byte_offset(uint64_t modifier, uint32_t x, uint32_t y, uint32_t pitch);
/// Bytes from there on that lie side by side.
uint32_t bytes_together(uint64_t modifier, uint32_t x);

}  // namespace v3d::ioctl::kms
