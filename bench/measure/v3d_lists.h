/// These functions write the control lists of a frame in which nothing is drawn: each tile is loaded, or not,
/// and stored, or not, in the same format or in another one. Packets and fields: Mesa
/// src/broadcom/cle/v3d_packet.xml.
#pragma once

#include "v3d_device.h"

/// Of images in memory and in the tile buffer, where 64x64 or 64x32 pixels are a tile.
struct tile_format {
  const char* name;
  uint32_t image_format, buffer;   ///< of the packets that load and store
  uint32_t bytes;                  ///< of a pixel
  uint32_t block_height;           ///< of a UIF block; 0: rows
  uint32_t type_42, type_71, bpp;  ///< of the render target
  uint32_t depth_type;
  uint32_t clear[2], stored[2];  ///< words: the colour as the tile buffer has it, and as the image does
};

enum { BUFFER_COLOR = 0, BUFFER_NONE = 8, BUFFER_DEPTH = 9 };
enum { FORMAT_RGBA16F = 18, FORMAT_RGBA8 = 27, FORMAT_D32F = 40, FORMAT_D24S8 = 43 };
enum { LAYOUT_ROWS = 0, LAYOUT_UIF = 4 };

struct frame {
  uint32_t width, height;
  const struct tile_format* format;
  bool load, store;
  uint32_t image;  ///< address
  /// Another image that is stored. Null: the same one.
  const struct tile_format* stored_as;
  uint32_t stored_image;
  bool samples;  ///< four of each pixel, of which all are loaded and the average is stored
};

/// Bytes, and the address that they have.
struct list {
  uint8_t* bytes;
  uint32_t address, size;
};

/// A field of the packet that begins at `packet`: `start` is counted from the end of its opcode.
static inline void set(uint8_t* packet, unsigned start, unsigned width, uint64_t value) {
  for (unsigned bit = 0; bit < width; ++bit) {
    const unsigned at = 8 + start + bit;
    packet[at / 8] = (uint8_t)((packet[at / 8] & ~(1u << at % 8)) | (value >> bit & 1) << at % 8);
  }
}

static inline uint8_t* packet(struct list* list, uint8_t opcode, uint32_t size) {
  uint8_t* const start = list->bytes + list->size;
  memset(start, 0, size);
  start[0] = opcode;
  list->size += size;
  return start;
}

enum {
  FLUSH = 4,
  START_TILE_BINNING = 6,
  END_OF_RENDERING = 13,
  RETURN_FROM_SUB_LIST = 18,
  FLUSH_VCD_CACHE = 19,
  START_ADDRESS_OF_GENERIC_TILE_LIST = 20,
  BRANCH_TO_IMPLICIT_TILE_LIST = 21,
  SUPERTILE_COORDINATES = 23,
  CLEAR_TILE_BUFFERS = 25,
  END_OF_LOADS = 26,
  END_OF_TILE_MARKER = 27,
  STORE_TILE_BUFFER_GENERAL = 29,
  LOAD_TILE_BUFFER_GENERAL = 30,
  NUMBER_OF_LAYERS = 119,
  TILE_BINNING_MODE_CFG = 120,
  TILE_RENDERING_MODE_CFG = 121,
  SUPERTILE_CFG = 122,
  TILE_LIST_SET_BASE = 123,
  TILE_COORDINATES = 124,
  TILE_COORDINATES_IMPLICIT = 125,
  TILE_LIST_INITIAL_BLOCK_SIZE = 126,
};

static inline uint32_t tile_width(const struct frame* f) { return f->samples ? 32 : 64; }
static inline uint32_t tile_height(const struct frame* f) {
  return f->samples || f->format->bpp != 0 ? 32 : 64;
}
static inline uint32_t log2_code(uint32_t pixels) { return pixels == 64 ? 3 : 2; }  // pixels = 8 << code
static inline uint32_t tiles_across(const struct frame* f) {
  return (f->width + tile_width(f) - 1) / tile_width(f);
}
static inline uint32_t tiles_down(const struct frame* f) {
  return (f->height + tile_height(f) - 1) / tile_height(f);
}

static inline void write_bin_list(uint32_t version, const struct frame* f, struct list* list) {
  packet(list, NUMBER_OF_LAYERS, 2);  // one, stored minus 1
  uint8_t* const config = packet(list, TILE_BINNING_MODE_CFG, 9);
  if (version >= 71) {
    set(config, 8, 3, log2_code(tile_width(f)));
    set(config, 11, 3, log2_code(tile_height(f)));
  } else {
    set(config, 12, 2, f->format->bpp);
    set(config, 14, 1, f->samples);
  }
  set(config, 32, 16, f->width - 1);
  set(config, 48, 16, f->height - 1);
  packet(list, FLUSH_VCD_CACHE, 1);
  packet(list, START_TILE_BINNING, 1);
  packet(list, FLUSH, 1);
}

static inline void write_clear(uint32_t version, struct list* list) {
  if (version >= 71)
    packet(list, CLEAR_TILE_BUFFERS, 1);
  else
    set(packet(list, CLEAR_TILE_BUFFERS, 2), 0, 2, 3);  // colours and depth
}

static inline void write_access(struct list* list, uint8_t opcode, const struct frame* f) {
  enum { AVERAGE = 1, ALL_SAMPLES = 3 };
  const bool stores = opcode == STORE_TILE_BUFFER_GENERAL, other = stores && f->stored_as;
  const struct tile_format* const format = other ? f->stored_as : f->format;
  const uint32_t height = f->samples && !stores ? 2 * f->height : f->height;
  uint8_t* const access = packet(list, opcode, 13);
  set(access, 0, 4, format->buffer);
  set(access, 4, 3, format->block_height ? LAYOUT_UIF : LAYOUT_ROWS);
  if (f->samples) set(access, 10, 2, stores ? AVERAGE : ALL_SAMPLES);
  set(access, 12, 6, format->image_format);
  set(access, 28, 20, format->block_height ? height / format->block_height : f->width * format->bytes);
  set(access, 64, 32, other ? f->stored_image : f->image);
}

static inline void write_empty_store(struct list* list) {
  set(packet(list, STORE_TILE_BUFFER_GENERAL, 13), 0, 4, BUFFER_NONE);
}

/// What is done for each tile.
static inline void write_tile_list(const struct frame* f, struct list* list) {
  packet(list, TILE_COORDINATES_IMPLICIT, 1);
  if (f->load) write_access(list, LOAD_TILE_BUFFER_GENERAL, f);
  packet(list, END_OF_LOADS, 1);
  packet(list, BRANCH_TO_IMPLICIT_TILE_LIST, 2);
  if (f->store)
    write_access(list, STORE_TILE_BUFFER_GENERAL, f);
  else
    write_empty_store(list);
  packet(list, END_OF_TILE_MARKER, 1);
  packet(list, RETURN_FROM_SUB_LIST, 1);
}

static inline void write_render_config(uint32_t version, const struct frame* f, struct list* list) {
  const struct tile_format* const format = f->format;
  const float one = 1.0f;
  uint32_t depth;
  memcpy(&depth, &one, sizeof depth);
  uint8_t* const common = packet(list, TILE_RENDERING_MODE_CFG, 9);
  set(common, 8, 16, f->width);
  set(common, 24, 16, f->height);
  set(common, 42, 1, f->samples);
  set(common, 46, 1, 1);  // no early depth test
  set(common, 47, 4, format->depth_type);
  if (version >= 71) {
    set(common, 52, 3, log2_code(tile_width(f)));
    set(common, 55, 3, log2_code(tile_height(f)));
    uint8_t* const target = packet(list, TILE_RENDERING_MODE_CFG, 9);
    set(target, 0, 3, 2);
    set(target, 18, 7, (tile_width(f) / 2 << format->bpp) - 1);  // two rows of a tile in units of 128 bits
    set(target, 25, 2, format->bpp);
    set(target, 27, 5, format->type_71);
    set(target, 32, 32, format->clear[0]);
    if (format->bpp != 0) {
      uint8_t* const more = packet(list, TILE_RENDERING_MODE_CFG, 9);
      set(more, 0, 3, 3);
      set(more, 24, 40, format->clear[1]);
    }
  } else {
    set(common, 40, 2, format->bpp);
    uint8_t* const clear = packet(list, TILE_RENDERING_MODE_CFG, 9);
    set(clear, 0, 4, 3);
    set(clear, 8, 32, format->clear[0]);
    set(clear, 40, 24, format->clear[1]);
    if (format->bpp != 0) {
      uint8_t* const more = packet(list, TILE_RENDERING_MODE_CFG, 9);
      set(more, 0, 4, 4);
      set(more, 8, 32, format->clear[1] >> 24);
    }
    uint8_t* const color = packet(list, TILE_RENDERING_MODE_CFG, 9);
    set(color, 0, 4, 1);
    set(color, 4, 2, format->bpp);
    set(color, 6, 4, format->type_42);
  }
  uint8_t* const values = packet(list, TILE_RENDERING_MODE_CFG, 9);
  set(values, 0, 4, version >= 71 ? 1 : 2);
  set(values, 16, 32, depth);
}

/// @param tile_list   what is done for each tile
/// @param tile_memory  the lists that binning makes
static inline void write_render_list(uint32_t version, const struct frame* f, const struct list* tile_list,
                                     uint32_t tile_memory, struct list* list) {
  enum { SUPERTILE = 4 };  // tiles on a side; there are fewer than 256 in all
  write_render_config(version, f, list);
  set(packet(list, TILE_LIST_INITIAL_BLOCK_SIZE, 2), 2, 1, 1);  // of 64 B, chained
  const uint32_t columns = (tiles_across(f) + SUPERTILE - 1) / SUPERTILE;
  const uint32_t rows = (tiles_down(f) + SUPERTILE - 1) / SUPERTILE;
  uint8_t* const config = packet(list, SUPERTILE_CFG, 9);
  set(config, 0, 8, SUPERTILE - 1);
  set(config, 8, 8, SUPERTILE - 1);
  set(config, 16, 8, columns);
  set(config, 24, 8, rows);
  set(config, 32, 12, tiles_across(f));
  set(config, 44, 12, tiles_down(f));
  // Two tiles that are none, of which the first clears: what is in the tile buffer stays for all tiles.
  for (int i = 0; i < 2; ++i) {
    packet(list, TILE_COORDINATES, 4);
    packet(list, END_OF_LOADS, 1);
    write_empty_store(list);
    if (i == 0) write_clear(version, list);
    packet(list, END_OF_TILE_MARKER, 1);
  }
  packet(list, FLUSH_VCD_CACHE, 1);
  set(packet(list, TILE_LIST_SET_BASE, 5), 0, 32, tile_memory);
  uint8_t* const generic = packet(list, START_ADDRESS_OF_GENERIC_TILE_LIST, 9);
  set(generic, 0, 32, tile_list->address);
  set(generic, 32, 32, tile_list->address + tile_list->size);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t column = 0; column < columns; ++column) {
      uint8_t* const coordinates = packet(list, SUPERTILE_COORDINATES, 3);
      set(coordinates, 0, 8, column);
      set(coordinates, 8, 8, row);
    }
  packet(list, END_OF_RENDERING, 1);
}
