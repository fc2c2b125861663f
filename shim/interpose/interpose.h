/// This is how the files of this folder define functions of libc and reach the ones they replace.
#pragma once

#include <dlfcn.h>

#include <atomic>

/// Defines a function under libc's symbol `symbol`. Its C++ name is another, so that the declarations of the
/// libc headers (with their attributes and redirections) stay out of the way:
///   V3D_INTERPOSE(int, opened, "open", (const char* path, int flags, ...)) { ... }
#define V3D_INTERPOSE(result, name, symbol, parameters)                                     \
  extern "C" __attribute__((visibility("default"))) result name parameters __asm__(symbol); \
  result name parameters

/// A second symbol for a function that V3D_INTERPOSE defined.
#define V3D_ALIAS(result, name, symbol, target, parameters) \
  extern "C" __attribute__((visibility("default"), alias(target))) result name parameters __asm__(symbol)

namespace v3d::shim {

template <typename Function>
Function* next_definition(std::atomic<void*>* known, const char* symbol) {
  void* found = known->load(std::memory_order_relaxed);
  if (__builtin_expect(!found, 0)) {
    found = dlsym(RTLD_NEXT, symbol);
    known->store(found, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace v3d::shim

/// The next definition of a symbol: libc's, or that of another preloaded library. Looked up on first call,
/// since other libraries call before any constructor of ours runs.
#define V3D_NEXT(type, symbol)                              \
  v3d::shim::next_definition<type>(                         \
      [] {                                                  \
        static constinit std::atomic<void*> slot_{nullptr}; \
        return &slot_;                                      \
      }(),                                                  \
      symbol)
