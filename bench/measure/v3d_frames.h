/// A run that is a frame in which nothing is drawn.
#pragma once

#include "v3d_lists.h"
#include "v3d_rows.h"

/// @param number  of the two runs of a row
static struct run frame(uint32_t number, const struct frame* f) {
  uint8_t* const bytes = list_bo.map + number * LIST_BYTES;
  const uint32_t address = list_bo.address + number * LIST_BYTES;
  struct list bin = {bytes, address, 0}, render = {bytes + RENDER_LIST, address + RENDER_LIST, 0};
  struct list tile = {bytes + TILE_LIST, address + TILE_LIST, 0};
  write_bin_list(device.version, f, &bin);
  write_tile_list(f, &tile);
  write_render_list(device.version, f, &tile, address + TILE_MEMORY, &render);
  struct run run = {.kind = FRAME, .times = 1};
  run.cl = (struct submit_cl_args){.bcl_start = bin.address,
                                   .bcl_end = bin.address + bin.size,
                                   .rcl_start = render.address,
                                   .rcl_end = render.address + render.size,
                                   .qma = address + TILE_MEMORY,
                                   .qms = LIST_BYTES - TILE_MEMORY,
                                   .qts = address + TILE_STATE};
  return run;
}
