/// A LocalServer speaks HTTP with programs of its own user on the loopback device, and gives none of them
/// more time and room than a request of a page takes.
///
/// httplib::Server itself waits without end for a line that grows slowly, and keeps all of it.
#pragma once

#include <httplib.h>

#include <chrono>
#include <cstddef>

namespace v3d::inspect {

struct LocalLimits {
  std::chrono::milliseconds idle{5000};     ///< between requests of a connection
  std::chrono::milliseconds request{5000};  ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30000};  ///< for the other side to take it
  size_t request_bytes = 64 << 10;
};

class LocalServer final : public httplib::Server {
 public:
  explicit LocalServer(const LocalLimits& limits) : limits_(limits) {}

 private:
  bool process_and_close_socket(socket_t sock) override;

  const LocalLimits limits_;
};

}  // namespace v3d::inspect
