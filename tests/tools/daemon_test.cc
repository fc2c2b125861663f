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

TEST_F(RunTest, RefusesADaemonOfOtherSettings) {
  const std::string run =
      V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() + " --pace --device rpi4 -- echo ran";
  const std::string names_both =
      "the daemon that runs at .*/socket .pid [0-9]+. has device rpi5, not rpi4, and timing "
      "count, not pace: end it .kill [0-9]+. or name another V3DEMU_SOCKET";
  const Result refused = beside_daemon("--timing count", run + "; echo status $?");
  EXPECT_THAT(refused.output, testing::ContainsRegex("v3demu run: " + names_both));
  EXPECT_THAT(refused.output, HasSubstr("\nstatus 127\n"));
  EXPECT_THAT(refused.output, Not(HasSubstr("ran\n")));
  const auto goes_on = [&](const std::string& line) {
    const Result result =
        beside_daemon("--timing pace --device rpi4", "rm " + (folder_ / "said").string() + "; " + line);
    EXPECT_THAT(result.output,
                testing::AllOf(HasSubstr("ran\n"), Not(HasSubstr("warning")), Not(HasSubstr("has device"))));
  };
  std::filesystem::remove(folder_ / "said");
  goes_on(run);
  goes_on(V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() + " -- echo ran");  // asks for nothing
}

TEST_F(RunTest, TheProgramItselfIsToldOfOtherSettings) {
  // After `run`, which finds no daemon to ask: one that is being started for somebody else.
  const std::string opens =
      " LD_PRELOAD=" V3DEMU_TEST_SHIM " V3DEMU_KERNEL=6.12 sh -c 'exec 3</dev/dri/renderD128; echo opened'";
  const Result refused = beside_daemon("", opens);
  EXPECT_THAT(
      refused.output,
      testing::ContainsRegex("v3demu: the daemon that runs at .*/socket .pid [0-9]+. has kernel 7.3, not "
                             "6.12: .*; V3DEMU_OTHER_SETTINGS=accept makes this a warning\n"));
  EXPECT_THAT(refused.output, Not(HasSubstr("opened")));
  const Result accepted = beside_daemon("", "V3DEMU_OTHER_SETTINGS=accept" + opens);
  EXPECT_THAT(accepted.output, testing::ContainsRegex(
                                   "v3demu: warning: the daemon .* has kernel 7.3, not 6.12: .*\nopened\n"));
  const Result told = beside_daemon("", "V3DEMU_CAPTURE=/nowhere/x LD_PRELOAD=" V3DEMU_TEST_SHIM
                                        " sh -c 'exec 3</dev/dri/renderD128; echo opened'");
  EXPECT_THAT(told.output,
              testing::ContainsRegex("warning: .* has capture none, not /nowhere/x: .*\nopened\n"));
}

TEST_F(RunTest, ProgramsOfOtherSettingsThatStartTogetherHaveTheirOwnDaemons) {
  const std::string runtime = "XDG_RUNTIME_DIR=" + folder_.string() + " V3DEMU_SOCKET=";
  const std::string lines =
      "run --mesa system -- sh -c 'for board in rpi4 rpi5-16 rpi4 rpi5; do V3DEMU_DEVICE=$board sh -c "
      "\"exec 3</dev/dri/renderD128; " V3DEMU_TEST_COMMAND
      " status | grep ^device\" & done; wait; "
      "for board in rpi4 rpi5-16 rpi5; do V3DEMU_DEVICE=$board " V3DEMU_TEST_COMMAND
      " status | "
      "sed -n \"s/^v3demud pid \\([0-9]*\\).*/\\1/p\" >>pids; done; kill $(cat pids)'";
  const Result result =
      shell("cd " + folder_.string() + " && env " + runtime + " " V3DEMU_TEST_COMMAND " " + lines + " 2>&1");
  const auto count = [&](const std::string& line) {
    size_t found = 0;
    for (size_t at = result.output.find(line); at != std::string::npos; at = result.output.find(line, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("device rpi4: "), 2u) << result.output;
  EXPECT_EQ(count("device rpi5: "), 1u) << result.output;
  EXPECT_EQ(count("device rpi5-16: "), 1u) << result.output;
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
