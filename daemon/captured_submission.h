/// A captured submission is what a client handed to vc4's SUBMIT_CL on a board. There no buffer object has an
/// address: the kernel makes the job of it, and here the same checks do.
///
/// Words: the client's number, SUBMIT_CL without its pointers and handles (44 words, ioctl/abi/vc4.h);
/// address, pages and 1 of a shader for each of its buffer objects; list, records and uniforms, each up to
/// whole words.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/device/surface_job.h"
#include "gpu/mmu/address_space.h"

namespace v3d::daemon {

/// Where the checked copy of list, records and uniforms lies. Buffer objects of such captures lie below.
inline constexpr uint32_t kCopyAddress = 1u << 30;
/// Programs of one submission, in bytes of their buffer objects: so much is analysed.
inline constexpr uint64_t kMostShaderBytes = 16 << 20;

struct SubmittedFrame {
  std::shared_ptr<const device::SurfaceJob> job;
  std::vector<uint8_t> copy;  ///< for kCopyAddress; empty: the frame bins nothing
};

/// Memory as the submission found it, by the address of a page that is mapped.
using FoundPage = std::function<std::span<const uint8_t, mmu::kPageSize>(uint32_t address)>;

/// @param bytes  of the words
/// @param space  of the client
/// @return InvalidArgument where the kernel returns EINVAL, and of words that are no submission
absl::StatusOr<SubmittedFrame> frame_of_submission(std::span<const uint32_t> words, uint32_t bytes,
                                                   const mmu::AddressSpace& space, const FoundPage& found);

}  // namespace v3d::daemon
