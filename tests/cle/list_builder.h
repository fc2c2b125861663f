/// Writes control lists for tests, field by field from the packet table.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gpu/cle/packet_table.h"

namespace v3d::cle {

class ListBuilder {
 public:
  explicit ListBuilder(int version = 71) : version_(version) {}

  struct Value {
    std::string_view field;
    uint64_t value;  ///< as the packet table reads it: minus-one fields hold the real number
  };

  /// Appends the packet of that name; fields that are not named are 0.
  ListBuilder& add(std::string_view name, std::initializer_list<Value> values = {}) {
    for (const PacketInfo& info : packet_table::kPackets) {
      if (name != info.name || (info.versions & version_bit(version_)) == 0) continue;
      append(info, values);
      return *this;
    }
    ADD_FAILURE() << "no packet " << name;
    return *this;
  }
  ListBuilder& add_byte(uint8_t byte) {
    bytes_.push_back(byte);
    return *this;
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }

 private:
  void append(const PacketInfo& info, std::initializer_list<Value> values) {
    const size_t body = bytes_.size() + 1;
    bytes_.push_back(static_cast<uint8_t>(info.opcode));
    bytes_.resize(bytes_.size() + info.length - 1);
    for (const Field& f : info.fields) {
      if (f.name == nullptr) continue;
      uint64_t value = 0;
      if (std::string_view(f.name) == "sub-id") value = static_cast<uint64_t>(info.sub_id);
      bool named = false;
      for (const Value& v : values) {
        if (v.field != f.name) continue;
        value = v.value;
        named = true;
      }
      if (f.type == FieldType::kMinusOne && named) value -= 1;
      if (f.type == FieldType::kAddress) value >>= 32 - f.width;
      for (uint32_t i = 0; i < f.width; ++i) {
        const uint32_t bit = f.start + i;
        bytes_[body + bit / 8] |= static_cast<uint8_t>(((value >> i) & 1) << (bit % 8));
      }
    }
    for (const Value& v : values) {
      bool known = false;
      for (const Field& f : info.fields) known |= f.name != nullptr && v.field == f.name;
      EXPECT_TRUE(known) << info.name << " has no field " << v.field;
    }
  }

  const int version_;
  std::vector<uint8_t> bytes_;
};

}  // namespace v3d::cle
