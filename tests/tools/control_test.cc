/// What v3demu asks of daemons, and has them do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/tools/run_fixture.h"

namespace {

using testing::HasSubstr;

TEST_F(RunTest, StatusIsJsonForPrograms) {
  const std::string read = V3DEMU_TEST_COMMAND
      " status --json | python3 -c 'import json, sys; d = json.load(sys.stdin)[\"daemons\"]; s = "
      "d[0][\"status\"]; print(len(d), s[\"device\"], s[\"kernel\"], s[\"gpu_errors\"][\"hang\"], "
      "s[\"gpu_errors\"][\"last\"], [q[\"name\"] for q in s[\"queues\"]][0], s[\"open_nodes\"], "
      "{l[\"name\"] for l in s[\"limits\"]} > {\"bo-bytes\"})'";
  EXPECT_THAT(beside_daemon("--kernel 6.12", read).output, HasSubstr("1 rpi5 6.12 0 [] bin 0 True\n"));
  const Result none = v3demu("status --json");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("{\"daemons\":[]}\n"));
  EXPECT_THAT(none.output, HasSubstr("no daemon runs on " + (folder_ / "socket").string()));
}

TEST_F(RunTest, StopEndsTheDaemon) {
  const std::string stop = V3DEMU_TEST_COMMAND " stop; echo status $?";
  const Result ended = beside_daemon("", stop + "; wait; " + stop);
  EXPECT_THAT(ended.output,
              HasSubstr("the daemon on " + (folder_ / "socket").string() + " has ended\nstatus 0\n"));
  EXPECT_THAT(ended.output,
              HasSubstr("v3demu stop: no daemon runs on " + (folder_ / "socket").string() + "\nstatus 1\n"));
}

TEST_F(RunTest, StopEndsAllDaemonsOfTheUserButThoseOfCaptures) {
  const std::string runtime = folder_.string(), sockets = runtime + "/v3demu/";
  const auto daemon = [&](const std::string& name) {
    return "V3DEMU_SOCKET=" + sockets + name + " " V3DEMU_TEST_COMMAND " serve 2>/dev/null & ";
  };
  const Result all =
      shell("exec 2>&1; unset V3DEMU_SOCKET; export XDG_RUNTIME_DIR=" + runtime + "; mkdir -m 700 " +
            sockets + "; " + daemon("socket") + daemon("socket-rpi4") + daemon("capture-1") +
            "for s in socket socket-rpi4 "
            "capture-1; do until [ -S " +
            sockets +
            "$s ]; do sleep 0.01; done; done; sleep 0.1; " V3DEMU_TEST_COMMAND
            " stop; echo then; " V3DEMU_TEST_COMMAND " stop --socket " +
            sockets +
            "capture-1; "
            "wait");
  EXPECT_THAT(all.output,
              HasSubstr("the daemon on " + sockets + "socket has ended\nthe daemon on " + sockets +
                        "socket-rpi4 has ended\nthen\nthe daemon on " + sockets + "capture-1 has ended\n"));
}

/// Serves a socket by hand, and keeps the lock beside it like a daemon. For the first who asks, `then`
/// happens.
std::string fake_daemon(const std::string& socket, const std::string& then) {
  return "python3 -c 'import fcntl, os, socket, sys, time\n"
         "def listen(path):\n"
         "  s = socket.socket(socket.AF_UNIX); s.bind(path + \"~\"); s.listen(); os.rename(path + \"~\", "
         "path)\n"
         "  return s\n"
         "path = sys.argv[1]; lock = open(path + \".lock\", \"w\"); fcntl.flock(lock, fcntl.LOCK_EX)\n"
         "s = listen(path); asked = s.accept()[0]\n" +
         then + "' " + socket + " & until [ -S " + socket + " ]; do sleep 0.01; done; ";
}

TEST_F(RunTest, StopTakesADaemonThatLeavesByItselfForEnded) {
  const std::string socket = (folder_ / "socket").string(),
                    stop = V3DEMU_TEST_COMMAND " stop --socket " + socket;
  const Result left =
      shell("exec 2>&1; " + fake_daemon(socket, "os.unlink(path); asked.close()") + stop + "; wait");
  EXPECT_EQ(left.output, "the daemon on " + socket + " has ended\n");
  // The next one has made its socket already, and keeps the lock.
  const Result next =
      shell("exec 2>&1; " + fake_daemon(socket, "other = listen(path); asked.close(); other.accept()") +
            stop + "; kill $!; wait");
  EXPECT_THAT(next.output, HasSubstr("the daemon on " + socket + " has ended\n"));
}

TEST_F(RunTest, StopNamesNoSocketOfADaemonThatIsGone) {
  const std::string runtime = folder_.string(), sockets = runtime + "/v3demu";
  const Result none =
      shell("exec 2>&1; unset V3DEMU_SOCKET; export XDG_RUNTIME_DIR=" + runtime + "; mkdir -m 700 " +
            sockets + "; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"" + sockets +
            "/socket-rpi4\")'; " V3DEMU_TEST_COMMAND " stop");
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.output, "v3demu stop: no daemon runs in " + sockets + "\n");
}

TEST_F(RunTest, ProgramsUnderLimitsHaveTheirScreenSaved) {
  // Root has no such limits, and becomes somebody who has. Who asks needs none to find their daemon.
  const std::string folder = folder_.string();
  const std::string become =
      geteuid() == 0 ? "chown -R 65534 " + folder + "; as='setpriv --reuid=65534'" : "as=";
  const Result run =
      shell("exec 2>&1; unset V3DEMU_SOCKET; export XDG_RUNTIME_DIR=" + folder + "; chmod 700 " + folder +
            "; " + become + "; $as nice -n 1 " V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() +
            " --screen-png " + folder +
            "/x.png -- true; for ask in connector status stop; do "
            "$as " V3DEMU_TEST_COMMAND " $ask; done");
  EXPECT_THAT(run.output, HasSubstr("nothing was shown: there is no picture to save"));
  EXPECT_THAT(run.output, HasSubstr("HDMI-A-2"));
  EXPECT_THAT(run.output, testing::Not(HasSubstr("no daemon runs")));
  EXPECT_THAT(run.output, HasSubstr("/socket-limited has ended\n"));
}

TEST_F(RunTest, ScreenWaitsForADaemon) {
  const std::string socket = (folder_ / "socket").string(), picture = (folder_ / "x.png").string();
  const std::string said = (folder_ / "said").string();
  const Result shown =
      shell("exec 2>&1; export V3DEMU_SOCKET=" + socket + "; " V3DEMU_TEST_COMMAND " screen --png " +
            picture + " 2>" + said + " & screen=$!; until grep -q waiting " + said +
            "; do sleep 0.01; done; " V3DEMU_TEST_COMMAND " serve 2>/dev/null & until " V3DEMU_TEST_COMMAND
            " status | grep -q ' 2 connections'; do sleep 0.05; done; kill -TERM $screen; "
            "wait $screen; echo screen $?; cat " +
            said + "; " V3DEMU_TEST_COMMAND " stop; wait");
  EXPECT_THAT(shown.output, HasSubstr("screen 1\nv3demu screen: waiting for a daemon on " + socket + "\n"));
  EXPECT_THAT(shown.output, HasSubstr("has ended\n"));
}

}  // namespace
