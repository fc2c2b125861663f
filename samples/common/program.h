/// These functions are command line and output of the sample programs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace samples {

struct Size {
  uint32_t width = 800, height = 600;
  float aspect() const { return static_cast<float>(width) / static_cast<float>(height); }
};

/// RGBA8, rows from the top.
using Pixels = std::vector<uint8_t>;

struct NamedScene {
  const char* name;
  std::function<Pixels(Size)> draw;
};

/// The main function of a program `--scene NAME --output FILE.ppm [--size WIDTHxHEIGHT]`, or `--list`.
/// @returns exit status
int run_program(std::span<char*> arguments, std::span<const NamedScene> scenes);

}  // namespace samples
