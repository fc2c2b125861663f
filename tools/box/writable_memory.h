/// Whether a process may write its own memory: who writes it by /proc/PID/mem has to ask, as the kernel does
/// not.
#pragma once

#include <cstdint>

namespace v3d::box {

/// @param maps  /proc/PID/maps, open
bool is_writable(int maps, uint64_t address, uint64_t size);
/// The same by the file's text, where Linux (before 6.11) answers nothing else.
bool is_writable_by_text(int maps, uint64_t address, uint64_t size);

}  // namespace v3d::box
