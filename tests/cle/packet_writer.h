/// A PacketWriter writes packets and records by the names of their fields, through the packet table.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string_view>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/cle/packet_table.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {

struct FieldValue {
  std::string_view name;
  uint64_t bits;  ///< value as read: not yet minus 1, addresses whole, floats as bits

  FieldValue(std::string_view n, float f) : name(n), bits(std::bit_cast<uint32_t>(f)) {}
  FieldValue(std::string_view n, std::integral auto v) : name(n), bits(static_cast<uint64_t>(v)) {}
};

/// Sets a field in the bytes of a packet body or a record.
inline void put_field(uint8_t* body, const Field& f, uint64_t value) {
  if (f.type == FieldType::kMinusOne) --value;
  if (f.type == FieldType::kAddress) value >>= 32 - f.width;
  if (f.type == FieldType::kBf16) value >>= 16;
  for (unsigned bit = 0; bit < f.width; ++bit) {
    const unsigned at = f.start + bit;
    body[at / 8] =
        static_cast<uint8_t>((body[at / 8] & ~(1u << (at % 8))) | (((value >> bit) & 1) << (at % 8)));
  }
}

template <typename Info>
void put_fields(const Info& info, uint8_t* body, std::initializer_list<FieldValue> values) {
  for (const FieldValue& v : values) {
    const Field* found = nullptr;
    for (const Field& f : info.fields)
      if (f.name != nullptr && v.name == f.name) found = &f;
    ASSERT_NE(found, nullptr) << info.name << ": " << v.name;
    put_field(body, *found, v.bits);
  }
}

class PacketWriter {
 public:
  explicit PacketWriter(chip::Generation generation = chip::Generation::k71) : generation_(generation) {}

  PacketWriter& packet(std::string_view name, std::initializer_list<FieldValue> values = {}) {
    const PacketInfo* info = nullptr;
    for (const PacketInfo& p : packet_table::kPackets)
      if (name == p.name && (p.generations & set_of(generation_))) info = &p;
    EXPECT_NE(info, nullptr) << name;
    if (info == nullptr) return *this;
    const size_t at = bytes_.size();
    bytes_.resize(at + info->length);
    bytes_[at] = static_cast<uint8_t>(info->opcode);
    if (info->sub_id >= 0) put_field(&bytes_[at + 1], info->fields[0], static_cast<uint8_t>(info->sub_id));
    put_fields(*info, bytes_.data() + at + 1, values);
    return *this;
  }
  PacketWriter& byte(uint8_t b) {
    bytes_.push_back(b);
    return *this;
  }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  /// Address in memory; alignment 1, as packets have none. No list begins where another ends.
  GpuAddr build(TestJob* test) const {
    const GpuAddr address = test->put(bytes_, 1);
    test->allocate(1, 1);
    return address;
  }

 private:
  chip::Generation generation_;
  std::vector<uint8_t> bytes_;
};

inline std::vector<uint8_t> make_record(const RecordInfo& info, std::initializer_list<FieldValue> values) {
  std::vector<uint8_t> bytes(info.length);
  put_fields(info, bytes.data(), values);
  return bytes;
}

}  // namespace v3d::cle
