/// Functions of the host that compiled programs are made of.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d::tmu {
struct TextureData;
}
namespace v3d::qpu {
struct Thread;
}

namespace v3d::qpu::jit {

struct Frame;

/// Of a part of a program, from the registers of the thread to its registers.
/// @return  which way the thread goes on, or kThreadHangs: Frame::error, or what was thrown
using ThreadFn = uint32_t (*)(Thread* thread, Frame* frame);
inline constexpr uint32_t kThreadGoesOn = 0, kThreadBranches = 1, kThreadHangs = 2;

/// Of a texture lookup, from parameters in the thread to return words.
/// @param middle_of_memory  the host's address of half the address space
using LookupFn = void (*)(Thread* thread, const tmu::TextureData* texture, const uint8_t* middle_of_memory,
                          Lanes* words);

}  // namespace v3d::qpu::jit
