// Daemons of different settings: their sockets, and what they say to whoever asks for others.
#include "daemon/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "daemon/board.h"
#include "daemon/timing_mode.h"
#include "tests/daemon/server_fixture.h"

namespace v3d::daemon::test {
namespace {

Settings with(std::initializer_list<std::pair<std::string_view, std::string>> others) {
  Settings settings = usual_settings();
  for (const auto& [name, value] : others)
    for (size_t i = 0; i < settings.size(); ++i)
      if (name == place::kSettings[i].name) settings[i] = value;
  return settings;
}

TEST(Settings, TheUsualOnesAreTheDefaults) {
  const Settings usual = usual_settings();
  EXPECT_EQ(usual[0], Board().profile->name);
  EXPECT_EQ(usual[1], Board().abi->name);
  EXPECT_EQ(usual[2], timing_mode_name(Server::Options().timing));
  EXPECT_EQ(usual, with({{"vblank-hz", absl::StrCat(Server::Options().display.vblank_hz)}}));
}

TEST(Settings, EachSetHasASocketOfItsOwn) {
  EXPECT_EQ(socket_name(usual_settings()), "socket");
  EXPECT_EQ(socket_name(with({{"timing", "pace"}, {"device", "rpi4"}})), "socket-rpi4-pace");
  EXPECT_EQ(socket_name(with({{"kernel", "6.12"}, {"engine", "off"}, {"vblank-hz", "0"}})),
            "socket-6.12-jit=off-hz=0");
  const std::string captures = socket_name(with({{"capture", "/tmp/a"}}));
  EXPECT_THAT(captures, testing::MatchesRegex("socket-own=[0-9a-f]+"));
  EXPECT_NE(captures, socket_name(with({{"capture", "/tmp/b"}})));
  EXPECT_NE(captures, socket_name(with({{"log", "/tmp/a"}})));
  EXPECT_NE(socket_name(with({{"device", "../../x"}})), socket_name(with({{"device", "../../y"}})));
  EXPECT_THAT(socket_name(with({{"device", "../../x"}})), testing::Not(testing::HasSubstr("/")));
}

TEST(Settings, OthersAreNamedBothWays) {
  const Settings own = with({{"device", "rpi4"}, {"timing", "count"}});
  EXPECT_EQ(compare_settings(own, ""), "");
  EXPECT_EQ(compare_settings(own, "device=rpi4\ntiming=count\nkernel=7.3\n"), "");
  const std::string pid = absl::StrCat(getpid());
  EXPECT_EQ(compare_settings(own, "device=rpi5\ntiming=pace\nkernel=7.3\n"),
            "refused\n (pid " + pid +
                ") has device rpi4, not rpi5, and timing count, not pace: end it (kill " + pid +
                ") or name another V3DEMU_SOCKET");
  EXPECT_THAT(compare_settings(own, "capture=/tmp/a=b\n"),
              testing::MatchesRegex("told\n .* has capture none, not /tmp/a=b: .*"));
  EXPECT_THAT(compare_settings(own, "newer=yes\nolder=\n"),
              testing::MatchesRegex("refused\n .* has newer none, not yes: .*"));
}

TEST_F(ServerTest, ComparesItsSettings) {
  start({.settings = with({{"kernel", "6.12"}})});
  EXPECT_EQ(Client(path_).command(absl::StrCat(place::kCompareCommand, "kernel=6.12\n")), "");
  EXPECT_THAT(Client(path_).command(absl::StrCat(place::kCompareCommand, "kernel=7.3\n")),
              testing::HasSubstr("has kernel 6.12, not 7.3"));
}

}  // namespace
}  // namespace v3d::daemon::test
