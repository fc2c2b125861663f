/// An Action is a part of an instruction of V3D 2.1 that one function of the host executes: an operation of
/// one ALU, say, or the read of a port. What an action leaves behind the next one finds in registers.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::vc4 {

/// Lanes where the flag is set, or where it is not.
struct Condition {
  uint8_t flag = Thread::kNone;
  bool invert = false;
  bool operator==(const Condition&) const = default;
};
inline constexpr Condition kAlways = {Thread::kNone, true};

inline LaneMask lanes_where(const Condition& c, const Thread& t) {
  return static_cast<LaneMask>(t.flags[c.flag] ^ (c.invert ? kAllLanes : LaneMask{0}));
}

struct Action;
/// @return  null, or why the thread hangs; then thread.pc is that of the instruction
using ActionFn = const char* (*)(Thread&, const Action&);

struct Action {
  ActionFn run = nullptr;
  uint16_t to = 0, a = 0, b = 0;  ///< registers, as byte offsets in the thread
  uint8_t index = 0;              ///< of the instruction, in its chunk
  Condition condition = kAlways;
  uint32_t immediate = 0;
};

inline Lanes& register_at(Thread& t, uint16_t offset) {
  return *reinterpret_cast<Lanes*>(reinterpret_cast<char*>(&t) + offset);
}

constexpr uint16_t register_offset(int n) {
  return static_cast<uint16_t>(n * static_cast<int>(sizeof(Lanes)));
}

}  // namespace v3d::qpu::vc4
