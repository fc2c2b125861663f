/// Loops that look at memory until another thread writes to it pause between two looks.
#pragma once

namespace v3d {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace v3d
