/// v3demu-box [--sandbox] [--seccomp] [--preload LIST] -- PROGRAM [ARGUMENT...]
///
/// Not for users: `v3demu run` makes the environment, and the words. LIST is what LD_PRELOAD is to be for
/// the program; this process has to see things as they are.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "tools/box/box.h"
#include "tools/box/mounts.h"
#include "tools/box/supervisor.h"
#include "tools/box/tree_server.h"

namespace v3d::box {

void say(const std::string& line) { fprintf(stderr, "v3demu run: %s\n", line.c_str()); }

std::string because(const std::string& what) { return what + ": " + strerror(errno); }

std::vector<char*> exec_words(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string ask_daemon(const char* command, bool start) {
  shim::Call call(wire::kCommand, shim::kCloseOnExec | (start ? unsigned{shim::kStartDaemon} : 0u));
  if (call.open() || !call.append(command, strlen(command)) || call.send() || call.error()) return {};
  return {reinterpret_cast<const char*>(call.reply()), call.reply_size()};
}

namespace {

constexpr int kCannotRun = 127;

struct Words {
  bool sandbox = false, seccomp = false;
  std::string preload;
  std::vector<std::string> program;
};

bool parse(int argc, char** argv, Words* words) {
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--") != 0; ++at) {
    const std::string word = argv[at];
    if (word == "--sandbox")
      words->sandbox = true;
    else if (word == "--seccomp")
      words->seccomp = true;
    else if (word == "--preload" && at + 1 < argc)
      words->preload = argv[++at];
    else
      return false;
  }
  words->program.assign(argv + (at < argc ? at + 1 : argc), argv + argc);
  return !words->program.empty();
}

std::string own_path() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

/// Whether the tree is where programs look for it.
bool make_sandbox() {
#if defined(V3DEMU_FUSE)
  const std::string failure = enter_sandbox(own_path());
#else
  const std::string failure = "v3demu was built without libfuse3";
#endif
  if (failure.empty()) {
    setenv("V3DEMU_TREE", "real", 1);
    setenv("SYSTEMD_DEVICE_VERIFY_SYSFS", "0", 1);  // libudev's look at the file system's type
    return true;
  }
  say("no sandbox (" + failure + "); the device tree is shown by interposed paths instead");
  return false;
}

int run(int argc, char** argv) {
#if defined(V3DEMU_FUSE)
  if (argc == 4 && strcmp(argv[1], "--serve-tree") == 0) return serve_tree(atoi(argv[2]), atoi(argv[3]));
#endif
  Words words;
  if (!parse(argc, argv, &words)) {
    fputs("v3demu-box is a part of v3demu run; see v3demu run --help\n", stderr);
    return 2;
  }
  // Here, since a daemon belongs to no sandbox.
  ask_daemon("status", true);
  const bool mounted = words.sandbox && make_sandbox();
  if (!words.preload.empty()) setenv("LD_PRELOAD", words.preload.c_str(), 1);
  if (words.seccomp) return supervise(words.program, mounted);
  execvp(words.program[0].c_str(), exec_words(words.program).data());
  say(because(words.program[0]));
  return kCannotRun;
}

}  // namespace
}  // namespace v3d::box

int main(int argc, char** argv) {
  try {
    return v3d::box::run(argc, argv);
  } catch (const std::exception& e) {
    v3d::box::say(e.what());
    return v3d::box::kCannotRun;
  }
}
