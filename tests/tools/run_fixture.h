/// This is the base of tests that run programs under `v3demu run`, each with a Mesa of its own: an empty
/// driver is enough.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/tools/command_test.h"

inline constexpr int kWrongUsage = 2;

class RunTest : public CommandTest {
 protected:
  RunTest() {
    std::filesystem::create_directories(mesa() / "lib");
    std::ofstream(mesa() / "lib/libvulkan_broadcom.so");
  }
  std::filesystem::path mesa() const { return folder_ / "mesa"; }

  /// Runs v3demu in an empty environment plus `variables`; `arguments` are a shell's.
  /// (A sanitized v3demu must not mind that another library is loaded first.)
  Result v3demu(const std::string& arguments, const std::string& variables = "",
                const std::string& program = V3DEMU_TEST_COMMAND) {
    return shell("env -i PATH=\"$PATH\" HOME=" + folder_.string() +
                 " ASAN_OPTIONS=verify_asan_link_order=0 V3DEMU_SOCKET=" + (folder_ / "socket").string() +
                 " " + variables + " '" + program + "' " + arguments + " 2>&1 </dev/null");
  }
  /// Runs a line of the shell while `v3demu serve` runs, which says when it can be connected to.
  Result beside_daemon(const std::string& options, const std::string& line) {
    const std::string said = (folder_ / "said").string(), socket = (folder_ / "socket").string();
    return shell("exec 2>&1; mkfifo " + said + "; V3DEMU_SOCKET=" + socket +
                 " " V3DEMU_TEST_COMMAND " serve " + options + " 2>" + said + " & exec 3<" + said +
                 "; read -r ready <&3; export V3DEMU_SOCKET=" + socket + "; " + line + "; kill $!; wait");
  }
  std::map<std::string, std::string> environment(const std::string& options,
                                                 const std::string& variables = "",
                                                 const std::string& program = V3DEMU_TEST_COMMAND) {
    Result result = v3demu("run " + options + " env", variables, program);
    EXPECT_EQ(result.status, 0) << result.output;
    std::map<std::string, std::string> all;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      if (size_t at = line.find('='); at != std::string::npos) all[line.substr(0, at)] = line.substr(at + 1);
    }
    return all;
  }
};
