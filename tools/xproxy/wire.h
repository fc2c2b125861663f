/// These functions read and write X11's packets as bytes, in the byte order of the client that they belong
/// to. Positions are offsets in bytes from the start of a packet, as the protocol's encoding lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace v3d::xproxy {

enum class Order : uint8_t { kLittle, kBig };

using Bytes = std::span<const uint8_t>;

/// The fields of a packet. What lies beyond its end reads as zero.
class Reader {
 public:
  Reader(Bytes bytes, Order order) : bytes_(bytes), order_(order) {}

  uint8_t u8(size_t at) const { return at < bytes_.size() ? bytes_[at] : uint8_t{0}; }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  int16_t s16(size_t at) const { return static_cast<int16_t>(number(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(size_t at) const { return number(at, 8); }
  size_t size() const { return bytes_.size(); }
  Bytes bytes() const { return bytes_; }
  Order order() const { return order_; }

 private:
  uint64_t number(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t significance = order_ == Order::kLittle ? i : size - 1 - i;
      value |= uint64_t{u8(at + i)} << (8 * significance);
    }
    return value;
  }

  Bytes bytes_;
  Order order_;
};

/// A packet in the making: zero where nothing is put.
class Message {
 public:
  /// @param size  in bytes
  Message(Order order, size_t size) : bytes_(size), order_(order) {}

  Message& u8(size_t at, uint8_t value) { return number(at, 1, value); }
  Message& u16(size_t at, uint16_t value) { return number(at, 2, value); }
  Message& s16(size_t at, int16_t value) { return number(at, 2, static_cast<uint16_t>(value)); }
  Message& u32(size_t at, uint32_t value) { return number(at, 4, value); }
  Message& u64(size_t at, uint64_t value) { return number(at, 8, value); }
  Bytes bytes() const { return bytes_; }

 private:
  Message& number(size_t at, size_t size, uint64_t value) {
    for (size_t i = 0; i < size; ++i) {
      const size_t significance = order_ == Order::kLittle ? i : size - 1 - i;
      bytes_.at(at + i) = static_cast<uint8_t>(value >> (8 * significance));
    }
    return *this;
  }

  std::vector<uint8_t> bytes_;
  Order order_;
};

inline constexpr size_t kPacketSize = 32;  ///< bytes of an error, of most events and of a reply without more

/// A request of `words` units of four bytes.
Message make_request(Order order, uint8_t major, uint8_t minor, uint16_t words);
/// A reply with `words` units of four bytes after the first 32 bytes.
Message make_reply(Order order, uint16_t sequence, uint32_t words = 0);

/// What an error packet says.
struct Error {
  uint8_t code;
  uint32_t value;
  uint16_t minor;
  uint8_t major;
};
Message make_error(Order order, uint16_t sequence, const Error& error);

constexpr size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

}  // namespace v3d::xproxy
