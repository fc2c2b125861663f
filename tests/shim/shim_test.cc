/// Runs the scenarios of shim_client with the shim preloaded, each with a socket folder and a daemon of its
/// own.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFake[] = V3DEMU_TEST_FAKE;
constexpr char kReal[] = V3DEMU_TEST_DAEMON;

std::string read_file(const fs::path& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Result {
  int status;  ///< exit status; 128 + signal; 124 when it took too long
  std::string output;
};

class ShimTest : public testing::Test {
 protected:
  ShimTest() {
    set("V3DEMU_SOCKET", folder_ / "socket");
    set("V3DEMU_FAKE_JOURNAL", folder_ / "journal");
    set("V3DEMU_DAEMON", kFake);
    set("LD_PRELOAD", V3DEMU_TEST_SHIM);
    set("PATH", getenv("PATH"));
    set("HOME", folder_);
  }
  ~ShimTest() override {
    // Daemons that the scenario left; by their own word.
    for (const std::string& line : journal("start ")) kill(std::stoi(line.substr(6)), SIGTERM);
  }

  void set(const std::string& name, const std::string& value) {
    unset(name);
    environment_.push_back(name + "=" + value);
  }
  void unset(const std::string& name) {
    std::erase_if(environment_, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  }

  Result run(const std::vector<std::string>& command) {
    std::vector<char*> words, variables;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& entry : environment_) variables.push_back(const_cast<char*>(entry.c_str()));
    words.push_back(nullptr);
    variables.push_back(nullptr);
    const fs::path output = folder_ / "output";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    pid_t child;
    if (posix_spawnp(&child, words[0], &actions, nullptr, words.data(), variables.data()) != 0)
      return {127, "no " + command[0]};
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; ++waited) {
      if (waited == 12000) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return {124, read_file(output) + "took too long\n"};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(output)};
  }

  Result run_scenario(const std::string& name) { return run({V3DEMU_TEST_CLIENT, name}); }

  void expect_success(const std::string& scenario) {
    Result result = run_scenario(scenario);
    EXPECT_EQ(result.status, 0) << result.output;
  }

  /// Lines that begin so.
  std::vector<std::string> journal(const std::string& prefix) const {
    std::vector<std::string> lines;
    std::ifstream stream(folder_ / "journal");
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with(prefix)) lines.push_back(line);
    }
    return lines;
  }

  /// What the fake was asked between the mark of this name and the next.
  std::vector<std::string> between_marks(const std::string& name) const {
    std::vector<std::string> lines;
    std::ifstream stream(folder_ / "journal");
    bool inside = false;
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with("mark ")) inside = line == "mark " + name;
      if (inside && line.starts_with("ioctl ")) lines.push_back(line);
    }
    return lines;
  }

  /// What lies beside the socket, without the output of the run.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename() != "output") names.push_back(entry.path().filename());
    }
    return names;
  }

  const v3d::test::TemporaryFolder own_;
  const fs::path folder_ = own_.path();
  std::vector<std::string> environment_;
};

/// Against both daemons: the fake for what the shim does alone, the real one for their agreement.
class ShimScenario : public ShimTest,
                     public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(ShimScenario, Succeeds) {
  auto [scenario, daemon] = GetParam();
  set("V3DEMU_DAEMON", daemon);
  expect_success(scenario);
}

INSTANTIATE_TEST_SUITE_P(
    Shim, ShimScenario,
    testing::Combine(testing::Values("open_aliases", "open_rules", "stat_aliases", "file_system_types",
                                     "path_functions", "folders", "merged_folders", "walk_like_libudev",
                                     "libdrm", "duplicates", "numbers_used_again", "forked", "executed",
                                     "passed_to_another_process", "spawned_child_closes", "everything_closed",
                                     "private_number_taken", "descriptors_stay_low", "few_descriptors",
                                     "threads_leave_nothing", "mappings", "mappings_that_stay",
                                     "few_mappings_stay", "dma_bufs", "sync_files", "threads_wait_together",
                                     "interrupted_waits", "signal_storm", "bad_pointers", "bad_paths",
                                     "sandbox_kills_memory_access", "request_words", "start_is_unseen",
                                     "many_start_at_once"),
                     testing::Values(kFake, kReal)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + (std::get<1>(test.param) == kFake ? "_fake" : "_real");
    });

/// Of the real daemon alone: the fake one shows none.
class ShownSyncobjs : public ShimTest, public testing::WithParamInterface<const char*> {};

TEST_P(ShownSyncobjs, AreAsEver) {
  set("V3DEMU_DAEMON", kReal);
  expect_success(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Shim, ShownSyncobjs,
                         testing::Values("shown_syncobjs", "exports_until_there_is_a_fence", "shown_bos",
                                         "bos_mapped_again", "shared_syncobjs_are_not_shown", "many_syncobjs",
                                         "resets_of_many_threads", "syncobjs_come_and_go",
                                         "sync_files_that_come_with_submits", "syncobjs_exported_by_turns",
                                         "sync_files_of_closed_files", "waits_hear_of_imports"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(ShimTest, GivesMemoryOfHeapsFromTheDaemon) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("dma_heaps");
}

TEST_F(ShimTest, MakesDmaBufsOfMemfds) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("udmabufs");
  const Result result = run_scenario("udmabuf_errors");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output,
            "v3demu: /dev/udmabuf: not implemented: a part of a memfd, or several of them, as one buffer\n");
}

TEST_F(ShimTest, AsksTheFirmwareOfAPi5) {
  expect_success("firmware_of_a_pi5");
  const Result result = run_scenario("firmware_errors");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output, "v3demu: /dev/vcio: not implemented: the property 0x30011 (EXECUTE_QPU)\n");
  EXPECT_THAT(journal("hello"), ElementsAre());  // no daemon was started for that
  set("V3DEMU_DAEMON", kReal);
  expect_success("firmware_reads_the_monitor");
}

TEST_F(ShimTest, AsksTheFirmwareOfAPi4) {
  set("V3DEMU_DEVICE", "rpi4");
  expect_success("firmware_of_a_pi4");
}

TEST_F(ShimTest, AsksTheFirmwareOfAPi0) {
  set("V3DEMU_DEVICE", "rpi0");
  expect_success("firmware_of_a_pi0");
  set("V3DEMU_DAEMON", kReal);
  expect_success("firmware_in_children");
}

TEST_F(ShimTest, ShowsNodesAsDevices) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("nodes_are_devices");
}

TEST_F(ShimTest, ShowsDebugfsToRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "debugfs is root's";
  set("V3DEMU_DAEMON", kReal);
  expect_success("debug_files");
}

TEST_F(ShimTest, LabelsBuffersOfVc4) {
  set("V3DEMU_DEVICE", "rpi3");
  set("V3DEMU_DAEMON", kReal);
  expect_success("labels");
}

TEST_F(ShimTest, WritesOnlyWhereTheRequestSays) { expect_success("writes_only_where_asked"); }

TEST_F(ShimTest, TalksToNobodyElsesDaemon) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can serve a socket as another user";
  set("V3DEMU_FAKE_MODE", "foreign");
  const Result result = run_scenario("cannot_start");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, testing::HasSubstr("served by another user"));
  EXPECT_THAT(journal("hello"), ElementsAre());
}

/// Programs that root starts and that become another user, whom the tree, the library and the daemon's
/// program are open to.
class ChangedUser : public ShimTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    fs::permissions(folder_, fs::perms::owner_all | fs::perms(0055));
    for (const auto& [from, name] : {std::pair(kReal, "v3demud"), std::pair(V3DEMU_TEST_SHIM, "libv3demu.so"),
                                     std::pair(V3DEMU_TEST_CLIENT, "client")}) {
      fs::copy_file(from, folder_ / name);
      chmod((folder_ / name).c_str(), 0755);
    }
    set("V3DEMU_DAEMON", folder_ / "v3demud");
    set("LD_PRELOAD", folder_ / "libv3demu.so");
    for (stranger_ = 200000 + getpid() % 100000; fs::exists(home()); ++stranger_) {
    }
  }
  void TearDown() override {
    std::error_code ignored;
    if (stranger_) fs::remove_all(home(), ignored);
  }
  fs::path home() const { return "/tmp/v3demu-" + std::to_string(stranger_); }
  Result run_as_root(const std::string& scenario) {
    return run({folder_ / "client", scenario, std::to_string(stranger_)});
  }
  uid_t stranger_ = 0;
};

TEST_F(ChangedUser, KeepsOpenNodes) {
  for (const char* scenario : {"open_nodes_stay", "open_nodes_are_inherited"}) {
    const Result result = run_as_root(scenario);
    EXPECT_EQ(result.status, 0) << scenario << "\n" << result.output;
    EXPECT_EQ(result.output, "") << scenario;
  }
  EXPECT_FALSE(fs::exists(home() / "socket"));  // no other daemon was needed
}

TEST_F(ChangedUser, GetsADaemonOfItsOwnWithoutANode) {
  const Result named = run_as_root("opens_as_a_stranger");
  EXPECT_EQ(named.status, 0) << named.output;
  EXPECT_THAT(named.output, ContainsRegex("V3DEMU_SOCKET=.* is not open to this user: the daemon is in " +
                                          home().string()));
  unset("V3DEMU_SOCKET");
  fs::create_directory(folder_ / "runtime");
  set("XDG_RUNTIME_DIR", folder_ / "runtime");
  const Result usual = run_as_root("opens_as_a_stranger");
  EXPECT_EQ(usual.status, 0) << usual.output;
}

TEST_F(ChangedUser, HasADaemonForProgramsWithLimits) {
  unset("V3DEMU_SOCKET");
  const Result result = run_as_root("limits_make_another_daemon");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(fs::exists(home() / "socket") && fs::exists(home() / "socket-limited"));
}

TEST_F(ChangedUser, IsToldThatADaemonHasFewDescriptors) {
  unset("V3DEMU_SOCKET");
  const Result result = run_as_root("daemon_of_few_descriptors");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(
      result.output,
      "v3demu: the daemon may open no more than 128 files, the hard limit of this program (ulimit -Hn): "
      "threads, nodes and large buffers will be few\n");
}

TEST_F(ShimTest, DaemonsInheritNothingOfTheirStarter) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("daemon_goes_its_own_way");
}

TEST_F(ShimTest, UsesNoFolderThatIsOpenToOthers) {
  unset("V3DEMU_SOCKET");
  set("XDG_RUNTIME_DIR", folder_);
  expect_success("starts_and_works");
  const fs::path runtime = folder_ / "v3demu";
  fs::permissions(runtime, fs::perms::all);
  const size_t hellos = journal("hello").size();
  const Result result = run_scenario("starts_and_works");  // a daemon still listens
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output, testing::HasSubstr("belongs to somebody else or"));
  EXPECT_EQ(journal("hello").size(), hellos);
}

TEST_F(ShimTest, Udev) {
  if (std::string(V3DEMU_TEST_UDEV).ends_with("NOTFOUND")) GTEST_SKIP() << "built without libudev";
  expect_success("udev_devices");
}

TEST_F(ShimTest, Pi4Tree) {
  set("V3DEMU_DEVICE", "rpi4");
  expect_success("pi4_tree");
}

TEST_F(ShimTest, Pi3Tree) {
  set("V3DEMU_DEVICE", "rpi3");
  expect_success("pi3_tree");
}

TEST_F(ShimTest, WithoutDisplayDevice) {
  set("V3DEMU_VC4", "0");
  expect_success("no_display_device");
}

TEST_F(ShimTest, BoardIsAPi5) { expect_success("pi5_board"); }

TEST_F(ShimTest, BoardIsAPi4) {
  set("V3DEMU_DEVICE", "rpi4");
  expect_success("pi4_board");
}

TEST_F(ShimTest, BoardIdentityCanBeTurnedOff) {
  set("V3DEMU_BOARD", "0");
  expect_success("no_board");
}

TEST_F(ShimTest, ProcShowsWhoUsesTheGpu) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("who_uses_the_gpu");
}

TEST_F(ShimTest, EachWayToOpenAFileShowsItsTextOfNow) {
  set("V3DEMU_DAEMON", kReal);
  expect_success("texts_of_now");
}

TEST_F(ShimTest, HostNodesVisible) {
  set("V3DEMU_HOST_DRI", "1");
  expect_success("host_nodes_visible");
}

TEST_F(ShimTest, HostFramebuffersVisible) {
  set("V3DEMU_HOST_DRI", "1");
  int number = 0;
  while (std::filesystem::exists("/dev/fb" + std::to_string(number))) ++number;
  set("EXPECTED_FRAMEBUFFER", std::to_string(number));
  std::string entries;
  std::error_code none;  // where the host has no such class
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/graphics", none))
    entries += entry.path().filename().string() + " ";
  set("EXPECTED_GRAPHICS", entries);
  expect_success("host_framebuffers_visible");
}

TEST_F(ShimTest, CallsBeforeItsConstructor) {
  set("LD_PRELOAD", V3DEMU_TEST_SHIM ":" V3DEMU_TEST_EARLY);
  expect_success("early_calls");
}

TEST_F(ShimTest, InterruptedBoWaitReturnsTheRestOfItsTimeout) { expect_success("interrupted_bo_wait"); }

TEST_F(ShimTest, ChoosesPresentation) {
  expect_success("presentation");
  EXPECT_THAT(left_behind(), ElementsAre());  // asking is no reason for a connection
  set("V3DEMU_WSI", "native");
  expect_success("native_presentation");
}

TEST_F(ShimTest, LeavesOtherProgramsAlone) {
  expect_success("ordinary_work");
  Result result = run({"true"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  // No folder, no lock, no daemon, no connection.
  EXPECT_THAT(left_behind(), ElementsAre());
}

TEST_F(ShimTest, LeavesOtherProgramsAloneWhileADaemonRuns) {
  expect_success("starts_and_works");
  const size_t before = journal("").size();
  expect_success("ordinary_work");
  EXPECT_EQ(journal("").size(), before);
}

TEST_F(ShimTest, TreeAloneStartsNoDaemon) {
  Result result = run({"ls", "/dev/dri"});
  EXPECT_EQ(result.output, "by-path\ncard0\ncard1\nrenderD128\n");
  EXPECT_THAT(left_behind(), ElementsAre(testing::StartsWith("v3demu-tree-")));
}

TEST_F(ShimTest, StartsDaemonBesideItself) {
  unset("V3DEMU_DAEMON");
  expect_success("starts_and_works");
}

TEST_F(ShimTest, StartsOneDaemonForMany) {
  expect_success("many_start_at_once");
  EXPECT_EQ(journal("start ").size(), 1u);
  EXPECT_THAT(journal("start ")[0], Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(ShimTest, DaemonDies) {
  expect_success("daemon_dies");
  EXPECT_EQ(journal("start ").size(), 2u);
}

TEST_F(ShimTest, SaysOnceWhyDaemonDoesNotStart) {
  auto complaints = [&] {
    Result result = run_scenario("cannot_start");
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    return result.output;
  };
  set("V3DEMU_DAEMON", "/nowhere/v3demud");
  EXPECT_THAT(complaints(), HasSubstr("cannot start the daemon: no program /nowhere/v3demud"));
  set("V3DEMU_DAEMON", kFake);
  set("V3DEMU_FAKE_MODE", "exit");
  EXPECT_THAT(complaints(), ContainsRegex("the daemon .* ended at once; its messages: .*/v3demud.log"));
  set("V3DEMU_DAEMON", "/etc/passwd");  // root may "execute" anything that access(2) is asked about
  EXPECT_THAT(complaints(), HasSubstr("/etc/passwd"));
  set("V3DEMU_DAEMON", kFake);
  set("V3DEMU_FAKE_MODE", "protocol");
  Result result = run_scenario("cannot_start");
  EXPECT_THAT(result.output, HasSubstr("another protocol"));
}

TEST_F(ShimTest, SaysWhatTheDaemonSaidThatDoesNotStart) {
  set("V3DEMU_DAEMON", kReal);
  set("V3DEMU_DEBUG", "nonsense");
  const Result result = run_scenario("cannot_start");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(
      result.output,
      ContainsRegex("ended at once: v3demud: V3DEMU_DEBUG: no category \"nonsense\"; there are mmu,cl"));
}

TEST_F(ShimTest, PrintsTheDebugCategories) {
  set("V3DEMU_DAEMON", kReal);
  set("V3DEMU_DEBUG", "help");
  const Result result = run_scenario("starts_and_works");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("v3demu:   hazard "));
}

TEST_F(ShimTest, RefusesFolderOfOthers) {
  set("V3DEMU_SOCKET", "");
  set("XDG_RUNTIME_DIR", folder_);
  fs::create_directory(folder_ / "v3demu");
  chmod((folder_ / "v3demu").c_str(), 0777);
  Result result = run({V3DEMU_TEST_CLIENT, "starts_and_works"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("belongs to somebody else"));
}

TEST_F(ShimTest, DoesWithoutAMissingRuntimeFolder) {
  set("V3DEMU_SOCKET", "");
  const std::string usual = "/tmp/v3demu-" + std::to_string(geteuid());
  for (const bool missing : {true, false}) {
    if (!missing && geteuid() != 0) continue;  // only root can give folders away
    const fs::path runtime = folder_ / (missing ? "missing" : "foreign");
    if (!missing) {
      fs::create_directory(runtime);
      ASSERT_EQ(chown(runtime.c_str(), 65534, 65534), 0);
    }
    set("XDG_RUNTIME_DIR", runtime);
    set("V3DEMU_LOG", folder_ / ("log" + std::to_string(missing)));  // a daemon of its own
    const std::string line = "v3demu: XDG_RUNTIME_DIR=" + runtime.string() +
                             (missing ? " does not exist" : " belongs to another user") +
                             ": the daemon is in " + usual + "\n";
    const Result first = run_scenario("starts_and_works"), second = run_scenario("starts_and_works");
    EXPECT_EQ(first.status, 0) << first.output;
    EXPECT_EQ(first.output, line);
    EXPECT_EQ(second.output, "");  // who starts a daemon says it
    EXPECT_EQ(fs::exists(runtime / "v3demu"), false);
  }
}

TEST_F(ShimTest, MakesItsFolder) {
  set("V3DEMU_SOCKET", "");
  set("XDG_RUNTIME_DIR", folder_);
  set("V3DEMU_DAEMON", kReal);
  expect_success("starts_and_works");
  struct stat st;
  ASSERT_EQ(stat((folder_ / "v3demu").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST_F(ShimTest, RebuildsATreeThatLostFiles) {
  expect_success("libdrm");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with("v3demu-tree-"))
      fs::remove(entry.path() / "dev/dri/card0");
  }
  expect_success("libdrm");
}

TEST_F(ShimTest, AsksOnceForWhatStays) {
  expect_success("cached_answers");
  EXPECT_EQ(journal("ioctl 44").size(), 3u + 3u);  // three parameters, and a counter in each round
  EXPECT_EQ(journal("ioctl 4c").size(), 1u);
  EXPECT_EQ(journal("ioctl 0c").size(), 1u);
  EXPECT_EQ(journal("ioctl 00").size(), 1u);
}

TEST_F(ShimTest, AsksOnceAboutForeignSockets) {
  expect_success("foreign_sockets");
  // Of three sockets that another process made, two are of the right kind; each is asked about once.
  EXPECT_EQ(journal("adopt refused").size(), 2u);
}

TEST_F(ShimTest, AsksNothingAboutOwnSockets) {
  expect_success("numbers_used_again");
  EXPECT_EQ(journal("adopt").size(), 0u);
}

TEST_F(ShimTest, DescriptorsInReplies) { expect_success("descriptors_in_replies"); }

TEST_F(ShimTest, MarshalsEveryPointer) {
  expect_success("marshalled");
  EXPECT_THAT(journal("malformed"), ElementsAre());
  const std::string handles2 = " in 1100000022000000", handles3 = handles2 + "33000000";
  const std::string sem1 = "01" + std::string(62, '0'), sem2 = "02" + std::string(62, '0');
  const std::string multi_sync = "(0000){4}0100000000000000.{64} in " + sem1 + sem2 + " in " + sem2 + "$";
  auto one = [&](const std::string& name, const std::string& pattern) {
    EXPECT_THAT(between_marks(name), ElementsAre(testing::MatchesRegex(pattern))) << name;
  };
  auto extension = [](const char* id, size_t size) {
    return " in .{16}" + std::string(id) + "000000.{" + std::to_string(2 * size - 24) + "}";
  };
  const std::string sync = extension("01", 48) + " in " + sem1 + sem2 + " in " + sem2;
  one("submit_cl", "ioctl 40" + handles3 + sync);
  one("submit_cl without extension", "ioctl 40" + handles3);
  one("submit_cl of old size", "ioctl 40" + handles3);
  one("submit_tfu", "ioctl 46" + sync);
  one("submit_csd", "ioctl 47" + handles2);
  const std::string cpu = "ioctl 4b in 11000000";
  one("submit_cpu indirect", cpu + extension("02", 128) + handles3 + sync);
  one("submit_cpu timestamp", cpu + extension("03", 40) + handles2 + " in 4400000000000000");
  one("submit_cpu reset timestamp", cpu + extension("04", 32) + handles3);
  one("submit_cpu copy timestamp", cpu + extension("05", 48) + " in 11000000 in 44000000");
  one("submit_cpu reset performance",
      cpu + extension("06", 40) + handles2 + " in .{32} in 0700000008000000 in 090000000a000000");
  one("submit_cpu copy performance",
      cpu + extension("07", 56) + handles2 + " in .{32} in 0700000008000000 in 090000000a000000");
  one("unknown extension, then nothing", cpu + extension("63", 16) + sync);
  one("unreadable list", "ioctl 40");
  one("extension loop", cpu + "( in .{16}63000000.{8}){64}");
  one("perfmon values", "ioctl 4a out 256");
  one("syncobj reset", "ioctl c4" + handles3);
  one("syncobj timeline wait", "ioctl ca" + handles2 + " in 44000000000000005500000000000000");
  one("syncobj query", "ioctl cb" + handles2 + " out 16");
  one("resources", "ioctl a0 out 8 out 4");
  one("connector", "ioctl a7 out 136 out 12 out 24");
  one("blob", "ioctl bd in 626c6f622064617461");
  one("atomic",
      "ioctl bc in 1f00000020000000 in 0100000002000000 in 050000000600000007000000 in .{48} out 4 fds 1");
  // Four bytes, six, a number of eight, two handles.
  one("vc4 submit_cl", "ioctl 40 in 6c697374 in 7265636f7264 in .{16}" + handles2);
  one("vc4 create_shader_bo", "ioctl 45 in 636f6465");
  one("vc4 perfmon values", "ioctl 4e out 128");
  EXPECT_THAT(between_marks("0x47 and 0x4b on vc4 have no lists"), ElementsAre("ioctl 47", "ioctl 4b"));
}

TEST_F(ShimTest, PythonMapsABuffer) {
  const std::string python = V3DEMU_TEST_PYTHON;
  if (python.empty() || python.ends_with("NOTFOUND")) GTEST_SKIP() << "no python3";
  // As py-videocore does: the primary node by its by-path name, fcntl.ioctl, mmap.mmap, which duplicates the
  // descriptor and refuses regular files that are too short.
  constexpr char kProgram[] = R"(
import fcntl, mmap, os, stat, struct
fd = os.open('/dev/dri/by-path/platform-1002000000.v3d-card', os.O_RDWR)
assert stat.S_ISCHR(os.fstat(fd).st_mode) and os.major(os.fstat(fd).st_rdev) == 226
def call(number, layout, *values):
    data = bytearray(struct.pack(layout, *values))
    fcntl.ioctl(fd, 0xc0006400 | len(data) << 16 | number, data)
    return struct.unpack(layout, data)
size, flags, handle, address = call(0x42, 'IIII', 1 << 20, 0, 0, 0)
offset = call(0x43, 'IIQ', handle, 0, 0)[2]
first = mmap.mmap(fd, 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)
second = mmap.mmap(fd, 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset)
first[123456] = 42
assert second[123456] == 42
assert sorted(os.listdir('/dev/dri')) == ['by-path', 'card0', 'card1', 'renderD128']
call(0x41, 'IIQ', handle, 0, 10**10)
first.close(); second.close(); os.close(fd)
)";
  for (const char* daemon : {kFake, kReal}) {
    set("V3DEMU_DAEMON", daemon);
    set("V3DEMU_SOCKET", folder_ / (daemon == kFake ? "fake" : "real"));
    Result result = run({python, "-c", kProgram});
    EXPECT_EQ(result.status, 0) << result.output;
  }
}

/// Reported, not judged: what preloading costs a program that has nothing to do with DRM.
TEST_F(ShimTest, CostForOtherPrograms) {
  auto milliseconds = [&] {
    constexpr int kRuns = 200;
    auto start = std::chrono::steady_clock::now();
    Result result = run(
        {"sh", "-c", "i=0; while [ $i -lt " + std::to_string(kRuns) + " ]; do /bin/true; i=$((i+1)); done"});
    EXPECT_EQ(result.status, 0);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() /
           kRuns;
  };
  double with = milliseconds();
  unset("LD_PRELOAD");
  double without = milliseconds();
  RecordProperty("milliseconds_with", std::to_string(with));
  RecordProperty("milliseconds_without", std::to_string(without));
  printf("true: %.3f ms, preloaded %.3f ms\n", without, with);
  EXPECT_THAT(left_behind(), ElementsAre());
}

}  // namespace
