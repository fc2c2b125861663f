/// v3demu screen: what programs show on the display, as a window, pictures or a video.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/run/control.h"
#include "tools/cli/screen/watch.h"

namespace v3d::tools {
namespace {

volatile sig_atomic_t g_interrupted = 0;

int fail(const absl::Status& error) {
  fprintf(stderr, "v3demu screen: %s\n", std::string(error.message()).c_str());
  return 1;
}

absl::StatusOr<std::vector<std::unique_ptr<Output>>> all_outputs(ScreenOptions options) {
  options.window = options.png.empty() && options.video.empty();
  auto outputs = make_outputs(options);
  if (!outputs.ok() || options.png.empty()) return outputs;
  auto pictures = make_pictures(options.png, std::max<uint64_t>(options.frames, 1));
  if (!pictures.ok()) return pictures.status();
  outputs->push_back(*std::move(pictures));
  return outputs;
}

/// Once one runs there, or after a signal NotFound. @param named  empty: the one that programs use
absl::StatusOr<ScreenClient> wait_for_daemon(const std::string& named) {
  const auto socket = [&] { return named.empty() ? used_socket() : named; };
  auto client = ScreenClient::connect(socket());
  if (absl::IsNotFound(client.status()))
    fprintf(stderr, "v3demu screen: waiting for a daemon on %s\n", socket().c_str());
  while (absl::IsNotFound(client.status()) && !g_interrupted) {
    usleep(100'000);
    client = ScreenClient::connect(socket());
  }
  return client;
}

int show_screen(const ScreenOptions& options, const std::string& socket) {
  auto outputs = all_outputs(options);
  if (!outputs.ok()) return fail(outputs.status());
  for (const int number : {SIGINT, SIGTERM}) signal(number, [](int) { g_interrupted = 1; });
  auto client = wait_for_daemon(socket);
  if (!client.ok()) return fail(client.status());
  Watch watch(*std::move(client), *std::move(outputs));
  absl::Status status;
  while (status.ok() && !g_interrupted && !watch.is_done()) status = watch.step();
  status.Update(watch.finish());
  const std::string shown = watch.headline();
  for (const std::string& result : watch.results())
    printf("%s: %s\n", shown.empty() ? "nothing was shown" : shown.c_str(), result.c_str());
  if (!status.ok()) return fail(status);
  return shown.empty() && !options.png.empty() ? 1 : 0;
}

}  // namespace

void add_screen(CLI::App* app, int* exit_code) {
  static ScreenOptions options;
  static std::string socket;
  CLI::App* command = app->add_subcommand(
      "screen", "Show the display: in a window, or as pictures or a video; waits for a daemon");
  command->add_option("--png", options.png, "Save what is shown, once there is something; %04d: the number")
      ->option_text("FILE");
  command->add_option("--video", options.video, "Save a video, by ffmpeg")->option_text("FILE");
  command->add_option("--frames", options.frames, "End after so many pictures")->option_text("N");
  command->add_option("--rate", options.rate, "Pictures per second of the video (default: 30)")
      ->option_text("N")
      ->check(CLI::Range(1, 240));
  command->add_option("--socket", socket, "Of the daemon (default: $V3DEMU_SOCKET, or that of the user)")
      ->option_text("PATH");
  command->callback([exit_code] { *exit_code = show_screen(options, socket); });
}

}  // namespace v3d::tools
