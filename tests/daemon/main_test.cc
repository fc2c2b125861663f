// The program v3demud as a user or the preload library starts it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "tests/base/temporary_folder.h"
#include "tests/daemon/client.h"

namespace v3d::daemon::test {
namespace {

class MainTest : public ::testing::Test {
 protected:
  /// Runs it to its end and returns its exit status. @param output  stdout and stderr
  int run(const std::vector<std::string>& arguments, std::string* output = nullptr) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = spawn(arguments, ends[1]);
    close(ends[1]);
    std::string text;
    char buffer[4096];
    ssize_t got;
    while ((got = read(ends[0], buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    if (output) *output = text;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static pid_t spawn(const std::vector<std::string>& arguments, int output) {
    std::vector<char*> argv = {const_cast<char*>(V3DEMUD_PATH)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(output, STDOUT_FILENO);
      dup2(output, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    return pid;
  }
  std::vector<std::string> options(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--socket", path_, "--no-execute"});
    return more;
  }
  std::string log_text() const {
    std::stringstream log;
    log << std::ifstream(folder_ + "/v3demud.log").rdbuf();
    return log.str();
  }
  bool socket_exists() const { return access(path_.c_str(), F_OK) == 0; }
  template <typename Fn>
  static bool eventually(Fn&& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      usleep(5000);
    }
    return false;
  }

  const v3d::test::TemporaryFolder own_;
  const std::string folder_ = own_.path(), path_ = own_ / "socket";
};

TEST_F(MainTest, UsageErrors) {
  std::string output;
  EXPECT_EQ(run({"--help"}, &output), 0);
  for (const char* word :
       {"--socket", "--device", "--kernel", "--exit-when-idle", "--foreground", "--memory-limit"})
    EXPECT_NE(output.find(word), std::string::npos) << word;
  EXPECT_EQ(run({"--version"}, &output), 0);
  EXPECT_EQ(output.find("v3demud "), 0u);
  EXPECT_EQ(run({"--bogus"}), 2);
  EXPECT_EQ(run({"argument"}), 2);
  EXPECT_EQ(run({"--exit-when-idle", "soon"}, &output), 2);
  EXPECT_NE(output.find("no number of seconds: soon"), std::string::npos) << output;
  EXPECT_EQ(run({"--exit-when-idle", "-1"}), 2);
  EXPECT_EQ(run({"--threads", "0"}), 2);
  EXPECT_EQ(run({"--memory-limit", "0"}), 2);
  EXPECT_EQ(run({"--reset-after", "0"}), 2);
  EXPECT_EQ(run(options({"--timing", "fast"}), &output), 2);
  EXPECT_NE(output.find("unknown timing \"fast\"; there are off, count and pace"), std::string::npos)
      << output;
  EXPECT_EQ(run(options({"--timing", "pace"}), &output), 2);  // with --no-execute
  EXPECT_NE(output.find("jobs that are not executed"), std::string::npos) << output;
  EXPECT_EQ(run(options({"--leave-out", "stores,weather"}), &output), 2);
  EXPECT_NE(output.find("\"weather\"; there are fragments, programs, lookups, stores"), std::string::npos)
      << output;
  EXPECT_EQ(run(options({"--host-profile", "/nonexistent/folder/file"}), &output), 1);
  EXPECT_NE(output.find("cannot write /nonexistent/folder/file"), std::string::npos) << output;
  EXPECT_EQ(run(options({"--device", "rpi9"}), &output), 2);
  EXPECT_NE(output.find("no device \"rpi9\"; there are rpi5 (Raspberry Pi 5"), std::string::npos) << output;
  EXPECT_EQ(run(options({"--kernel", "5.10"}), &output), 2);
  EXPECT_NE(output.find("no kernel \"5.10\"; there are 7.3 (default), 6.12"), std::string::npos) << output;
  EXPECT_EQ(run({"--socket", folder_ + "/" + std::string(200, 'x')}, &output), 1);
  EXPECT_EQ(run({"--socket", "/nonexistent/folder/socket"}, &output), 1);
}

TEST_F(MainTest, LimitsAddUp) {
  ASSERT_EQ(run(options({"--limit", "bos=7", "--limit", "open-nodes=3:9", "--exit-when-idle", "600"})), 0);
  Client client(path_);
  const std::string status = client.command("status");
  EXPECT_THAT(status, testing::ContainsRegex("\nbos +7 "));
  EXPECT_THAT(status, testing::ContainsRegex("\nopen-nodes +3 +[0-9-]+ +9 "));
  EXPECT_EQ(client.command("shutdown"), "leaving\n");
}

TEST_F(MainTest, UnknownDebugCategoriesAreUsageErrors) {
  std::string output;
  EXPECT_EQ(run(options({"--debug", "cl,nonsense"}), &output), 2);
  EXPECT_NE(output.find("no category \"nonsense\"; there are mmu,cl,"), std::string::npos) << output;
  setenv("V3DEMU_DEBUG", "nonsense", 1);
  EXPECT_EQ(run(options(), &output), 2);
  unsetenv("V3DEMU_DEBUG");
  EXPECT_NE(output.find("nonsense"), std::string::npos);
  EXPECT_EQ(run({"--debug", "help"}, &output), 0);
  EXPECT_NE(output.find("\n  hazard "), std::string::npos) << output;
}

TEST_F(MainTest, TheLogOfADaemonThatAbortedSurvives) {
  ASSERT_EQ(run(options({"--exit-when-idle", "30"})), 0);
  const std::string status = Client(path_).command("status");
  const pid_t pid = std::stoi(status.substr(status.find("pid ") + 4));
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_EQ(kill(pid, SIGABRT), 0);
  pollfd gone = {process.get(), POLLIN, 0};
  ASSERT_EQ(poll(&gone, 1, 60'000), 1);
  EXPECT_TRUE(eventually([&] { return run(options({"--exit-when-idle", "30"})) == 0; }));
  EXPECT_EQ(Client(path_).command("shutdown"), "leaving\n");
  EXPECT_TRUE(eventually([&] { return log_text().find(" end: ") != std::string::npos; }));
  const std::string log = log_text();
  const std::string first = ", pid " + std::to_string(pid) + "\n";
  EXPECT_NE(log.find(first), std::string::npos) << log;                        // it started,
  EXPECT_EQ(log.find(" end: " + first.substr(2)), std::string::npos) << log;   // and took no leave;
  EXPECT_NE(log.find(" start: ", log.find(first)), std::string::npos) << log;  // then the next one did
}

TEST_F(MainTest, ALogThatHasGrownMakesRoom) {
  const std::string path = folder_ + "/v3demud.log";
  std::ofstream(path) << std::string(5 << 20, 'x');
  ASSERT_EQ(run(options({"--exit-when-idle", "0"})), 0);
  EXPECT_TRUE(eventually([&] { return log_text().find(" end: ") != std::string::npos; }));
  EXPECT_EQ(log_text().find('x'), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path + ".1"), 5u << 20);
}

TEST_F(MainTest, BackgroundLife) {
  // When the program that was started returns, the socket answers.
  ASSERT_EQ(run(options({"--exit-when-idle", "600"})), 0);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // A second one sees that there is one.
  std::string output;
  EXPECT_EQ(run(options(), &output), 0);
  EXPECT_NE(output.find("already running"), std::string::npos);
  EXPECT_EQ(Client(path_).command("shutdown"), "leaving\n");
  EXPECT_TRUE(eventually([&] { return !socket_exists(); }));
  // And another can take its place at once.
  ASSERT_EQ(run(options({"--exit-when-idle", "600"})), 0);
  EXPECT_EQ(Client(path_).command("shutdown"), "leaving\n");
  EXPECT_TRUE(eventually([&] { return !socket_exists(); }));
}

TEST_F(MainTest, BackgroundHoldsNoDescriptorsOfItsStarter) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int high = fcntl(ends[1], F_DUPFD, 100);  // without CLOEXEC
  close(ends[1]);
  ASSERT_EQ(run(options({"--exit-when-idle", "5"})), 0);
  close(high);
  pollfd p = {ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 2000), 1);
  EXPECT_EQ(p.revents, POLLHUP);
  close(ends[0]);
  EXPECT_EQ(Client(path_).command("shutdown"), "leaving\n");
}

TEST_F(MainTest, StaleSocketIsReplaced) {
  ASSERT_EQ(run(options({"--exit-when-idle", "5"})), 0);
  const std::string status = Client(path_).command("status");
  const pid_t pid = std::stoi(status.substr(status.find("pid ") + 4));
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  pollfd gone = {process.get(), POLLIN, 0};
  ASSERT_EQ(poll(&gone, 1, 60'000), 1);  // until then its socket still accepts
  EXPECT_TRUE(socket_exists());
  EXPECT_TRUE(eventually([&] { return run(options({"--exit-when-idle", "5"})) == 0; }));
  EXPECT_EQ(Client(path_).command("shutdown"), "leaving\n");
}

TEST_F(MainTest, ForegroundEndsOnSigterm) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = spawn(options({"--foreground", "--device", "rpi5-16"}), ends[1]);
  close(ends[1]);
  ASSERT_TRUE(eventually([&] { return socket_exists(); }));
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(128, &token);
  EXPECT_NE(client.command("status").find("rpi5-16"), std::string::npos);
  kill(pid, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(socket_exists());
  char byte;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0);
  close(ends[0]);
}

// Whatever runs: here a request is under way for ever, with the log's mutex, as nobody reads the log.
TEST_F(MainTest, EndsInTimeThoughARequestDoesNot) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a process with ThreadSanitizer's runtime does not end while one of its writes is blocked";
#endif
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd log(ends[0]);
  const pid_t pid = spawn(options({"--foreground", "--debug", "ioctl"}), ends[1]);
  close(ends[1]);
  ASSERT_TRUE(eventually([&] { return socket_exists(); }));
  const pid_t client = fork();
  if (client == 0) {
    Client asking(path_);
    uint64_t token;
    const UniqueFd node = asking.open(128, &token);
    ioctl::drm::SyncobjCreate create = {};
    while (asking.ioctl(token, 0xc00864bf, create) == 0) {
    }
    _exit(0);
  }
  int before = -1, waiting = 0;
  EXPECT_TRUE(eventually([&] {
    before = waiting;
    usleep(50'000);
    return ::ioctl(log.get(), FIONREAD, &waiting) == 0 && waiting == before && waiting > 0xf000;
  }));
  ASSERT_EQ(kill(pid, SIGTERM), 0);
  int status = 0;
  const bool ended = eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; });
  EXPECT_TRUE(ended);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(socket_exists());
  if (!ended) kill(pid, SIGKILL);
  kill(client, SIGKILL);
  waitpid(client, &status, 0);
}

TEST_F(MainTest, RootStopsNobodyElsesDaemon) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOther = 65534;
  ASSERT_EQ(chown(folder_.c_str(), kOther, kOther), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const std::vector<std::string> arguments = options({"--foreground", "--exit-when-idle", "30"});
    std::vector<char*> argv = {const_cast<char*>(V3DEMUD_PATH)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    if (setgid(kOther) == 0 && setuid(kOther) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  ASSERT_TRUE(eventually([&] { return socket_exists() || waitpid(pid, &status, WNOHANG) == pid; }));
  if (!socket_exists()) GTEST_SKIP() << "another user cannot run the daemon from here";
  Client root(path_, false);
  const wire::HelloRequest hello = {wire::kProtocol, getpid(), "root"};
  EXPECT_EQ(root.ask(wire::kHello, &hello, sizeof hello).error, -1);
  EXPECT_NE(root.command("shutdown"), "leaving\n");
  EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0);
  kill(pid, SIGTERM);
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
}

TEST_F(MainTest, MemoryLimit) {
  ASSERT_EQ(run(options({"--memory-limit", "2", "--exit-when-idle", "600"})), 0);
  Client client(path_);
  uint64_t token;
  const UniqueFd fd = client.open(128, &token);
  ioctl::drm::CreateBo args = {.size = 2 << 20, .flags = 0, .handle = 0, .offset = 0};
  EXPECT_EQ(client.ioctl(token, 0xc0106442, args), 0);
  args = {.size = 4096, .flags = 0, .handle = 0, .offset = 0};
  EXPECT_EQ(client.ioctl(token, 0xc0106442, args), ENOMEM);
  // The log tells, beside the socket.
  EXPECT_NE(log_text().find("limit"), std::string::npos) << log_text();
  EXPECT_EQ(client.command("shutdown"), "leaving\n");
}

}  // namespace
}  // namespace v3d::daemon::test
