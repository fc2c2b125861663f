/// The proxy as a whole says who listens, which clients there are, and when it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/xproxy/client.h"
#include "tools/xproxy/display.h"
#include "tools/xproxy/poller.h"
#include "tools/xproxy/presenter.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/server.h"
#include "tools/xproxy/upstream.h"

namespace v3d::xproxy {

class Proxy {
 public:
  /// @param end  readable once the program has ended for which this is
  /// @param stop  readable once this is to end at once
  Proxy(ioctl::UniqueFd end, ioctl::UniqueFd stop, double vblank_hz);

  /// Reaches the server and opens a display for it. @return why it cannot; empty: it does
  std::string open(const std::string& display);
  int number() const { return display_.number(); }

  /// Until the program has ended and no client is left, or the server has gone.
  void run();

 private:
  void accept(const ioctl::UniqueFd& listener);
  void dispatch(const Poller::Ready& ready);
  void watch(const Client& client);
  void relay_all();

  Poller poller_;
  ioctl::UniqueFd end_, stop_;
  double vblank_hz_;
  bool program_ended_ = false, stopped_ = false;
  Upstream upstream_;
  Display display_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Presenter> presenter_;
  Resources resources_;
  std::unique_ptr<Context> context_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace v3d::xproxy
