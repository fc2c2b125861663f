/// @file A profile as a page: page.html with the JSON in it.
#include "absl/strings/str_replace.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {

extern const char kPage[];

std::string to_html(const Profile& profile) {
  // Nothing in the data may look like the end of the element that holds it, or like a comment.
  const std::string data = absl::StrReplaceAll(to_json(profile), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kPage, {{"{{profile}}", data}});
}

}  // namespace v3d::tools::profiling
