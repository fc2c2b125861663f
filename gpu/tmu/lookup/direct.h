/// Lookups that code made at run time carries out itself (gpu/qpu/jit), in three steps: from coordinates to
/// texels of a level, to addresses, to return words. Here stands which step a plan needs; run() of the plan
/// does the same, bit for bit, and whatever is not here.
#pragma once

#include <cstdint>

namespace v3d::tmu {

struct Plan;

struct Direct {
  // ---- Steps, as indices of tables. Of the first one 0 is "by run()".

  /// By integers (TMUSF). @param level  B is written
  static constexpr uint8_t fetch(int dims, bool layers, bool level) {
    return static_cast<uint8_t>(1 + ((dims - 1) * 2 + layers) * 2 + level);
  }
  static constexpr int kFetches = 3 * 2 * 2;
  /// Wrap modes with code of their own: the first of Wrap.
  static constexpr int kWraps = 3;
  /// The nearest texel of the base level of a 2D texture. @param s, t  values of Wrap
  static constexpr uint8_t nearest(int s, int t, bool layers) {
    return static_cast<uint8_t>(1 + kFetches + (s * kWraps + t) * 2 + layers);
  }
  /// The four around a point of that, blended: texels of 8-bit unorm channels. Goes straight to the last
  /// step.
  static constexpr uint8_t linear(int s, int t, bool layers) {
    return static_cast<uint8_t>(nearest(s, t, layers) + kWraps * kWraps * 2);
  }
  static constexpr uint8_t kCoordinates = 1 + kFetches + 2 * kWraps * kWraps * 2;

  static constexpr uint8_t address(int log2_cpp, bool raster) {
    return static_cast<uint8_t>(log2_cpp + (raster ? 5 : 0));
  }
  static constexpr uint8_t kAddresses = 10;

  /// Channels of a texel: all alike.
  enum class Channels : uint8_t { kUnorm8, kUint8, kSint8, kHalf, kUint16, kSint16, kFloat, kWord };
  static constexpr int kChannels = 8;
  /// Channels behind the return words: any, or R, G, B, A from the first on, or B, G, R, A.
  enum class Order : uint8_t { kAny, kRgba, kBgra };
  static constexpr int kOrders = 3;
  static constexpr uint8_t load(Channels channels, int log2_count, bool wide, Order order) {
    return static_cast<uint8_t>(((static_cast<int>(channels) * 3 + log2_count) * 2 + wide) * kOrders +
                                static_cast<int>(order));
  }
  /// Data words to texels of 32 bits or more.
  static constexpr uint8_t kStore = kChannels * 3 * 2 * kOrders;
  /// As load(), of 8-bit unorm channels, behind linear().
  static constexpr uint8_t blend(int log2_count, bool wide, Order order) {
    return static_cast<uint8_t>(kStore + 1 + (log2_count * 2 + wide) * kOrders + static_cast<int>(order));
  }
  static constexpr uint8_t kTexels = kStore + 1 + 3 * 2 * kOrders;

  uint8_t coordinates_step = 0, address_step = 0, texels_step = 0;

  // ---- What the steps need beside the plan

  uint8_t stored_words = 0;
  uint32_t base_level = 0, num_levels = 0;  ///< levels that fetches can ask for
  float last_layer = 0;
};

/// Of a complete plan.
Direct make_direct(const Plan& plan);

}  // namespace v3d::tmu
