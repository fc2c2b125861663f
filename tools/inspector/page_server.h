/// A PageServer serves the page of `v3demu inspect` and its answers on a port of the loopback device.
///
/// Whoever reaches the port has to be of the same user, know the token in the address, name the port's own
/// host, and come from no other page: so neither other users nor pages of other origins get an answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/inspect/answers.h"

namespace v3d::inspect {

class PageServer {
 public:
  /// Answers a question of the page; any thread.
  using Ask = std::function<Answer(const std::string& question, const Parameters& parameters)>;

  /// @param folder  of the page: index.html, page.js and page.css  @param port  0: any that is free
  /// @param patience  how long a request may take to come
  static absl::StatusOr<std::unique_ptr<PageServer>> create(
      const std::string& folder, int port, Ask ask,
      std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~PageServer();

  /// "http://127.0.0.1:PORT/TOKEN/"
  const std::string& address() const;
  /// Serves until stop(), which any thread may call.
  void run();
  void stop();

 private:
  struct State;
  explicit PageServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace v3d::inspect
