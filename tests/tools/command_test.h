/// This is the base of tests that run v3demu from outside, each with a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/base/temporary_folder.h"

class CommandTest : public testing::Test {
 protected:
  struct Result {
    int status;  ///< of exit, or -1
    std::string output;
  };
  /// Runs a line of the shell and takes what it prints.
  static Result shell(const std::string& line) {
    FILE* pipe = popen(line.c_str(), "r");
    std::string output;
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof(chunk), pipe)) > 0;) output.append(chunk, got);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
  }

  const v3d::test::TemporaryFolder own_;
  const std::filesystem::path folder_ = own_.path();
};
