/// What `v3demu run` checks before it starts a program.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/tools/run_fixture.h"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, TakesNoUnknownBoard) {
  const std::string devices = "no device \"rpi9\"; there are rpi5 (Raspberry Pi 5";
  Result result = v3demu("run --device rpi9 -- echo ran");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_THAT(result.output, AllOf(HasSubstr("--device: " + devices), Not(HasSubstr("ran\n"))));
  result = v3demu("run -- echo ran", "V3DEMU_DEVICE=rpi9");
  EXPECT_EQ(result.status, 127);
  EXPECT_THAT(result.output, AllOf(HasSubstr(devices), Not(HasSubstr("ran\n"))));
  EXPECT_THAT(v3demu("run --kernel 5.10 -- echo ran").output,
              HasSubstr("no kernel \"5.10\"; there are 7.3 (default), 6.12"));
}

TEST_F(RunTest, TakesNoUnknownOptions) {
  for (const char* command : {"run --devise rpi5 -- echo ran", "capture -x -- echo ran", "status --all",
                              "replay --nothing x", "serve --nothing"}) {
    const Result result = v3demu(command);
    EXPECT_EQ(result.status, kWrongUsage) << command;
    EXPECT_THAT(result.output, testing::ContainsRegex("--devise|-x|--all|--nothing")) << command;
    EXPECT_THAT(result.output, Not(HasSubstr("ran\n"))) << command;
  }
}

TEST_F(RunTest, TellsHowItIsUsed) {
  EXPECT_THAT(v3demu("run --help").output, HasSubstr("run [OPTIONS] -- PROGRAM [ARGUMENT...]"));
  EXPECT_THAT(v3demu("capture --help").output, HasSubstr("capture [OPTIONS] -- PROGRAM [ARGUMENT...]"));
  EXPECT_THAT(v3demu("--version").output, testing::MatchesRegex("v3demu [0-9.]+\n"));
}

TEST_F(RunTest, RunsNothingWithoutBroadcomDrivers) {
  const std::string nothing = "V3DEMU_CACHE=/nowhere";
  Result result = v3demu("run -- echo ran", nothing);
  EXPECT_EQ(result.status, 127);
  EXPECT_THAT(result.output, AllOf(HasSubstr("no Mesa with Broadcom drivers: looked in "),
                                   HasSubstr("run packaging/setup"), Not(HasSubstr("ran\n"))));
  EXPECT_EQ(v3demu("run --mesa system -- echo ran", nothing).output, "ran\n");
  EXPECT_EQ(v3demu("run -- echo ran", nothing + " VK_DRIVER_FILES=mine").output,
            "ran\n");  // as the user wishes
  const std::string capture =
      v3demu("capture -o " + (folder_ / "capture").string() + " -- echo ran", nothing).output;
  EXPECT_THAT(capture, AllOf(HasSubstr("v3demu capture: no Mesa"), Not(HasSubstr("v3demu run:"))));
  result = v3demu("run -- echo ran", "V3DEMU_MESA=/nowhere");
  EXPECT_THAT(result.output, HasSubstr("no libvulkan_broadcom.so under /nowhere"));
}

TEST_F(RunTest, NamesNoSeparatorsInLists) {
  const fs::path runtime = folder_ / "run";
  const fs::path shim = folder_ / "with blank/libv3demu.so", drivers = folder_ / "with:colon";
  fs::create_directories(shim.parent_path());
  fs::create_directories(runtime);
  fs::create_directory_symlink(mesa(), drivers);
  fs::copy_file(V3DEMU_TEST_SHIM, shim);
  const std::string variables =
      "V3DEMU_SHIM='" + shim.string() + "' V3DEMU_DAEMON=/nowhere XDG_RUNTIME_DIR=" + runtime.string();
  auto all = environment("--mesa " + drivers.string(), variables);
  EXPECT_EQ(fs::read_symlink(all["LD_PRELOAD"]), shim);
  EXPECT_EQ(fs::path(all["LD_PRELOAD"]).parent_path(), runtime / "v3demu");
  EXPECT_EQ(fs::read_symlink(fs::path(all["LD_LIBRARY_PATH"]).parent_path()), drivers);
  const Result preloaded = v3demu("run --mesa system -- ls /dev/dri", variables);
  EXPECT_THAT(preloaded.output, HasSubstr("renderD128"));
  // Where a link would not help, nothing runs.
  fs::create_directories(folder_ / "run time");
  const Result refused =
      v3demu("run --mesa system -- echo ran",
             "V3DEMU_SHIM='" + shim.string() + "' XDG_RUNTIME_DIR='" + (folder_ / "run time").string() + "'");
  EXPECT_EQ(refused.status, 127);
  EXPECT_THAT(refused.output, HasSubstr("LD_PRELOAD cannot name \"" + shim.string() + "\""));
}

/// Programs into which nothing can be preloaded: heads of ELF files are enough, they are not run.
class ForeignProgramTest : public RunTest {
 protected:
  /// An executable file.
  std::string file(const std::string& name, const std::string& contents) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << contents;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  static std::string elf(unsigned char elf_class, uint16_t machine) {
    Elf64_Ehdr header = {};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class;
    header.e_machine = machine;
    return {reinterpret_cast<const char*>(&header), sizeof header};
  }
  Result run(const std::string& program, const std::string& variables = "") {
    return v3demu("run --mesa system -- " + program, variables);
  }
};

TEST_F(ForeignProgramTest, OtherArchitecturesAreNamed) {
  const std::string old = file("old", elf(ELFCLASS32, EM_386));
  Result result = run(old);
  EXPECT_EQ(result.status, 127);
  EXPECT_THAT(result.output, HasSubstr(old + " is an i386 program"));
  const std::string script = file("script", "#! " + old + " -x\n");
  EXPECT_THAT(run(script).output, HasSubstr(old + ", the interpreter of " + script + ", is an i386 program"));
  EXPECT_THAT(run(file("board", elf(ELFCLASS64, EM_AARCH64))).output,
              HasSubstr("--arch arm64 runs such programs"));
  EXPECT_THAT(run(file("old_board", elf(ELFCLASS32, EM_ARM))).output,
              HasSubstr("--arch armhf runs such programs"));
  EXPECT_THAT(run(file("sparc", elf(ELFCLASS64, EM_SPARCV9))).output, HasSubstr("is a machine 43 program"));
}

TEST_F(ForeignProgramTest, StaticProgramsAreWarnedOf) {
  const Result result = run(V3DEMU_TEST_STATIC);
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr(V3DEMU_TEST_STATIC " is statically linked"), HasSubstr("static ran\n")));
  EXPECT_EQ(run("echo ran").output, "ran\n");
  EXPECT_EQ(run(file("script", "#!/bin/sh\necho ran\n")).output, "ran\n");
}

TEST_F(ForeignProgramTest, ProgramsThatGainRightsAreWarnedOf) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make one";
  const fs::path program = folder_ / "program";
  fs::copy_file("/bin/true", program);
  ASSERT_EQ(chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  EXPECT_THAT(run(program).output, HasSubstr(program.string() + " gains rights"));
}

}  // namespace
