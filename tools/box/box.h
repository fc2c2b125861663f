/// v3demu-box starts a program to which the emulated GPU is there without preloading (`v3demu run --sandbox`
/// and `--seccomp`). It reads the environment that `run` made, and is a program of its own because that
/// decides where the daemon is.
#pragma once

#include <string>
#include <vector>

namespace v3d::box {

/// One line on stderr.
void say(const std::string& line);
/// strerror() of errno after what failed.
std::string because(const std::string& what);

/// The words, ended by a null pointer, as exec takes them.
std::vector<char*> exec_words(const std::vector<std::string>& words);

/// Text of a daemon's answer to a command (wire.h); empty when there is none.
/// @param start  a daemon, if none runs
std::string ask_daemon(const char* command, bool start);

}  // namespace v3d::box
