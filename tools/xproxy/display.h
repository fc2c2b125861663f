/// The proxy has a display of its own: its number, and the sockets where clients come.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ioctl/base/unique_fd.h"

namespace v3d::xproxy {

class Display {
 public:
  Display() = default;
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// Takes a number that no X server has, with its lock file, as X servers do. @return what is wrong; empty:
  /// nothing
  std::string open();

  int number() const { return number_; }
  const std::vector<ioctl::UniqueFd>& listeners() const { return listeners_; }

  /// The next client of a listener. Empty: there is none, or it is another user's: the proxy authorizes
  /// clients at the server as this one.
  static ioctl::UniqueFd accept(const ioctl::UniqueFd& listener);

 private:
  bool lock(int number);
  bool listen(int number);

  int number_ = -1;
  std::string lock_file_, socket_file_;
  std::vector<ioctl::UniqueFd> listeners_;
};

}  // namespace v3d::xproxy
