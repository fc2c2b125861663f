/// What the commands that read captures have to say about them.
#pragma once

#include <cstdio>
#include <string>

#include "daemon/capture.h"

namespace v3d::tools {

/// On stderr, behind the last job of a file whose format cannot tell whether it is complete.
inline void warn_of_old_format(const char* command, const std::string& file,
                               const daemon::CaptureReader& reader) {
  if (reader.format() >= 2) return;
  std::fprintf(stderr,
               "v3demu %s: %s: format %d has no end record: whether the capture is complete is not known\n",
               command, file.c_str(), reader.format());
}

}  // namespace v3d::tools
