/// Answers of an Inspector for the page, as JSON, or as JSON with pixels behind it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/inspect/inspector.h"
#include "tools/inspect/whole_profile.h"

namespace v3d::inspect {

struct Answer {
  int status = 200;  ///< of HTTP
  bool is_json = true;
  /// JSON; if it is not: four bytes, little endian, say how many bytes of JSON follow, behind which pixels
  /// stand, four bytes each.
  std::string body;
};

/// The value of a parameter of the question; nothing: it has none of that name.
using Parameters = std::function<std::optional<std::string>(const char* name)>;

/// What questions are about: a capture, and one that it is compared with.
struct Captures {
  struct One {
    Inspector* inspector = nullptr;
    std::string file;                 ///< its name, as it is shown
    WholeProfile* profile = nullptr;  ///< null: nobody asks for it
  };
  One first;
  One other;  ///< whose questions have "other=1"; without an inspector: there is none
};

/// @param question  "capture", "job", "time", "listing", "picture", "heat", "history", "steps", "texture",
/// "textures", "vertices", "memory", "explain" or "profile"
Answer answer(const Captures& captures, const std::string& question, const Parameters& parameters);

}  // namespace v3d::inspect
