/// @file A profile as a page: that of v3demu inspect with the JSON in it.
#include "absl/strings/str_replace.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {

std::string to_html(const Profile& profile, const std::string& page) {
  // Nothing in the data may look like the end of the element that holds it, or like a comment.
  const std::string data = absl::StrReplaceAll(to_json(profile), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(page, {{"{{profile}}", data}});
}

}  // namespace v3d::tools::profiling
