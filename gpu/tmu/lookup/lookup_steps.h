/// A LookupSteps is a lookup that code made at run time carries out itself (gpu/qpu/jit), in three steps:
/// from coordinates to texels of a level, to addresses, to return words; where levels or filters differ among
/// lanes, for each of them. Here stands which step a plan needs; run() of the plan does the same, bit for
/// bit, and whatever is not here.
#pragma once

#include <cstdint>

#include "gpu/tmu/lookup/field_tables.h"

namespace v3d::tmu {

struct Plan;

/// What a lookup has for which generated code has no steps.
enum class NotGenerated : uint8_t {
  kNothing,
  kCompressed,
  kFlip,
  kOffsets,
  kQuery,
  kAtomic,
  kStore,
  kFormat,
  kTransfer,
  kGather,
  kCube,
  kDimensions,
  kAnisotropic,
  kCompare,
  kBorder,
  kFilter,
};
inline constexpr int kNumNotGenerated = 16;
const char* name(NotGenerated not_generated);

struct LookupSteps {
  // ---- Steps, as indices of tables. Of the first one 0 is "by run()".

  /// By integers (TMUSF). @param level  B is written
  static constexpr uint8_t fetch(int dims, bool layers, bool level) {
    return static_cast<uint8_t>(1 + ((dims - 1) * 2 + layers) * 2 + level);
  }
  static constexpr int kFetches = 3 * 2 * 2;
  /// Wrap modes with code of their own: the first of Wrap.
  static constexpr int kWraps = 3;
  /// The nearest texel of a level, by itself the base level, of a 2D texture. @param s, t  values of Wrap
  static constexpr uint8_t nearest(int s, int t, bool layers) {
    return static_cast<uint8_t>(1 + kFetches + (s * kWraps + t) * 2 + layers);
  }
  /// The four around a point of that, blended: texels of 8-bit unorm channels. Goes straight to the last
  /// step.
  static constexpr uint8_t linear(int s, int t, bool layers) {
    return static_cast<uint8_t>(nearest(s, t, layers) + kWraps * kWraps * 2);
  }
  /// The same where values are blended in float, a texel after a clamped edge with itself, too.
  static constexpr uint8_t linear_in_float(int s, int t, bool layers) {
    return static_cast<uint8_t>(linear(s, t, layers) + kWraps * kWraps * 2);
  }
  static constexpr int kFilters = 3 * kWraps * kWraps * 2;
  /// Finds levels and filters first, then takes nearest_filter and linear_filter as often as it needs.
  static constexpr uint8_t kLevels = 1 + kFetches + kFilters;
  /// The same, several times along the longer side of the footprint.
  static constexpr uint8_t kAnisotropicLevels = kLevels + 1;
  static constexpr uint8_t kCoordinates = kAnisotropicLevels + 1;
  /// nearest() and linear() among themselves.
  static constexpr uint8_t filter(uint8_t coordinates) {
    return static_cast<uint8_t>(coordinates - 1 - kFetches);
  }

  static constexpr uint8_t address(int log2_cpp, bool raster) {
    return static_cast<uint8_t>(log2_cpp + (raster ? 5 : 0));
  }
  static constexpr uint8_t kAddresses = 10;

  /// Channels of a texel: all alike, or fields that tables decode, whose number is that of bytes here. Depths
  /// of 16 bits or 24, the upper ones of a word, are the only channel.
  enum class Channels : uint8_t {
    kUnorm8,
    kUint8,
    kSint8,
    kHalf,
    kUint16,
    kSint16,
    kFloat,
    kWord,
    kDepth16,
    kDepth24,
    kField,
    kSrgb8  ///< fields: a byte each, of which R, G and B have one table and A is unorm
  };
  static constexpr int kChannels = 12;
  static constexpr bool are_fields(Channels channels) {
    return channels == Channels::kField || channels == Channels::kSrgb8;
  }
  /// Channels that the return words hold: any, or R, G, B, A from the first on, or B, G, R, A.
  enum class Order : uint8_t { kAny, kRgba, kBgra };
  static constexpr int kOrders = 3;
  static constexpr uint16_t load(Channels channels, int log2_count, bool wide, Order order) {
    return static_cast<uint16_t>(((static_cast<int>(channels) * 3 + log2_count) * 2 + wide) * kOrders +
                                 static_cast<int>(order));
  }
  /// As load(), after linear().
  static constexpr uint16_t blend(Channels channels, int log2_count, bool wide, Order order) {
    return static_cast<uint16_t>(kLoads + load(channels, log2_count, wide, order));
  }
  static constexpr uint16_t kLoads = kChannels * 3 * 2 * kOrders;
  /// To decoded channels instead of return words. @param blends  after linear()
  static constexpr uint16_t decode(Channels channels, int log2_count, bool blends) {
    return static_cast<uint16_t>(2 * kLoads + (static_cast<int>(channels) * 3 + log2_count) * 2 + blends);
  }
  /// Data words to texels of 32 bits or more.
  static constexpr uint16_t kStore = 2 * kLoads + kChannels * 3 * 2;
  static constexpr uint16_t kTexels = kStore + 1;

  uint8_t coordinates_step = 0, address_step = 0;
  NotGenerated not_generated = NotGenerated::kNothing;
  uint8_t nearest_filter = 0, linear_filter = 0;      ///< of kLevels
  uint8_t magnified_filter = 0, minified_filter = 0;  ///< which of these
  /// What stands after nearest() and all others, and after linear(); the same, to channels.
  uint16_t texels_step = 0, blend_step = 0, decode_step = 0, decode_blend_step = 0;

  // ---- What the steps need beside the plan

  /// Texels of the next lookup are worth fetching ahead: the level is large, and texels that are looked up
  /// one after another may lie far apart.
  bool fetches_ahead = false;
  uint8_t stored_words = 0;
  bool integers = false;                    ///< the channels are
  uint32_t base_level = 0, num_levels = 0;  ///< levels that fetches can ask for
  uint32_t last_level = 0;                  ///< of filters
  /// Lanes that take the nearest texel, among magnified and minified ones: all or none.
  uint32_t magnified_nearest = 0, minified_nearest = 0;
  float last_layer = 0, bias = 0;
  /// How a return word of halves comes from four channels of a byte each: in both bytes of each half the
  /// number of its channel; the bits that are of channels at all; and those that are 1.
  struct Halves {
    uint32_t channels = 0, mask = 0, ones = 0;
  } halves[2] = {};    ///< of Channels::kUnorm8
  Fields fields = {};  ///< where are_fields()
};

/// Of a complete plan.
LookupSteps make_lookup_steps(const Plan& plan);

}  // namespace v3d::tmu
