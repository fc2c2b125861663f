/// These functions write sizes of files as people read them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

namespace v3d::tools {

/// "1 byte", "512 bytes", "12.3 KiB", "4.0 MiB".
inline std::string size_text(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // What would be printed as 1024.0 is 1.0 of the next unit.
  for (; value >= 1023.95 && unit + 1 < std::size(kUnits); value /= 1024) ++unit;
  char text[32];
  snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace v3d::tools
