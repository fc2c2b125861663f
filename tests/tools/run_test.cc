/// v3demu from outside: what `run` does to the environment of a program, and what the others say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/tools/command_test.h"

namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class RunTest : public CommandTest {
 protected:
  RunTest() {
    fs::create_directories(mesa() / "lib");
    std::ofstream(mesa() / "lib/libvulkan_broadcom.so");
  }
  fs::path mesa() const { return folder_ / "mesa"; }

  /// Runs v3demu in an empty environment plus `variables`; `arguments` are a shell's.
  /// (A sanitized v3demu must not mind that another library is loaded first.)
  Result v3demu(const std::string& arguments, const std::string& variables = "") {
    return shell("env -i PATH=\"$PATH\" HOME=" + folder_.string() +
                 " ASAN_OPTIONS=verify_asan_link_order=0 V3DEMU_SOCKET=" + (folder_ / "socket").string() +
                 " " + variables + " " V3DEMU_TEST_COMMAND " " + arguments + " 2>&1 </dev/null");
  }
  std::map<std::string, std::string> environment(const std::string& options,
                                                 const std::string& variables = "") {
    Result result = v3demu("run " + options + " env", variables);
    EXPECT_EQ(result.status, 0) << result.output;
    std::map<std::string, std::string> all;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      if (size_t at = line.find('='); at != std::string::npos) all[line.substr(0, at)] = line.substr(at + 1);
    }
    return all;
  }
};

TEST_F(RunTest, PointsTheLoadersAtMesa) {
  auto all = environment("--mesa " + mesa().string() + " --");
  const std::string icd = mesa() / "share/vulkan/icd.d/broadcom_icd.x86_64.json";
  EXPECT_EQ(all["VK_DRIVER_FILES"], icd);
  EXPECT_EQ(all["VK_ICD_FILENAMES"], icd);
  EXPECT_EQ(all["__EGL_VENDOR_LIBRARY_FILENAMES"], mesa() / "share/glvnd/egl_vendor.d/50_mesa.json");
  EXPECT_EQ(all["__GLX_VENDOR_LIBRARY_NAME"], "mesa");
  EXPECT_EQ(all["LIBGL_DRIVERS_PATH"], mesa() / "lib/dri");
  EXPECT_EQ(all["GBM_BACKENDS_PATH"], mesa() / "lib/gbm");
  EXPECT_EQ(all["LD_LIBRARY_PATH"], mesa() / "lib");
  EXPECT_THAT(all["LD_PRELOAD"], EndsWith("/lib/libv3demu.so"));
  // No display: EGL must not look for one; Vulkan needs no hint.
  EXPECT_EQ(all["EGL_PLATFORM"], "surfaceless");
  EXPECT_EQ(all.count("MESA_VK_WSI_DEBUG"), 0u);
}

TEST_F(RunTest, KeepsWhatTheUserSet) {
  auto all = environment("--mesa " + mesa().string(),
                         "VK_ICD_FILENAMES=mine LD_LIBRARY_PATH=/a LD_PRELOAD=libm.so.6 EGL_PLATFORM=x11 "
                         "__EGL_VENDOR_LIBRARY_DIRS=/dirs DISPLAY=:4711 MESA_VK_WSI_DEBUG=linear");
  EXPECT_EQ(all["VK_ICD_FILENAMES"], "mine");
  EXPECT_EQ(all.count("VK_DRIVER_FILES"), 0u);
  EXPECT_EQ(all["LD_LIBRARY_PATH"], (mesa() / "lib").string() + ":/a");
  EXPECT_THAT(all["LD_PRELOAD"], StartsWith("libm.so.6:/"));
  EXPECT_EQ(all.count("__EGL_VENDOR_LIBRARY_FILENAMES"), 0u);
  EXPECT_EQ(all["EGL_PLATFORM"], "x11");
  EXPECT_EQ(all["MESA_VK_WSI_DEBUG"], "linear");
}

TEST_F(RunTest, ChoosesPresentation) {
  EXPECT_EQ(environment("", "DISPLAY=:4711")["MESA_VK_WSI_DEBUG"], "sw");
  EXPECT_EQ(environment("", "WAYLAND_DISPLAY=/nowhere")["MESA_VK_WSI_DEBUG"], "sw");
  EXPECT_EQ(environment("", "DISPLAY=:4711 V3DEMU_WSI=native").count("MESA_VK_WSI_DEBUG"), 0u);
}

TEST_F(RunTest, GivesADeviceItsOwnSocket) {
  const std::string runtime = "XDG_RUNTIME_DIR=" + folder_.string() + " V3DEMU_SOCKET=";
  auto all = environment("--device rpi4", runtime);
  EXPECT_EQ(all["V3DEMU_DEVICE"], "rpi4");
  EXPECT_EQ(all["V3DEMU_SOCKET"], folder_ / "v3demu/socket-rpi4");
  EXPECT_EQ(environment("--device rpi4")["V3DEMU_SOCKET"], folder_ / "socket");
  EXPECT_EQ(v3demu("run --device ../x true", runtime).status, 127);
}

TEST_F(RunTest, GivesAKernelItsOwnSocket) {
  const std::string runtime = "XDG_RUNTIME_DIR=" + folder_.string() + " V3DEMU_SOCKET=";
  auto all = environment("--kernel 6.12", runtime);
  EXPECT_EQ(all["V3DEMU_KERNEL"], "6.12");
  EXPECT_EQ(all.count("V3DEMU_DEVICE"), 0u);
  EXPECT_EQ(all["V3DEMU_SOCKET"], folder_ / "v3demu/socket-6.12");
  EXPECT_EQ(environment("--device rpi4 --kernel 7.3", runtime)["V3DEMU_SOCKET"],
            folder_ / "v3demu/socket-rpi4-7.3");
  EXPECT_EQ(v3demu("run --kernel ../x true", runtime).status, 127);
}

TEST_F(RunTest, PassesTheProgramsOwnOptions) {
  const std::string quiet = "--mesa " + mesa().string() + " ";
  EXPECT_EQ(v3demu("run " + quiet + "echo -e a -- --device b").output, "a -- --device b\n");
  EXPECT_EQ(v3demu("run " + quiet + "-- echo -- a").output, "-- a\n");
  EXPECT_EQ(v3demu("run --mesa=" + mesa().string() + " -- printf %s --help").output, "--help");
  EXPECT_EQ(v3demu("run " + quiet + "sh -c 'exit 7'").status, 7);
  EXPECT_EQ(v3demu("run " + quiet + "/nowhere/program").status, 127);
  EXPECT_EQ(v3demu("run").status, 127);
  EXPECT_NE(v3demu("").status, 0);
  EXPECT_EQ(v3demu("run --mesa /nowhere true").status, 127);
}

/// A root with one arm64 program (the head of one is enough), and an emulator that says what it is asked.
class Arm64Test : public RunTest {
 protected:
  Arm64Test() {
    fs::create_directories(root() / "usr/bin");
    fs::create_directories(root() / "usr/lib/aarch64-linux-gnu");
    fs::create_directories(root() / "usr/share/vulkan/icd.d");
    std::ofstream(root() / "usr/lib/aarch64-linux-gnu/libvulkan_broadcom.so");
    std::ofstream(root() / "usr/share/vulkan/icd.d/broadcom_icd.json");
    std::string head(64, '\0');
    head.replace(0, 4, "\177ELF");
    head[18] = '\xb7';  // EM_AARCH64
    std::ofstream(root() / "usr/bin/cube") << head;
    std::ofstream(folder_ / "qemu-aarch64") << "#!/bin/sh\necho \"$@\"\nenv\n";
    std::ofstream(folder_ / "shim.so");
    for (const fs::path& file : {root() / "usr/bin/cube", folder_ / "qemu-aarch64"})
      fs::permissions(file, fs::perms::owner_all);
  }
  fs::path root() const { return folder_ / "root"; }
  Result run(const std::string& program, const std::string& variables = "") {
    return v3demu("run --arch arm64 --root " + root().string() + " -- " + program,
                  "PATH=" + folder_.string() + ":\"$PATH\" V3DEMU_SHIM=" + (folder_ / "shim.so").string() +
                      " " + variables);
  }
};

TEST_F(Arm64Test, StartsTheEmulatorWithTheRootsLibraries) {
  const Result result = run("cube --c 20", "LD_PRELOAD=libm.so.6");
  EXPECT_EQ(result.status, 0);
  const std::string libraries = (root() / "usr/lib/aarch64-linux-gnu").string();
  EXPECT_THAT(result.output, StartsWith("-E LD_PRELOAD=libm.so.6:" + (folder_ / "shim.so").string() +
                                        " -E LD_LIBRARY_PATH=" + libraries + " " +
                                        (root() / "usr/bin/cube").string() + " --c 20\n"));
  EXPECT_THAT(result.output, HasSubstr("\nQEMU_LD_PREFIX=" + root().string() + "\n"));
  const std::string icd = (root() / "usr/share/vulkan/icd.d/broadcom_icd.json").string();
  EXPECT_THAT(result.output, HasSubstr("\nVK_DRIVER_FILES=" + icd + "\n"));
  EXPECT_THAT(result.output, HasSubstr("\nGBM_BACKENDS_PATH=" + libraries + "/gbm\n"));
  // The emulator's own linker must not see them.
  EXPECT_THAT(result.output, testing::Not(HasSubstr("\nLD_PRELOAD=")));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("\nLD_LIBRARY_PATH=")));
}

TEST_F(Arm64Test, SaysWhatIsMissing) {
  EXPECT_THAT(run("sh -c true").output, HasSubstr("is not an arm64 program"));
  EXPECT_THAT(run("nowhere").output, HasSubstr("nowhere: no such program"));
  EXPECT_THAT(v3demu("run --arch arm64 -- cube", "PATH=" + folder_.string()).output,
              HasSubstr("packaging/arm64-root makes one"));
  EXPECT_THAT(v3demu("run --arch arm64 -- cube", "PATH=/nowhere").output, HasSubstr("qemu-user"));
  EXPECT_NE(v3demu("run --arch sparc -- cube").status, 0);
}

TEST_F(RunTest, LeavesNamedDriversTheirLibraries) {
  fs::create_directories(folder_ / "mesa-25.0.7/install/lib");
  const fs::path libraries = folder_ / "mesa-25.0.7/install/lib";
  std::ofstream(libraries / "libvulkan_broadcom.so");
  const std::string cache = "V3DEMU_CACHE=" + folder_.string();
  EXPECT_EQ(environment("", cache + " LD_LIBRARY_PATH=/dev")["LD_LIBRARY_PATH"],
            libraries.string() + ":/dev");
  EXPECT_EQ(environment("", cache + " LD_LIBRARY_PATH=/dev VK_DRIVER_FILES=mine")["LD_LIBRARY_PATH"],
            "/dev:" + libraries.string());
}

TEST_F(RunTest, ShowsTheDevice) {
  EXPECT_THAT(v3demu("run --mesa " + mesa().string() + " ls /dev/dri").output,
              StartsWith("by-path\ncard0\ncard1\nrenderD128\n"));
}

TEST_F(RunTest, StatusOfADaemon) {
  Result none = v3demu("status");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("no daemon runs on " + (folder_ / "socket").string()));
  // `serve` stays in the foreground and leaves with its only client.
  Result both = v3demu("serve --kernel 6.12 --exit-when-idle 1 & sleep 0.5; V3DEMU_SOCKET=" +
                       (folder_ / "socket").string() + " " V3DEMU_TEST_COMMAND " status; wait");
  EXPECT_THAT(both.output, HasSubstr("device rpi5"));
  EXPECT_THAT(both.output, HasSubstr("Linux 6.12"));
  EXPECT_THAT(both.output, HasSubstr("open nodes"));
}

TEST_F(RunTest, UnknownDebugCategoriesAreErrors) {
  const Result result = v3demu("run -- echo ran", "V3DEMU_DEBUG=cl,nonsense");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("no category \"nonsense\"; there are mmu,cl,"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("ran")));
}

TEST_F(RunTest, DebugHelpIsPrinted) {
  for (const char* command : {"run -- echo ran", "status", "serve", "replay nowhere"}) {
    const Result result = v3demu(command, "V3DEMU_DEBUG=help");
    EXPECT_EQ(result.status, 0) << command;
    EXPECT_THAT(result.output, HasSubstr("\n  hazard ")) << command;
  }
}

TEST_F(RunTest, SaysWhatARunningDaemonDoesNotLog) {
  const std::string socket = (folder_ / "socket").string();
  const std::string run = " " V3DEMU_TEST_COMMAND " run --mesa " + mesa().string() +
                          " -- sh -c 'exec 3</dev/dri/renderD128' 2>&1; ";
  const Result result = v3demu("serve --debug tfu --exit-when-idle 1 & export V3DEMU_SOCKET=" + socket +
                               "; while ! [ -e " + socket + " ]; do sleep 0.05; done;" +  //
                               " echo one; V3DEMU_DEBUG=cl" + run +                       //
                               " echo two; V3DEMU_DEBUG=tfu" + run + " echo three;" + run + " wait");
  EXPECT_THAT(result.output,
              testing::ContainsRegex("one\nv3demu: the daemon that runs .pid [0-9]+. logs tfu, not cl as "
                                     "V3DEMU_DEBUG asks: .*\ntwo\nthree\n"));
}

}  // namespace
