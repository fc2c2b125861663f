/// The upstream is the X server that the proxy stands in front of, as $DISPLAY names it.
#pragma once

#include <string>

#include "ioctl/base/unique_fd.h"
#include "tools/xproxy/framing.h"

namespace v3d::xproxy {

class Upstream {
 public:
  /// @param display  as xcb_parse_display() takes it. False: it is no display's name
  bool parse(const std::string& display);

  /// A connection that does not block. Empty: there is none to be had.
  ioctl::UniqueFd connect() const;
  /// A client's greeting on that connection, with what authorizes it at the server (the authority file's
  /// entry).
  Message greeting(const Greeting& client, const ioctl::UniqueFd& connection) const;

 private:
  ioctl::UniqueFd connect_locally() const;
  ioctl::UniqueFd connect_by_tcp() const;

  std::string host_;  ///< empty: a local server
  int number_ = 0;
};

}  // namespace v3d::xproxy
