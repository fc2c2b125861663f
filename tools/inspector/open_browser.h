/// An OpenedBrowser is the browser of the desktop that a command was started from, at an address with a
/// secret in it.
#pragma once

#include <string>

#include "tools/cli/files/files.h"

namespace v3d::inspect {

class OpenedBrowser {
 public:
  /// Opens the address with xdg-open, where there are a display and that program; else nothing happens.
  explicit OpenedBrowser(const std::string& address);

 private:
  /// Has a file that leads to the address: others can read the words of commands, but not this.
  tools::TemporaryFolder folder_;
};

}  // namespace v3d::inspect
