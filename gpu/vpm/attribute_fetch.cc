#include "gpu/vpm/attribute_fetch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "gpu/base/float16.h"
#include "gpu/base/rows.h"

namespace v3d::vpm {

namespace {

enum AttributeType : uint8_t {
  kHalf = 1,
  kFloat = 2,
  kFixed = 3,
  kByte = 4,
  kShort = 5,
  kInt = 6,
  kPacked = 7,  // 2_10_10_10
};

constexpr uint32_t kRowBytes = 4;  // of a lane

/// Of so many components.
uint32_t bytes_of(uint32_t type, uint32_t components) {
  switch (type) {
    case kHalf:
    case kShort:
      return 2 * components;
    case kByte:
      return components;
    case kPacked:
      return 4;
    default:
      return 4 * components;
  }
}

/// How an integer component becomes a register word.
enum class Convert { kBits, kScaled, kNormalized };

template <Convert kConvert, bool kSigned>
Lanes convert(Lanes v, float max) {
  if constexpr (kConvert == Convert::kBits) {
    return v;
  } else {
    LanesF f = kSigned ? __builtin_convertvector(as_int(v), LanesF) : __builtin_convertvector(v, LanesF);
    if constexpr (kConvert == Convert::kNormalized) {
      f = f / max;
      if constexpr (kSigned) f = f < -1.0f ? splat(-1.0f) : f;
    }
    return as_uint(f);
  }
}

/// Components of T at the addresses of 16 elements, zero extended; row c holds component c.
template <typename T>
void gather(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  // Elements are read whole components at a time, never beyond the last one: the next page may be unmapped.
  alignas(64) uint32_t address[kLanes], raw[4][kLanes];
  std::memcpy(address, &addresses, sizeof(address));
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint8_t* element = memory.host(address[lane]);
    for (uint32_t c = 0; c < words; ++c) {
      T value;
      std::memcpy(&value, element + c * sizeof(T), sizeof(T));
      raw[c][lane] = value;
    }
  }
  std::memcpy(rows, raw, words * sizeof(Lanes));
}

/// One 32-bit word per element.
Lanes gather_words(Memory memory, const Lanes& addresses) {
  Lanes words;
  gather<uint32_t>(memory, addresses, 1, &words);
  return words;
}

/// Vectors of 2 to 4 words.
template <uint32_t kWords>
void gather_vectors(Memory memory, const Lanes& addresses, Lanes* rows) {
  alignas(64) uint32_t address[kLanes];
  std::memcpy(address, &addresses, sizeof(address));
  load_rows<kWords>([&](size_t lane) { return memory.host(address[lane]); }, rows);
}

void load_words(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  switch (words) {
    case 2:
      return gather_vectors<2>(memory, addresses, rows);
    case 3:
      return gather_vectors<3>(memory, addresses, rows);
    case 4:
      return gather_vectors<4>(memory, addresses, rows);
    default:
      return gather<uint32_t>(memory, addresses, words, rows);
  }
}

void load_half(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  gather<uint16_t>(memory, addresses, words, rows);
  for (uint32_t c = 0; c < words; ++c) rows[c] = as_uint(half_to_float(rows[c]));
}

void load_fixed(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  load_words(memory, addresses, words, rows);
  for (uint32_t c = 0; c < words; ++c)
    rows[c] = as_uint(__builtin_convertvector(as_int(rows[c]), LanesF) * (1.0f / 65536));
}

template <typename T, Convert kConvert, bool kSigned>
void load_integer(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  if (sizeof(T) == 1 && words == 4) {
    const Lanes packed = gather_words(memory, addresses);
    for (uint32_t c = 0; c < 4; ++c) rows[c] = (packed >> (8 * c)) & 0xffu;
  } else {
    gather<T>(memory, addresses, words, rows);
  }
  const auto max = static_cast<float>((uint64_t{1} << (kBits - (kSigned ? 1 : 0))) - 1);
  for (uint32_t c = 0; c < words; ++c) {
    Lanes v = rows[c];
    if constexpr (kSigned && kBits < 32) v = as_uint(as_int(v << (32 - kBits)) >> int{32 - kBits});
    rows[c] = convert<kConvert, kSigned>(v, max);
  }
}

template <Convert kConvert, bool kSigned>
void load_packed(Memory memory, const Lanes& addresses, uint32_t words, Lanes* rows) {
  const Lanes packed = gather_words(memory, addresses);
  for (uint32_t c = 0; c < words; ++c) {
    const uint32_t width = c == 3 ? 2 : 10;
    Lanes v = packed << (32 - 10 * c - width);
    v = kSigned ? as_uint(as_int(v) >> static_cast<int>(32 - width)) : v >> (32 - width);
    rows[c] = convert<kConvert, kSigned>(v, static_cast<float>((1u << (width - (kSigned ? 1 : 0))) - 1));
  }
}

using Loader = void (*)(Memory, const Lanes&, uint32_t, Lanes*);

/// The instance of a loader for the attribute's conversion and sign.
template <template <Convert, bool> typename Family>
Loader pick(const draw::Attribute& a) {
  const Convert c = a.read_as_int ? Convert::kBits : a.normalized ? Convert::kNormalized : Convert::kScaled;
  switch (c) {
    case Convert::kBits:
      return a.is_signed ? Family<Convert::kBits, true>::kLoad : Family<Convert::kBits, false>::kLoad;
    case Convert::kScaled:
      return a.is_signed ? Family<Convert::kScaled, true>::kLoad : Family<Convert::kScaled, false>::kLoad;
    case Convert::kNormalized:
      break;
  }
  return a.is_signed ? Family<Convert::kNormalized, true>::kLoad : Family<Convert::kNormalized, false>::kLoad;
}

template <Convert kConvert, bool kSigned>
struct Bytes {
  static constexpr Loader kLoad = load_integer<uint8_t, kConvert, kSigned>;
};
template <Convert kConvert, bool kSigned>
struct Shorts {
  static constexpr Loader kLoad = load_integer<uint16_t, kConvert, kSigned>;
};
template <Convert kConvert, bool kSigned>
struct Ints {
  static constexpr Loader kLoad = load_integer<uint32_t, kConvert, kSigned>;
};
template <Convert kConvert, bool kSigned>
struct Packed {
  static constexpr Loader kLoad = load_packed<kConvert, kSigned>;
};

}  // namespace

AttributeFetcher::Load AttributeFetcher::choose_load(const draw::Attribute& attribute) {
  switch (attribute.type) {
    case kHalf:
      return load_half;
    case kFloat:
      return load_words;
    case kFixed:
      return load_fixed;
    case kByte:
      return pick<Bytes>(attribute);
    case kShort:
      return pick<Shorts>(attribute);
    case kInt:
      return pick<Ints>(attribute);
    case kPacked:
      return pick<Packed>(attribute);
    default:
      return nullptr;
  }
}

AttributeFetcher::AttributeFetcher(const draw::ShaderRecord& record, bool coordinate)
    : instance_id_(coordinate ? record.cs_instance_id : record.vs_instance_id),
      base_instance_(coordinate ? record.cs_base_instance : record.vs_base_instance),
      base_vertex_(coordinate ? record.cs_base_vertex : record.vs_base_vertex),
      draw_index_(coordinate ? record.cs_draw_index : record.vs_draw_index),
      vertex_id_(coordinate ? record.cs_vertex_id : record.vs_vertex_id) {
  rows_ = static_cast<uint32_t>(instance_id_) + base_instance_ + base_vertex_ + draw_index_ + vertex_id_;
  for (uint32_t i = 0; i < record.num_attributes; ++i) {
    const draw::Attribute& a = record.attributes[i];
    if (record.raw_attributes) {
      add_raw(i, a, coordinate);
      continue;
    }
    const uint32_t words = coordinate ? a.cs_words : a.vs_words;
    if (words == 0) continue;
    const Load load = choose_load(a);
    if (load == nullptr) {
      error_ = absl::StrFormat("attribute %d has type %d, which the hardware does not have", i, a.type);
      return;
    }
    sources_.push_back({.load = load,
                        .loaded = std::min<uint32_t>(words, a.vec_size),
                        .words = words,
                        .bytes = bytes_of(a.type, std::min<uint32_t>(words, a.vec_size)),
                        .address = a.address,
                        .stride = a.stride,
                        .max_index = a.max_index,
                        .divisor = a.divisor,
                        .read_as_int = a.read_as_int,
                        .defaults = record.default_attributes ? record.default_attributes + 16 * i : 0});
    rows_ += words;
  }
}

/// Rows lie where the attribute says, and those between attributes hold 0 (assumed).
void AttributeFetcher::add_raw(uint32_t number, const draw::Attribute& a, bool coordinate) {
  const uint32_t bytes = coordinate ? a.cs_bytes : a.vs_bytes,
                 offset = coordinate ? a.cs_offset : a.vs_offset;
  if (bytes == 0) return;
  if (offset % kRowBytes != 0) {
    error_ = absl::StrFormat("attribute %d at byte %d of the VPM, which is not the start of a row", number,
                             offset);
    return;
  }
  raw_sources_.push_back(
      {.address = a.address, .stride = a.stride, .bytes = bytes, .first_row = offset / kRowBytes});
  rows_ = std::max(rows_, (offset + bytes + kRowBytes - 1) / kRowBytes);
}

Lanes AttributeFetcher::raw_addresses(const RawSource& s, const BatchRefs& refs) {
  const Lanes element = refs.index < refs.max_index ? refs.index : splat(refs.max_index);
  return element * s.stride + s.address;
}

void AttributeFetcher::fetch_raw(Memory memory, const RawSource& s, const Lanes& addresses, Lanes* rows) {
  constexpr uint32_t kMostWords = 4;  // of load_words()
  const uint32_t whole = s.bytes / kRowBytes, rest = s.bytes % kRowBytes;
  for (uint32_t row = 0; row < whole; row += kMostWords)
    load_words(memory, addresses + row * kRowBytes, std::min(kMostWords, whole - row), rows + row);
  if (rest == 0) return;
  // Never beyond the last byte: the next page may be unmapped.
  alignas(64) uint32_t words[kLanes] = {};
  for (int lane = 0; lane < kLanes; ++lane)
    memory.read(addresses[lane] + whole * kRowBytes, &words[lane], rest);
  std::memcpy(rows + whole, words, sizeof words);
}

void AttributeFetcher::fill_defaults(Memory memory, const Source& source, Lanes* rows) const {
  const uint32_t one = source.read_as_int ? 1 : std::bit_cast<uint32_t>(1.0f);
  for (uint32_t c = source.loaded; c < source.words; ++c) {
    uint32_t value = c == 3 ? one : 0;
    if (source.defaults != 0 && c < 4) value = memory.load<uint32_t>(source.defaults + 4 * c);
    rows[c] = splat(value);
  }
}

Lanes AttributeFetcher::addresses(const Source& s, const BatchRefs& refs) {
  Lanes element = refs.index;
  if (s.divisor != 0) element = refs.instance / uint32_t{s.divisor} + refs.base_instance;
  element = element < s.max_index ? element : splat(s.max_index);
  return element * s.stride + s.address;
}

void AttributeFetcher::show(const BatchRefs& refs, LaneMask lanes, WorkWatch* work) const {
  for (const Source& s : sources_) work->fetch(addresses(s, refs), lanes, s.bytes);
  for (const RawSource& s : raw_sources_) work->fetch(raw_addresses(s, refs), lanes, s.bytes);
}

void AttributeFetcher::fetch(Memory memory, const BatchRefs& refs, Lanes* rows) const {
  if (!raw_sources_.empty()) {
    std::fill_n(rows, rows_, Lanes{});
    for (const RawSource& s : raw_sources_) fetch_raw(memory, s, raw_addresses(s, refs), rows + s.first_row);
    return;
  }
  if (instance_id_) *rows++ = refs.instance;
  if (base_instance_) *rows++ = splat(refs.base_instance);
  // Assumed: these two stand between the others. No driver reads them.
  if (base_vertex_) *rows++ = splat(refs.base_vertex);
  if (draw_index_) *rows++ = splat(refs.draw_index);
  if (vertex_id_) *rows++ = refs.index;
  for (const Source& s : sources_) {
    s.load(memory, addresses(s, refs), s.loaded, rows);
    fill_defaults(memory, s, rows);
    rows += s.words;
  }
}

}  // namespace v3d::vpm
