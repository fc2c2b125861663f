/// The request word of an ioctl (Linux include/uapi/asm-generic/ioctl.h) has direction in bits 31:30, size of
/// the argument in 29:16, type in 15:8, number in 7:0. The kernel looks at a driver's number alone; the size
/// says how much of the argument the caller has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace v3d::ioctl::drm {

inline constexpr uint32_t kDirectionIn = 1u << 30;   ///< the caller's argument is read
inline constexpr uint32_t kDirectionOut = 2u << 30;  ///< it is written
constexpr uint32_t request_size(uint32_t request) { return (request >> 16) & 0x3fff; }
constexpr uint32_t request_type(uint32_t request) { return (request >> 8) & 0xff; }
constexpr uint32_t request_nr(uint32_t request) { return request & 0xff; }
/// The same ioctl by a caller whose argument is of another size.
constexpr uint32_t request_of_size(uint32_t request, uint32_t size) {
  return (request & ~(0x3fffu << 16)) | size << 16;
}

/// Argument of the ioctls that have none.
struct None {};

/// The word of an ioctl whose argument is an Args.
template <typename Args>
constexpr uint32_t make_request(uint32_t direction, char type, uint32_t number) {
  constexpr uint32_t kSize = std::is_empty_v<Args> ? 0 : sizeof(Args);
  return direction | kSize << 16 | static_cast<uint32_t>(type) << 8 | number;
}

/// @name Words of DRM: the argument is read and written, read, written, or there is none
template <typename Args>
constexpr uint32_t iowr(uint32_t number) {
  return make_request<Args>(kDirectionIn | kDirectionOut, 'd', number);
}
template <typename Args>
constexpr uint32_t iow(uint32_t number) {
  return make_request<Args>(kDirectionIn, 'd', number);
}
template <typename Args>
constexpr uint32_t ior(uint32_t number) {
  return make_request<Args>(kDirectionOut, 'd', number);
}
constexpr uint32_t io(uint32_t number) { return make_request<None>(0, 'd', number); }

}  // namespace v3d::ioctl::drm
