/// What `v3demu run` does to the environment of a program.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/tools/run_fixture.h"

namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void touch(const fs::path& file) { const std::ofstream made(file); }

TEST_F(RunTest, DevicesAreListed) {
  const Result list = v3demu("devices");
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.output,
              testing::MatchesRegex(
                  "rpi5 +Raspberry Pi 5, V3D 7.1.7, .*, 960 MHz; Vulkan and OpenGL \\(default\\)\n(.|\n)*"));
  EXPECT_THAT(
      list.output,
      testing::HasSubstr(
          "\nrpi4        Raspberry Pi 4, V3D 4.2.14, 2 slices of 4 QPUs, 500 MHz; Vulkan and OpenGL\n"));
  EXPECT_THAT(
      list.output,
      HasSubstr("\nrpi3        Raspberry Pi 3, V3D 2.1 (VideoCore IV), 3 slices of 4 QPUs, 400 MHz, 256 MiB "
                "for buffers (--memory); OpenGL, no Vulkan\n"));
  EXPECT_THAT(list.output, HasSubstr("\nrpi5 is the default since"));
}

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
  const std::string system = "--mesa system";
  EXPECT_EQ(environment(system, "DISPLAY=:4711")["MESA_VK_WSI_DEBUG"], "sw");
  EXPECT_EQ(environment(system, "WAYLAND_DISPLAY=/nowhere")["MESA_VK_WSI_DEBUG"], "sw");
  EXPECT_EQ(environment(system, "DISPLAY=:4711 V3DEMU_WSI=native").count("MESA_VK_WSI_DEBUG"), 0u);
  EXPECT_EQ(environment(system, "DISPLAY=:4711")["DISPLAY"],
            ":4711");  // nothing can be put in front of no server
}

TEST_F(RunTest, SettingsHaveSocketsOfTheirOwn) {
  const std::string runtime = "XDG_RUNTIME_DIR=" + folder_.string() + " V3DEMU_SOCKET=";
  const auto socket = [&](const std::string& options, const std::string& variables = "") {
    const Result asked =
        v3demu("run --mesa system " + options + " " V3DEMU_TEST_COMMAND " status", runtime + " " + variables);
    const std::string start = "no daemon runs on " + (folder_ / "v3demu/").string();
    const size_t at = asked.output.find(start);
    return at == std::string::npos
               ? asked.output
               : asked.output.substr(at + start.size(), asked.output.find('\n', at) - at - start.size());
  };
  EXPECT_EQ(socket(""), "socket");
  EXPECT_EQ(socket("--device rpi5 --kernel 7.3"), "socket");
  EXPECT_EQ(socket("--device rpi5-16"), "socket-rpi5-16");
  EXPECT_EQ(socket("--kernel 6.12"), "socket-6.12");
  EXPECT_EQ(socket("--device rpi5-16 --kernel 6.12"), "socket-rpi5-16-6.12");
  EXPECT_EQ(socket("--pace --device rpi4"), "socket-rpi4-pace");
  EXPECT_EQ(socket("--memory 128 --device rpi2 --kernel 6.1"), "socket-rpi2-6.1-memory=128");
  EXPECT_EQ(socket("--timing"), "socket-count");
  EXPECT_EQ(socket("", "V3DEMU_DEVICE=rpi4 V3DEMU_JIT=off"), "socket-rpi4-jit=off");
  EXPECT_THAT(socket("", "V3DEMU_DEBUG=ioctl"), StartsWith("socket-own="));
  EXPECT_NE(socket("", "V3DEMU_DEBUG=ioctl"), socket("", "V3DEMU_DEBUG=cl"));
}

TEST_F(RunTest, PassesSettingsOn) {
  EXPECT_EQ(environment("--mesa system --device rpi5-16")["V3DEMU_DEVICE"], "rpi5-16");
  EXPECT_EQ(environment("--mesa system --device rpi5-16")["V3DEMU_SOCKET"], folder_ / "socket");
  EXPECT_EQ(environment("--mesa system --kernel 6.12")["V3DEMU_KERNEL"], "6.12");
  EXPECT_EQ(environment("--mesa system --device rpi3 --memory 64")["V3DEMU_MEMORY"], "64");
  EXPECT_FALSE(environment("--mesa system --device rpi3 --memory 256").contains("V3DEMU_MEMORY"));
  EXPECT_EQ(environment("--mesa system --pace")["V3DEMU_TIMING"], "pace");
  EXPECT_EQ(environment("--mesa system --timing")["V3DEMU_TIMING"], "count");
  // Whatever folder a child of the program stands in.
  EXPECT_EQ(environment("--mesa system", "V3DEMU_LOG=here")["V3DEMU_LOG"], fs::absolute("here"));
  EXPECT_EQ(v3demu("run --timing --pace -- true").status, kWrongUsage);
  const Result unknown = v3demu("run --mesa system -- true", "V3DEMU_TIMING=fast");
  EXPECT_EQ(unknown.status, 127);
  EXPECT_THAT(unknown.output, HasSubstr("unknown V3DEMU_TIMING=fast"));
  const Result small = v3demu("run --mesa system --device rpi3 --memory 16 -- true");
  EXPECT_EQ(small.status, 127);
  EXPECT_THAT(small.output,
              HasSubstr("no memory of \"16\" MiB for buffers; the device rpi3 has from 32 to 948"));
}

TEST_F(RunTest, FindsThePartsOfItsInstallation) {
  const fs::path prefix = folder_ / "prefix", mesa = prefix / "lib/v3demu/mesa/lib";
  const fs::path shim = prefix / "lib/x86_64-linux-gnu/libv3demu.so";
  for (const fs::path& folder : {mesa, shim.parent_path(), prefix / "bin", prefix / "libexec/v3demu"})
    fs::create_directories(folder);
  touch(mesa / "libvulkan_broadcom.so");
  fs::copy_file(V3DEMU_TEST_SHIM, shim);
  for (const fs::path& program : {prefix / "bin/v3demu", prefix / "libexec/v3demu/v3demu-v3"}) {
    fs::copy_file(V3DEMU_TEST_COMMAND, program);
    auto all = environment("", "", program);
    EXPECT_EQ(all["LD_PRELOAD"], shim) << program;
    EXPECT_EQ(all["LD_LIBRARY_PATH"], mesa) << program;
  }
}

TEST_F(RunTest, LooksForMesaInTheCache) {
  const auto libraries = [&] {
    return environment("", "V3DEMU_CACHE=" + folder_.string())["LD_LIBRARY_PATH"];
  };
  const auto install = [&](const std::string& version) {
    fs::path folder = folder_ / ("mesa-" + version) / "install/lib";
    fs::create_directories(folder);
    touch(folder / "libvulkan_broadcom.so");
    return folder;
  };
  const fs::path other = install("26.2.6");
  EXPECT_EQ(libraries(), other);
  const fs::path usual = install("25.0.7");  // of packaging/mesa, however old
  EXPECT_EQ(libraries(), usual);
  EXPECT_EQ(environment("", "V3DEMU_MESA=" + mesa().string())["LD_LIBRARY_PATH"], mesa() / "lib");
}

TEST_F(RunTest, PassesTheProgramsOwnOptions) {
  const std::string quiet = "--mesa " + mesa().string() + " ";
  EXPECT_EQ(v3demu("run " + quiet + "echo -e a -- --device b").output, "a -- --device b\n");
  EXPECT_EQ(v3demu("run " + quiet + "-- echo -- a").output, "-- a\n");
  EXPECT_EQ(v3demu("run --mesa=" + mesa().string() + " -- printf %s --help").output, "--help");
  EXPECT_EQ(v3demu("run " + quiet + "sh -c 'exit 7'").status, 7);
  EXPECT_EQ(v3demu("run " + quiet + "/nowhere/program").status, 127);
  EXPECT_EQ(v3demu("run").status, kWrongUsage);
  EXPECT_NE(v3demu("").status, 0);
  EXPECT_EQ(v3demu("run --mesa /nowhere true").status, 127);
}

struct Foreign {
  std::string name, triplet, emulator;
  char elf_class;
  uint16_t machine;
};

/// A root with one program of another architecture (the head of one is enough), and an emulator that says
/// what it is asked.
class ForeignTest : public RunTest, public testing::WithParamInterface<Foreign> {
 protected:
  ForeignTest() {
    fs::create_directories(root() / "usr/bin");
    fs::create_directories(libraries());
    fs::create_directories(root() / "usr/share/vulkan/icd.d");
    touch(libraries() / "libvulkan_broadcom.so");
    touch(root() / "usr/share/vulkan/icd.d/broadcom_icd.json");
    std::string head(64, '\0');
    head.replace(0, 4, "\177ELF");
    head[4] = GetParam().elf_class;
    head[18] = static_cast<char>(GetParam().machine);
    std::ofstream(root() / "usr/bin/cube") << head;
    std::ofstream(folder_ / GetParam().emulator) << "#!/bin/sh\necho \"$@\"\nenv\n";
    touch(folder_ / "shim.so");
    for (const fs::path& file : {root() / "usr/bin/cube", folder_ / GetParam().emulator})
      fs::permissions(file, fs::perms::owner_all);
  }
  fs::path root() const { return folder_ / "root"; }
  fs::path libraries() const { return root() / "usr/lib" / GetParam().triplet; }
  static std::string in_root() { return "run --arch " + GetParam().name + " "; }
  Result run(const std::string& program, const std::string& variables = "") {
    return v3demu(in_root() + "--root " + root().string() + " -- " + program,
                  "PATH=" + folder_.string() + ":\"$PATH\" V3DEMU_SHIM=" + (folder_ / "shim.so").string() +
                      " " + variables);
  }
};

INSTANTIATE_TEST_SUITE_P(
    , ForeignTest,
    testing::Values(Foreign{"arm64", "aarch64-linux-gnu", "qemu-aarch64", ELFCLASS64, EM_AARCH64},
                    Foreign{"armhf", "arm-linux-gnueabihf", "qemu-arm", ELFCLASS32, EM_ARM}),
    [](const testing::TestParamInfo<Foreign>& one) { return one.param.name; });

TEST_P(ForeignTest, StartsTheEmulatorWithTheRootsLibraries) {
  const Result result = run("cube --c 20", "LD_PRELOAD=libm.so.6");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, StartsWith("-E LD_PRELOAD=libm.so.6:" + (folder_ / "shim.so").string() +
                                        " -E LD_LIBRARY_PATH=" + libraries().string() + " " +
                                        (root() / "usr/bin/cube").string() + " --c 20\n"));
  EXPECT_THAT(result.output, HasSubstr("\nQEMU_LD_PREFIX=" + root().string() + "\n"));
  const std::string icd = (root() / "usr/share/vulkan/icd.d/broadcom_icd.json").string();
  EXPECT_THAT(result.output, HasSubstr("\nVK_DRIVER_FILES=" + icd + "\n"));
  EXPECT_THAT(result.output, HasSubstr("\nGBM_BACKENDS_PATH=" + libraries().string() + "/gbm\n"));
  // The emulator's own linker must not see them.
  EXPECT_THAT(result.output, Not(HasSubstr("\nLD_PRELOAD=")));
  EXPECT_THAT(result.output, Not(HasSubstr("\nLD_LIBRARY_PATH=")));
}

TEST_P(ForeignTest, SaysWhatIsMissing) {
  const std::string name = GetParam().name;
  EXPECT_THAT(run("sh -c true").output, HasSubstr("is not an " + name + " program"));
  EXPECT_THAT(run("nowhere").output, HasSubstr("nowhere: no such program"));
  EXPECT_THAT(v3demu(in_root() + "-- cube", "PATH=" + folder_.string()).output,
              HasSubstr("packaging/debian-root " + name + " makes one"));
  EXPECT_THAT(v3demu(in_root() + "-- cube", "PATH=/nowhere").output,
              HasSubstr(GetParam().emulator + " not found; it is in Debian's package qemu-user"));
  EXPECT_THAT(run("cube", "V3DEMU_SHIM=/nowhere.so").output,
              HasSubstr("no file /nowhere.so, which V3DEMU_SHIM"));
  const fs::path alone = folder_ / "alone/bin/v3demu";  // an installation without the library
  fs::create_directories(alone.parent_path());
  fs::copy_file(V3DEMU_TEST_COMMAND, alone);
  EXPECT_THAT(
      v3demu(in_root() + "--root " + root().string() + " -- cube", "PATH=" + folder_.string() + ":\"$PATH\"",
             alone.string())
          .output,
      HasSubstr("no libv3demu.so for " + name + " programs beside this program; in a clone packaging/setup"));
}

TEST_F(RunTest, KnowsTheArchitecturesThatItNames) {
  EXPECT_NE(v3demu("run --arch sparc -- cube").status, 0);
  EXPECT_THAT(v3demu("run --help").output, HasSubstr("arm64 or armhf"));
}

TEST_F(RunTest, LeavesNamedDriversTheirLibraries) {
  fs::create_directories(folder_ / "mesa-25.0.7/install/lib");
  const fs::path libraries = folder_ / "mesa-25.0.7/install/lib";
  touch(libraries / "libvulkan_broadcom.so");
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

}  // namespace
