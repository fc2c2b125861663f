#include "gpu/qpu/run/vc4_vpm.h"

namespace v3d::qpu::vc4 {
namespace {

constexpr uint32_t bits(uint32_t word, int high, int low) { return word >> low & ((2u << (high - low)) - 1); }
// A count of which 0 stands for the largest.
constexpr uint32_t count_of(uint32_t field, uint32_t largest) { return field == 0 ? largest : field; }

// An element of 32, 16 or 8 bits.
struct Cell {
  uint32_t row, column, part;
};

uint32_t load_cell(const VpmRows& rows, Cell cell, uint32_t parts) {
  if (cell.row >= rows.count) return 0;
  const uint32_t word = rows.rows[cell.row][cell.column];
  if (parts == 1) return word;
  const uint32_t width = 32 / parts;
  return word >> (cell.part * width) & ((1u << width) - 1);
}

void store_cell(const VpmRows& rows, Cell cell, uint32_t parts, uint32_t value) {
  if (cell.row >= rows.count) return;
  uint32_t word = value;
  if (parts > 1) {
    const uint32_t width = 32 / parts, shift = cell.part * width, mask = ((1u << width) - 1) << shift;
    word = (rows.rows[cell.row][cell.column] & ~mask) | (value << shift & mask);
  }
  rows.rows[cell.row][cell.column] = word;
}

// Where lane i of a vector is.
Cell cell_of(const VpmBlock& block, uint32_t lane) {
  const uint32_t parts = block.parts, sub = block.address % parts, place = block.address / parts % kVpmRows;
  const uint32_t step = block.laned ? lane : sub * (kLanes / parts) + lane / parts;
  const uint32_t part = block.laned ? sub : lane % parts;
  if (block.horizontal) return {place, step, part};
  return {(place & 0x30) + step, place & 15, part};
}

void advance(VpmBlock& block) {
  block.address = static_cast<uint8_t>((block.address + block.stride) % (kVpmRows * block.parts));
}

bool is_whole_row(const VpmBlock& block) { return block.parts == 1 && block.horizontal; }

// Width and first part of DMA: 0 is 32 bits, 2 and 3 16, 4..7 8 bits.
struct Width {
  uint32_t parts, first;
  explicit Width(uint32_t mode) : parts(mode >= 4 ? 4 : mode >= 2 ? 2 : 1), first(mode & (parts - 1)) {}
  uint32_t bytes() const { return 4 / parts; }
};

uint32_t load_element(Memory memory, GpuAddr address, uint32_t bytes) {
  switch (bytes) {
    case 1:
      return memory.load<uint8_t>(address);
    case 2:
      return memory.load<uint16_t>(address);
    default:
      return memory.load<uint32_t>(address);
  }
}

void store_element(Memory memory, GpuAddr address, uint32_t bytes, uint32_t value) {
  switch (bytes) {
    case 1:
      memory.store(address, static_cast<uint8_t>(value));
      break;
    case 2:
      memory.store(address, static_cast<uint16_t>(value));
      break;
    default:
      memory.store(address, value);
      break;
  }
}

}  // namespace

VpmBlock decode_vpm_block(uint32_t setup) {
  VpmBlock block;
  const uint32_t size = bits(setup, 9, 8);
  block.parts = static_cast<uint8_t>(size == 0 ? 4 : size == 1 ? 2 : 1);
  block.horizontal = bits(setup, 11, 11);
  block.laned = bits(setup, 10, 10);
  block.stride = static_cast<uint8_t>(count_of(bits(setup, 17, 12), 64));
  block.address = static_cast<uint8_t>(bits(setup, 7, 0) % (kVpmRows * block.parts));
  block.vectors = static_cast<uint8_t>(count_of(bits(setup, 23, 20), 16));
  return block;
}

Lanes read_vector(const VpmRows& rows, VpmBlock& block) {
  Lanes value = {};
  if (is_whole_row(block)) {
    if (block.address < rows.count) value = rows.rows[block.address];
  } else {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      value[lane] = load_cell(rows, cell_of(block, lane), block.parts);
  }
  advance(block);
  return value;
}

void write_vector(const VpmRows& rows, VpmBlock& block, const Lanes& value) {
  if (is_whole_row(block)) {
    if (block.address < rows.count) rows.rows[block.address] = value;
  } else {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      store_cell(rows, cell_of(block, lane), block.parts, value[lane]);
  }
  advance(block);
}

Lanes VpmQueue::read(const VpmRows& rows) {
  if (count == 0) return Lanes{};
  const Lanes value = read_vector(rows, blocks[0]);
  if (--blocks[0].vectors == 0) {
    blocks[0] = blocks[1];
    --count;
  }
  return value;
}

DmaRows rows_of_load(const VpmDma& dma) {
  const uint32_t pitch_code = bits(dma.load, 27, 24), row_length = count_of(bits(dma.load, 23, 20), 16);
  return {.count = count_of(bits(dma.load, 19, 16), 16),
          .bytes = row_length * Width(bits(dma.load, 30, 28)).bytes(),
          .pitch = pitch_code == 0 ? bits(dma.load_pitch, 12, 0) : 8u << pitch_code};
}

DmaRows rows_of_store(const VpmDma& dma) {
  const uint32_t bytes = count_of(bits(dma.store, 22, 16), 128) * Width(bits(dma.store, 2, 0)).bytes();
  return {.count = count_of(bits(dma.store, 29, 23), 128),
          .bytes = bytes,
          .pitch = bytes + bits(dma.store_stride, 15, 0)};
}

uint32_t dma_load(const VpmDma& dma, const VpmRows& rows, Memory memory, GpuAddr address) {
  const uint32_t setup = dma.load;
  const Width width(bits(setup, 30, 28));
  const DmaRows rows_in_memory = rows_of_load(dma);
  const uint32_t row_length = rows_in_memory.bytes / width.bytes(), num_rows = rows_in_memory.count,
                 step = count_of(bits(setup, 15, 12), 16), pitch = rows_in_memory.pitch;
  const bool vertical = bits(setup, 11, 11);
  const uint32_t y = bits(setup, 10, 4), x = bits(setup, 3, 0);
  for (uint32_t row = 0; row < num_rows; ++row) {
    // The step between rows counts in parts of words.
    const uint32_t place = y * width.parts + width.first + row * step;
    for (uint32_t e = 0; e < row_length; ++e) {
      const Cell cell = {place / width.parts + (vertical ? e : 0), (x + (vertical ? 0 : e)) % kLanes,
                         place % width.parts};
      store_cell(rows, cell, width.parts,
                 load_element(memory, address + row * pitch + e * width.bytes(), width.bytes()));
    }
  }
  return num_rows * row_length;
}

uint32_t dma_store(const VpmDma& dma, const VpmRows& rows, Memory memory, GpuAddr address) {
  const uint32_t setup = dma.store;
  const uint32_t num_rows = count_of(bits(setup, 29, 23), 128),
                 row_length = count_of(bits(setup, 22, 16), 128);
  const bool laned = bits(setup, 15, 15), horizontal = bits(setup, 14, 14),
             packed_rows = bits(dma.store_stride, 16, 16);
  const uint32_t y = bits(setup, 13, 7), x = bits(setup, 6, 3);
  const Width width(bits(setup, 2, 0));
  const uint32_t stride = bits(dma.store_stride, 15, 0);
  for (uint32_t row = 0; row < num_rows; ++row) {
    for (uint32_t e = 0; e < row_length; ++e) {
      // Elements one after the other in a row (or column) of the VPM, or all in the same part of their
      // words.
      const uint32_t n = e + (packed_rows ? row * row_length : 0), part = width.first + n;
      const uint32_t along = laned ? n : part / width.parts;
      const uint32_t across = packed_rows ? 0 : row;
      Cell cell = {horizontal ? y + across : y + along, horizontal ? x + along : x + across,
                   laned ? width.first : part % width.parts};
      cell.row += horizontal ? cell.column / kLanes : 0;
      cell.column %= kLanes;
      store_element(memory, address, width.bytes(), load_cell(rows, cell, width.parts));
      address += width.bytes();
    }
    address += stride;
  }
  return num_rows * row_length;
}

}  // namespace v3d::qpu::vc4
