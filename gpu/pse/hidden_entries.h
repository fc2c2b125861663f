/// HiddenEntries says which entries of a tile's list nobody sees: those that a triangle behind them, or two
/// of a rectangle, replace in all pixels of the tile, and that leave no other trace. They need not be drawn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/work_meter.h"
#include "gpu/draw/bin_result.h"
#include "gpu/pse/coverage.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/pse/program_effects.h"

namespace v3d::pse {

class HiddenEntries {
 public:
  /// Null when nothing is hidden, whatever the lists are: somebody counts or watches what is drawn, the
  /// frame has several samples or not one colour, or no draw may cover another.
  /// @param job, draws  outlive it; so does what is in `config`
  static std::unique_ptr<const HiddenEntries> create(const JobContext& job, const tlb::Config& config,
                                                     const std::vector<PreparedDraw>& draws);

  struct Range {
    size_t first = 0, end = 0;
  };
  /// Of the list of the tile whose first pixel is (tile_x, tile_y). Thread safe.
  Range find(std::span<const draw::ListEntry> list, int tile_x, int tile_y) const;

 private:
  /// What a draw may be to others: as its state tells, then also as its program does, once that was asked
  /// for.
  struct Role {
    std::atomic<bool> covers{false}, hides{false};
    std::atomic<bool> knows_program{false};
    bool writes_depth = false;
  };

  HiddenEntries(const JobContext& job, const tlb::Config& config, const std::vector<PreparedDraw>& draws,
                std::unique_ptr<Role[]> roles);
  const Role& with_program(uint32_t draw, WorkMeter& meter) const;
  ProgramEffects effects_of(const PreparedDraw& draw, WorkMeter& meter) const;
  struct Cuts {
    int count;
    Edge edge;  ///< the last of them
  };
  Cuts cuts_of(const draw::ListEntry& entry, const Rect& pixels) const;
  size_t covering(std::span<const draw::ListEntry> list, size_t last, const Rect& pixels) const;

  const JobContext& job_;
  const tlb::Config& config_;
  const std::vector<PreparedDraw>& draws_;
  const std::unique_ptr<Role[]> roles_;
  mutable std::mutex mutex_;
  /// By program and where its threads start; guarded by mutex_.
  mutable std::map<std::pair<const qpu::Program*, bool>, ProgramEffects> effects_;
};

}  // namespace v3d::pse
