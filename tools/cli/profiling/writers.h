/// The writers write a profile in its forms. Equal profiles give equal bytes.
#pragma once

#include <string>

#include "tools/cli/profiling/profile.h"

namespace v3d::tools::profiling {

/// What a terminal shows: the most expensive frames, jobs, shaders and instructions.
std::string to_text(const Profile& profile);

/// All of it (docs/profile.md has the members).
std::string to_json(const Profile& profile);

/// A page that needs nothing but a browser. @param page  export.html of the pages of find_page("inspect")
std::string to_html(const Profile& profile, const std::string& page);

/// Chrome's trace events, for ui.perfetto.dev and chrome://tracing.
std::string to_trace(const Profile& profile);

}  // namespace v3d::tools::profiling
