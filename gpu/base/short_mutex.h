/// A ShortMutex is never held for long: who finds it taken looks again for a while before it sleeps.
///
/// To sleep costs more than the time itself: who unlocks has to wake the sleeper, and Linux may put that
/// behind the one that does so, on the same processor, and leave it there for milliseconds.
#pragma once

#include <pthread.h>

#include <mutex>

#include "gpu/base/pause.h"

namespace v3d {

/// For condition variables, too.
class ShortMutex : public std::mutex {
 public:
  ShortMutex() {
#ifdef __GLIBC__
    // For those that a condition variable locks again.
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) return;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_destroy(native_handle());
    pthread_mutex_init(native_handle(), &attributes);
    pthread_mutexattr_destroy(&attributes);
#endif
  }
};

/// Locks it. @param lock  of a ShortMutex, which it does not hold
inline void lock_soon(std::unique_lock<std::mutex>& lock) {
  constexpr int kLooks = 1000;  // some tens of microseconds
  for (int i = 0; i < kLooks; ++i) {
    if (lock.try_lock()) return;
    pause();
  }
  lock.lock();
}
inline std::unique_lock<std::mutex> lock_soon(ShortMutex& mutex) {
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  lock_soon(lock);
  return lock;
}

}  // namespace v3d
