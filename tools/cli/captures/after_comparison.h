/// An AfterComparison says in what the memory that jobs left here differs from what they left where they were
/// recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/capture.h"
#include "daemon/json_writer.h"
#include "gpu/mmu/address_space.h"
#include "tools/cli/captures/render_images.h"

namespace v3d::tools {

struct AfterComparison {
  /// An image that the job stores.
  struct Image {
    GpuAddr address;
    uint32_t width, height;
    uint64_t pixels = 0;         ///< that differ
    uint32_t x = 0, y = 0;       ///< of the first of these, from the top left
    uint32_t here, recorded;     ///< it, red in the lowest byte
    uint32_t largest = 0;        ///< difference of a channel, of 255
    std::string no_pixels = {};  ///< why they cannot be told; empty: they can
  };
  /// A range of memory, a BO as a rule.
  struct Place {
    mmu::AddressSpace::Range range;
    uint64_t words = 0;         ///< of 32 bits that differ
    uint64_t hashed_pages = 0;  ///< that differ, of those of whose contents a hash alone is recorded
    GpuAddr first_hashed = 0;   ///< of these
    GpuAddr first = 0;
    uint32_t here, recorded;   ///< the first of these
    uint32_t largest = 0;      ///< difference, as of numbers without a sign
    double largest_float = 0;  ///< as of floats, of those words that are finite ones on both sides
  };

  uint64_t pages = 0;  ///< that were compared
  std::vector<Image> images;
  std::vector<Place> places;

  bool equal() const { return places.empty(); }
};

/// Compares, and has memory hold what was recorded.
/// @param images  that the job stores
AfterComparison compare_after(const daemon::CaptureReader& reader, const daemon::CapturedAfter& after,
                              mmu::AddressSpace& space, const std::vector<StoredImage>& images);

/// Lines for people, each after two blanks; of an equal one none.
/// @param job, file  for the command that shows how a pixel came about
std::string text_of(const AfterComparison& comparison, int job, const std::string& file);
/// The members of an object.
void write_json(const AfterComparison& comparison, daemon::JsonWriter* json);

}  // namespace v3d::tools
