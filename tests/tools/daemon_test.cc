/// What v3demu says of daemons, and they through it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/run_fixture.h"

namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, StatusOfADaemon) {
  Result none = v3demu("status");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("no daemon runs on " + (folder_ / "socket").string()));
  const Result both = beside_daemon("--kernel 6.12", V3DEMU_TEST_COMMAND " status");
  EXPECT_THAT(both.output, HasSubstr("device rpi5"));
  EXPECT_THAT(both.output, HasSubstr("Linux 6.12"));
  EXPECT_THAT(both.output, HasSubstr("open nodes"));
}

TEST_F(RunTest, StatusOfDaemonsOnOtherSockets) {
  const std::string capture = (folder_ / "x.v3dcap").string();
  const std::string status =
      "V3DEMU_SOCKET=" + (folder_ / "socket-none").string() + " " V3DEMU_TEST_COMMAND " status";
  const Result others = beside_daemon("--device rpi5-16 --capture " + capture, status);
  EXPECT_THAT(others.output, HasSubstr("no daemon runs on " + (folder_ / "socket-none").string()));
  EXPECT_THAT(others.output,
              testing::ContainsRegex("on other sockets:\n  " + (folder_ / "socket").string() +
                                     ": v3demud pid [0-9]+, .*; device rpi5-16: .*; captures to " + capture +
                                     ", 32 bytes[;\n]"));
}

TEST_F(RunTest, StatusSaysHowTimesArePredicted) {
  const std::string status = V3DEMU_TEST_COMMAND " status";
  EXPECT_THAT(beside_daemon("--timing pace", status).output, HasSubstr("\ntiming pace: 0 jobs predicted\n"));
  EXPECT_THAT(beside_daemon("", status).output, Not(HasSubstr("timing")));
}

TEST_F(RunTest, SaysThatARunningDaemonHasAnotherTiming) {
  const std::string run = V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() + " --pace -- echo ran";
  EXPECT_THAT(beside_daemon("--timing count", run).output,
              testing::ContainsRegex("warning: the daemon that runs at .*/socket has timing count, not pace: "
                                     "end it or name another V3DEMU_SOCKET\nran\n"));
  EXPECT_THAT(beside_daemon("--timing pace", run).output, Not(HasSubstr("warning")));
}

TEST_F(RunTest, UnknownDebugCategoriesAreErrors) {
  const Result result = v3demu("run -- echo ran", "V3DEMU_DEBUG=cl,nonsense");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("no category \"nonsense\"; there are mmu,cl,"));
  EXPECT_THAT(result.output, Not(HasSubstr("ran")));
}

TEST_F(RunTest, DebugHelpIsPrinted) {
  for (const char* command : {"run -- echo ran", "status", "serve", "replay nowhere"}) {
    const Result result = v3demu(command, "V3DEMU_DEBUG=help");
    EXPECT_EQ(result.status, 0) << command;
    EXPECT_THAT(result.output, HasSubstr("\n  hazard ")) << command;
  }
}

TEST_F(RunTest, SaysWhatARunningDaemonDoesNotLog) {
  const std::string run =
      " " V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() + " -- sh -c 'exec 3</dev/dri/renderD128'; ";
  const Result result = beside_daemon(
      "--debug tfu", "echo one; V3DEMU_DEBUG=cl" + run + "echo two; V3DEMU_DEBUG=tfu" + run + "echo three");
  EXPECT_THAT(result.output,
              testing::ContainsRegex("one\nv3demu: the daemon that runs .pid [0-9]+. logs tfu, not cl as "
                                     "V3DEMU_DEBUG asks: .*\ntwo\nthree\n"));
}

TEST_F(RunTest, SaysWhyTheDaemonDoesNotStart) {
  const Result result =
      v3demu("run --mesa system -- sh -c 'exec 3</dev/dri/renderD128'", "V3DEMU_CAPTURE=/nowhere/x");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output,
              testing::ContainsRegex("the daemon .*/v3demud ended at once: v3demud: .*/nowhere/x"));
}

}  // namespace
