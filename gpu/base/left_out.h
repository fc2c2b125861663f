/// Stages of the GPU can be left out, to see how much faster a program would be without them. Pictures are
/// wrong then.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace v3d {

enum class Stage : uint32_t {
  kFragments = 1u << 0,  ///< all of draws after binning: set-up, coverage, tests, programs
  kPrograms = 1u << 1,   ///< fragment programs, with what they write
  kLookups = 1u << 2,    ///< lookups of textures and images: give 0
  kStores = 1u << 3,     ///< of tiles
};

/// A list such as "lookups,stores"; InvalidArgument, naming those that there are, for another stage.
absl::StatusOr<uint32_t> parse_left_out(absl::string_view list);
/// "fragments, programs, ...".
std::string stage_names();

/// Set before the first job, by who runs the model.
inline uint32_t g_left_out = 0;
inline bool is_left_out(Stage stage) { return (g_left_out & static_cast<uint32_t>(stage)) != 0; }

}  // namespace v3d
