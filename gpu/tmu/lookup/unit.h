/// A Unit is the texture and memory unit as the QPU uses it: one call per lookup of 16 lanes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gpu/base/lanes.h"
#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d {
struct JobContext;
}

namespace v3d::tmu {

/// Which register write started the lookup (texture.md 2.1).
enum class Launcher : uint8_t { kS, kSCm, kSF, kSLod };

/// Bits of TextureLookup::written: parameters that were written since the previous launch.
enum Parameter : uint8_t { kT = 1, kR = 2, kI = 4, kB = 8, kDref = 16, kOff = 32 };

inline constexpr uint32_t kDefaultP1 = 0x00000004;
inline constexpr uint32_t kDefaultP2 = 0x00f00000;

struct TextureLookup {
  Launcher launcher = Launcher::kS;
  uint8_t written = 0;   ///< Parameter bits
  uint8_t num_data = 0;  ///< TMUD words, 0..4
  uint32_t p0 = 0, p1 = kDefaultP1, p2 = kDefaultP2;
  LaneMask exec = kAllLanes;  ///< lanes whose condition held at the launch
  LaneMask live = kAllLanes;  ///< lanes with MSF != 0
  AlignedLanes s, t, r, i, b, dref, off;
  AlignedLanes data[4];
};

struct GeneralLookup {
  uint8_t config = 0xff;  ///< texture.md 2.4: bit 7 per pixel, bits 6:3 op, bits 2:0 type
  uint8_t num_data = 0;   ///< TMUD words, 0..4
  LaneMask exec = kAllLanes;
  LaneMask live = kAllLanes;
  Lanes address;
  Lanes data[4];
};

/// A lookup of VideoCore IV (vc4-graphics.md 5.1).
struct PackedLookup {
  /// The words of the uniform stream that the writes of T, R, B and S took, in the order of these writes.
  std::array<uint32_t, 4> p = {};
  uint8_t written = 0;        ///< kT, kR, kB; none of them: a direct read
  LaneMask live = kAllLanes;  ///< lanes with coverage
  AlignedLanes s, t, r, b;
};

class Footprint;
struct Plan;

/// State of one worker: memory plus caches of decoded texture and sampler state. Not thread safe.
/// Make a new one (or call begin_job) for every job: drivers rewrite descriptors in place between jobs.
class Unit {
 public:
  explicit Unit(Memory memory, chip::Generation generation);
  ~Unit();
  Unit(Unit&&) noexcept;
  Unit& operator=(Unit&&) noexcept;

  /// The job that lookups are for: they look at it while they take long, and give zeros when it is over.
  /// @param job  outlives the unit, or the next call
  void set_job(const JobContext* job);
  /// Drops all decoded state.
  void begin_job();
  /// Texture lookups of texture() leave there what they touched. Null: nobody asks.
  void set_footprint(Footprint* footprint);

  /// Executes a lookup and writes its return words in order.
  /// @param out  room for 4 words; lanes that take no part return 0
  /// @return number of words that ldtmu will pop, 0..4
  int texture(const TextureLookup& lookup, Lanes* out);

  /// What a lookup is executed by, if that has code; else null. It is the last lookup then.
  const Plan* plan_with_code(const TextureLookup& lookup);
  /// The kind of the last lookup, if it could have code and has none; else null.
  const LookupKind* kind_without_code() const;
  /// The code of the last lookup, for those that follow in its job. @param code  null: it has none, for want
  /// of memory  @param cost  of making it, for the job
  void set_code(std::shared_ptr<const LookupCode> code, uint32_t cost);

  /// What code of lookups with these parameters depends on and reads; those of lanes do not matter.
  LookupKind describe(const TextureLookup& lookup, TextureData& data);

  /// Executes a lookup of VideoCore IV. Whole quads of live lanes take part; others give 0.
  /// @return the word that the signal to load it puts into r4: a byte for each of R, G, B and A, or the word
  /// at
  ///         the address in S
  Lanes packed(const PackedLookup& lookup);

  /// Loads, stores and atomics by byte address (texture.md 8).
  int general(const GeneralLookup& lookup, Lanes* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Lookups that units carried out in finished jobs because generated code could not, by NotGenerated. Thread
/// safe.
std::array<uint64_t, kNumNotGenerated> lookups_not_generated();

}  // namespace v3d::tmu
