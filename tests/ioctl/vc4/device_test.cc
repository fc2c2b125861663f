// A board whose driver is vc4: its nodes, parameters and BOs (vc4-abi.md 1, 2.6 to 2.11).
#include "ioctl/vc4/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ioctl/vc4/memory.h"
#include "tests/ioctl/vc4/vc4_fixture.h"

namespace v3d::ioctl::vc4::test {
namespace {

using ::testing::ElementsAre;
using namespace drm::vc4;

class DeviceTest : public Vc4Test {};

TEST_F(DeviceTest, BothNodesAreOfOneDevice) {
  EXPECT_EQ(open(kMinorV3d), nullptr);
  const auto card = open(kMinorVc4);
  ASSERT_TRUE(card);
  EXPECT_EQ(&card->device(), &file_->device());
  EXPECT_STREQ(card->device().name, "vc4");
}

TEST_F(DeviceTest, SyncobjsOnBothNodes) {
  const auto card = open(kMinorVc4);
  for (File* file : {card.get(), file_.get()}) {
    drm::GetCap cap = {.capability = drm::kCapSyncobj, .value = 0};
    EXPECT_EQ(ioctl(*file, kGetCap, cap), 0);
    EXPECT_EQ(cap.value, 1u);
    EXPECT_NE(create_syncobj(*file), 0u);
  }
}

TEST_F(DeviceTest, ModesAreSetOnTheCard) {
  drm::CreateDumb args = {
      .height = 16, .width = 16, .bpp = 32, .flags = 0, .handle = 0, .pitch = 0, .size = 0};
  EXPECT_EQ(ioctl(*file_, kCreateDumb, args), EACCES);
  const auto card = open(kMinorVc4);
  EXPECT_EQ(ioctl(*card, kCreateDumb, args), 0);
}

// The same word is V3D_MMAP_BO on another board.
TEST_F(DeviceTest, TheDeviceChoosesTheIoctl) {
  EXPECT_EQ(drm::vc4::kCreateBo, IoctlTest::kMmapBo);
  EXPECT_EQ(request_name(*file_, drm::vc4::kCreateBo), "VC4_CREATE_BO");
  for (uint32_t number = 0x4f; number < 0xa0; ++number) {
    std::vector<uint8_t> arg(16);
    EXPECT_EQ(raw_ioctl(*file_, 0xc0106400 | number, &arg), EINVAL) << number;
  }
}

TEST_F(DeviceTest, AnswersParams) {
  const std::vector<uint64_t> values = {0x02443356, 0xc1102431, 0x121, 1, 1, 1, 1, 1, 1};
  for (uint32_t param = 0; param < values.size(); ++param) {
    drm::vc4::GetParam args = {.param = param, .pad = 0, .value = 7};
    EXPECT_EQ(ioctl(drm::vc4::kGetParam, args), 0);
    EXPECT_EQ(args.value, values[param]) << param;
  }
  drm::vc4::GetParam args = {.param = kNumParams, .pad = 0, .value = 0};
  EXPECT_EQ(ioctl(drm::vc4::kGetParam, args), EINVAL);
  args = {.param = 0, .pad = 1, .value = 0};
  EXPECT_EQ(ioctl(drm::vc4::kGetParam, args), EINVAL);
}

TEST_F(DeviceTest, HangStateIsForRoot) {
  drm::vc4::GetHangState args = {};
  EXPECT_EQ(ioctl(kGetHangState, args), EACCES);
  EXPECT_EQ(ioctl(*open(kMinorVc4), kGetHangState, args), EACCES);
  EXPECT_EQ(ioctl(*open(kMinorVc4, true), kGetHangState, args), ENOENT);
}

TEST_F(DeviceTest, CreatesBos) {
  drm::vc4::CreateBo args = {.size = 0, .flags = 0, .handle = 0, .pad = 0};
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, args), EINVAL);
  args = {.size = 1, .flags = 77, .handle = 0, .pad = 88};  // neither is looked at
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, args), 0);
  EXPECT_EQ(args.handle, 1u);
  EXPECT_EQ(file_->find_bo(1)->size(), 4096u);
  drm::vc4::MmapBo map = {.handle = 1, .flags = 99, .offset = 0};
  EXPECT_EQ(ioctl(drm::vc4::kMmapBo, map), 0);
  EXPECT_NE(map.offset, 0u);
  map.handle = 2;
  EXPECT_EQ(ioctl(drm::vc4::kMmapBo, map), EINVAL);
}

TEST_F(DeviceTest, ChecksShaderBos) {
  const uint64_t words = memory_.place(program({}));
  const auto check = [&](uint32_t size, uint32_t flags, uint32_t pad, uint64_t data) {
    CreateShaderBo args = {.size = size, .flags = flags, .data = data, .handle = 0, .pad = pad};
    return ioctl(kCreateShaderBo, args);
  };
  EXPECT_EQ(check(24, 0, 0, words), 0);
  EXPECT_EQ(check(0, 0, 0, words), EINVAL);
  EXPECT_EQ(check(20, 0, 0, words), EINVAL);
  EXPECT_EQ(check(24, 1, 0, words), EINVAL);
  EXPECT_EQ(check(24, 0, 1, words), EINVAL);
  EXPECT_EQ(check(24, 0, 0, 16), EFAULT);
  EXPECT_EQ(check(8, 0, 0, words + 8), EINVAL);  // does not end
  EXPECT_EQ(check(1u << 30, 0, 0, words), ENOMEM);
}

TEST_F(DeviceTest, ShadersAreNotWrittenAndNotShared) {
  uint32_t shader;
  ASSERT_EQ(create_shader(program({read_uniform()}), &shader), 0);
  EXPECT_EQ(mmap_node(*file_, shader, PROT_READ), 0);
  EXPECT_EQ(mmap_node(*file_, shader, PROT_READ | PROT_WRITE), EINVAL);
  drm::PrimeHandle args = {.handle = shader, .flags = 0, .fd = -1};
  EXPECT_EQ(ioctl(kPrimeHandleToFd, args), EINVAL);
}

TEST_F(DeviceTest, TilingIsOfTheObject) {
  const uint32_t handle = create();
  const auto get = [&](File& file, uint32_t h, uint64_t* modifier) {
    drm::vc4::Tiling args = {.handle = h, .flags = 0, .modifier = 0};
    const int error = ioctl(file, kGetTiling, args);
    *modifier = args.modifier;
    return error;
  };
  uint64_t modifier = 1;
  EXPECT_EQ(get(*file_, handle, &modifier), 0);
  EXPECT_EQ(modifier, kModifierLinear);
  drm::vc4::Tiling set = {.handle = handle, .flags = 0, .modifier = kModifierTTiled};
  EXPECT_EQ(ioctl(kSetTiling, set), 0);
  // Another file of the device sees it.
  const auto other = open(kMinorV3dRender);
  const UniqueFd fd = export_bo(*file_, handle);
  uint32_t imported = 0;
  ASSERT_EQ(import_bo(*other, fd.get(), &imported), 0);
  EXPECT_EQ(get(*other, imported, &modifier), 0);
  EXPECT_EQ(modifier, kModifierTTiled);

  EXPECT_EQ(get(*file_, 0, &modifier), ENOENT);
  set.handle = 99;
  EXPECT_EQ(ioctl(kSetTiling, set), ENOENT);
  set = {.handle = handle, .flags = 1, .modifier = 0};
  EXPECT_EQ(ioctl(kSetTiling, set), EINVAL);
  EXPECT_EQ(ioctl(kGetTiling, set), EINVAL);
  set = {.handle = handle, .flags = 0, .modifier = 0xd0d0d0d0};
  EXPECT_EQ(ioctl(kSetTiling, set), EINVAL);
  EXPECT_EQ(ioctl(kGetTiling, set), EINVAL);
}

// Who names no modifier gets what the BO has been set to, also by ADDFB (vc4-abi.md 7.4).
/// As a compositor may look at a buffer only when the client has closed its handle.
TEST_F(DeviceTest, TilingIsKnownWhileNobodyHasAHandle) {
  for (const uint64_t modifier : {kModifierTTiled, kModifierLinear}) {
    const uint32_t handle = create();
    drm::vc4::Tiling set = {.handle = handle, .flags = 0, .modifier = kModifierTTiled};
    EXPECT_EQ(ioctl(kSetTiling, set), 0);
    const UniqueFd fd = export_bo(*file_, handle);
    set.modifier = modifier;
    EXPECT_EQ(ioctl(kSetTiling, set), 0);
    drm::GemClose close = {.handle = handle, .pad = 0};
    ASSERT_EQ(ioctl(kGemClose, close), 0);
    uint32_t imported = 0;
    ASSERT_EQ(import_bo(*file_, fd.get(), &imported), 0);
    drm::vc4::Tiling get = {.handle = imported, .flags = 0, .modifier = 0};
    EXPECT_EQ(ioctl(kGetTiling, get), 0);
    EXPECT_EQ(get.modifier, modifier);
  }
}

TEST_F(DeviceTest, FramebuffersLieAsTheirObject) {
  constexpr uint32_t kAddFb = 0xc01c64ae, kAddFb2 = 0xc06864b8, kGetFb2 = 0xc06864ce;
  constexpr uint32_t kXr24 = 0x34325258, kRg24 = 0x34324752;
  const auto card = open(kMinorVc4);
  const uint32_t handle = create(*card, 4 * 32 * 32);
  const auto request = [&](uint32_t format, uint32_t flags) {
    drm::FbCmd2 args = {};
    args.width = args.height = 32;
    args.pixel_format = format;
    args.flags = flags;
    args.handles[0] = handle;
    args.pitches[0] = 4 * 32;
    return args;
  };
  const auto modifier_of = [&](uint32_t id) {
    drm::FbCmd2 args = {};
    args.fb_id = id;
    EXPECT_EQ(ioctl(*card, kGetFb2, args), 0);
    return args.modifier[0];
  };
  const auto add = [&](drm::FbCmd2 args) {
    EXPECT_EQ(ioctl(*card, kAddFb2, args), 0);
    return modifier_of(args.fb_id);
  };
  const auto add_by_depth = [&] {
    drm::FbCmd args = {};
    args.width = args.height = 32;
    args.pitch = 4 * 32;
    args.bpp = 32;
    args.depth = 24;
    args.handle = handle;
    EXPECT_EQ(ioctl(*card, kAddFb, args), 0);
    return modifier_of(args.fb_id);
  };
  EXPECT_EQ(add(request(kXr24, 0)), kModifierLinear);
  EXPECT_EQ(add_by_depth(), kModifierLinear);
  drm::vc4::Tiling tiling = {.handle = handle, .flags = 0, .modifier = kModifierTTiled};
  ASSERT_EQ(ioctl(*card, kSetTiling, tiling), 0);
  EXPECT_EQ(add(request(kXr24, 0)), kModifierTTiled);
  EXPECT_EQ(add_by_depth(), kModifierTTiled);
  EXPECT_EQ(add(request(kXr24, drm::kFbModifiers)), kModifierLinear);  // who names it is taken at the word
  drm::FbCmd2 args = request(kRg24, 0);                                // which is not shown tiled
  EXPECT_EQ(ioctl(*card, kAddFb2, args), EINVAL);
  args = request(kXr24, 0);
  args.handles[0] = 99;
  EXPECT_EQ(ioctl(*card, kAddFb2, args), ENOENT);
  args = request(kXr24, 0);
  args.modifier[0] = kModifierTTiled;  // without the flag
  EXPECT_EQ(ioctl(*card, kAddFb2, args), EINVAL);
}

TEST_F(DeviceTest, FramebuffersAreNoLargerThanTheScalerShows) {
  const auto card = open(kMinorVc4);
  drm::CardResources resources = {};
  EXPECT_EQ(ioctl(*card, 0xc04064a0, resources), 0);
  EXPECT_EQ(resources.max_width, 2048u);
  EXPECT_EQ(resources.max_height, 2048u);
  drm::FbCmd2 args = {};
  args.width = 2049;
  args.height = 1;
  args.pixel_format = 0x34325258;
  args.handles[0] = create(*card, 4 * 2049);
  args.pitches[0] = 4 * 2049;
  EXPECT_EQ(ioctl(*card, 0xc06864b8, args), EINVAL);
  args.width = 2048;
  EXPECT_EQ(ioctl(*card, 0xc06864b8, args), 0);
}

TEST_F(DeviceTest, ChecksLabels) {
  const uint32_t handle = create();
  const char text[] = "BCL";
  const auto label = [&](uint32_t bo, uint32_t len, uint64_t name) {
    LabelBo args = {.handle = bo, .len = len, .name = name};
    return ioctl(kLabelBo, args);
  };
  const uint64_t name = memory_.place(text, sizeof text);
  EXPECT_EQ(label(handle, 3, name), 0);
  EXPECT_EQ(label(handle, 100, name), 0);
  EXPECT_EQ(label(handle, 2, name), EINVAL);
  EXPECT_EQ(label(handle, 0, name), EINVAL);
  EXPECT_EQ(label(handle, 1000, 0), EFAULT);
  EXPECT_EQ(label(99, 3, name), ENOENT);
}

// What vcsm-cma gives is of the same memory, and no BO of the driver's.
TEST_F(DeviceTest, SharesItsMemoryWithOthers) {
  ContiguousMemory& memory = *device_of(kernel_).memory();
  const std::string before = memory.bo_stats();
  const uint64_t used = memory.used();
  {
    ContiguousMemory::Piece piece;
    EXPECT_EQ(memory.take(1 << 20, &piece), 0);
    EXPECT_EQ(memory.used(), used + (1 << 20));
    EXPECT_EQ(memory.bo_stats(), before);
    ContiguousMemory::Piece too_much;
    EXPECT_EQ(memory.take(uint64_t{1} << 32, &too_much), ENOMEM);
  }
  EXPECT_EQ(memory.used(), used);
}

// debugfs, bo_stats: vc4-abi.md 2.8.
TEST_F(DeviceTest, CountsBuffersByLabel) {
  const auto stats = [&] { return device_of(kernel_).memory()->bo_stats(); };
  const std::string binner = "                        binner:  16384kb BOs (1)\n";
  EXPECT_EQ(stats(), "");
  const uint32_t first = create(), second = create(8192);
  EXPECT_EQ(stats(), "                           V3D:     12kb BOs (2)\n" + binner);
  const char text[] = "a texture", own[] = "V3D";
  LabelBo args = {.handle = second, .len = sizeof text, .name = memory_.place(text, sizeof text)};
  EXPECT_EQ(ioctl(kLabelBo, args), 0);
  EXPECT_EQ(stats(), "                           V3D:      4kb BOs (1)\n" + binner +
                         "                     a texture:      8kb BOs (1)\n");
  EXPECT_EQ(retained(first, kDontNeed), 1u);
  EXPECT_THAT(stats(), testing::EndsWith("            userspace BO cache:      4kb BOs (1)\n"));
  args.name = memory_.place(own, sizeof own);
  EXPECT_EQ(ioctl(kLabelBo, args), 0);
  file_->close_handle(first);
  EXPECT_EQ(stats(), "                           V3D:      8kb BOs (1)\n" + binner);
}

// Of which nobody keeps others from the memory while all are listed.
TEST_F(DeviceTest, CountsAnyNumberOfLabels) {
  constexpr uint32_t kLabels = 600;
  for (uint32_t n = 0; n < kLabels; ++n) {
    const uint32_t handle = create();
    const std::string text = "label " + std::to_string(1000 + n);
    LabelBo args = {.handle = handle, .len = 11, .name = memory_.place(text.c_str(), text.size() + 1)};
    ASSERT_EQ(ioctl(kLabelBo, args), 0);
    if (n % 2) {
      EXPECT_EQ(retained(handle, kDontNeed), 1u);
    }
  }
  std::istringstream lines(device_of(kernel_).memory()->bo_stats());
  uint32_t next = 1000;
  std::string line, last;
  for (; std::getline(lines, line); last = line) {
    if (line.find("label ") == std::string::npos) continue;
    EXPECT_THAT(line, testing::HasSubstr("label " + std::to_string(next++) + ":      4kb BOs (1)"));
  }
  EXPECT_EQ(next, 1000 + kLabels);
  EXPECT_EQ(last, "            userspace BO cache:   1200kb BOs (300)");
}

TEST_F(DeviceTest, CountsWhatIsPurged) {
  const uint32_t handle = create(8 << 20);
  EXPECT_EQ(retained(handle, kDontNeed), 1u);
  create(8 << 20);
  create();  // for which there is room only without the first
  EXPECT_THAT(device_of(kernel_).memory()->bo_stats(),
              testing::EndsWith("               total purged BO:   8192kb BOs (1)\n"));
}

TEST_F(DeviceTest, MemoryIsThatOfTheBoard) {
  // Half of it is the binner's.
  std::vector<uint32_t> handles;
  drm::vc4::CreateBo args = {.size = 4 << 20, .flags = 0, .handle = 0, .pad = 0};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(ioctl(drm::vc4::kCreateBo, args), 0);
    handles.push_back(args.handle);
  }
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, args), ENOMEM);
  EXPECT_EQ(ioctl(*open(kMinorV3dRender), drm::vc4::kCreateBo, args), ENOMEM);  // of all files
  drm::GemClose close = {.handle = handles[0], .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, close), 0);
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, args), 0);
}

TEST_F(DeviceTest, PurgesWhatIsNotNeeded) {
  constexpr uint32_t kSize = 4 << 20;
  std::vector<uint32_t> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(create(kSize));
  for (const uint32_t handle : handles) bo_memory(handle)[5] = 0xaa;
  EXPECT_EQ(retained(handles[0], kDontNeed), 1u);
  EXPECT_EQ(retained(handles[1], kDontNeed), 1u);
  EXPECT_EQ(retained(handles[1], kWillNeed), 1u);
  EXPECT_EQ(retained(handles[2], kDontNeed), 1u);
  create(kSize);
  EXPECT_EQ(bo_memory(handles[0])[5], 0);
  EXPECT_EQ(bo_memory(handles[1])[5], 0xaa);
  EXPECT_EQ(bo_memory(handles[2])[5], 0);  // all of them at once
  EXPECT_EQ(retained(handles[0], kWillNeed), 0u);
  EXPECT_EQ(retained(handles[0], kWillNeed), 0u);
  EXPECT_EQ(retained(handles[1], kWillNeed), 1u);
  // Neither mapped, nor shared, nor rendered to.
  EXPECT_EQ(mmap_node(*file_, handles[0], PROT_READ), EINVAL);
  drm::PrimeHandle fd = {.handle = handles[0], .flags = 0, .fd = -1};
  EXPECT_EQ(ioctl(kPrimeHandleToFd, fd), EINVAL);
  auto args = clear({handles[0]});
  EXPECT_EQ(submit(args), EINVAL);
  // Its memory is not given back twice.
  drm::GemClose close = {.handle = handles[0], .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, close), 0);
  create(kSize);
  drm::vc4::CreateBo more = {.size = 4096, .flags = 0, .handle = 0, .pad = 0};
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, more), ENOMEM);
}

TEST_F(DeviceTest, KeepsWhatJobsUseAndWhatWasShared) {
  constexpr uint32_t kSize = 4 << 20;
  const uint32_t used = create(kSize), shared = create(kSize);
  bo_memory(used)[0] = bo_memory(shared)[0] = 0xaa;
  auto args = clear({used});
  ASSERT_EQ(submit(args), 0);
  EXPECT_EQ(retained(used, kDontNeed), 1u);
  ASSERT_EQ(submit(args), 0);  // as another job uses it, its state does not count
  export_bo(*file_, shared);
  EXPECT_EQ(retained(shared, kDontNeed), 1u);
  drm::vc4::CreateBo large = {.size = 3 * kSize, .flags = 0, .handle = 0, .pad = 0};
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, large), ENOMEM);
  EXPECT_EQ(bo_memory(used)[0], 0xaa);
  EXPECT_EQ(bo_memory(shared)[0], 0xaa);
  host_.run_all();
  EXPECT_EQ(ioctl(drm::vc4::kCreateBo, large), 0);
  EXPECT_EQ(bo_memory(used)[0], 0);
  EXPECT_EQ(bo_memory(shared)[0], 0xaa);
}

// An export is a use without an end, so that advice of whoever has the other handle changes nothing for the
// first (Linux vc4_bo.c, vc4_prime_export).
TEST_F(DeviceTest, AdviceOfOthersTakesNothingFromWhoSharedIt) {
  const uint32_t handle = create();
  const auto other = open(kMinorV3dRender);
  uint32_t imported = 0;
  ASSERT_EQ(import_bo(*other, export_bo(*file_, handle).get(), &imported), 0);
  GemMadvise advice = {.handle = imported, .madv = kDontNeed, .retained = 0, .pad = 0};
  ASSERT_EQ(ioctl(*other, kGemMadvise, advice), 0);
  auto args = clear({handle});
  EXPECT_EQ(submit(args), 0);
}

TEST_F(DeviceTest, ChecksAdvice) {
  uint32_t retained;
  EXPECT_EQ(advise(99, kWillNeed, &retained), ENOENT);
  const uint32_t handle = create();
  EXPECT_EQ(advise(handle, 2, &retained), EINVAL);
  GemMadvise args = {.handle = handle, .madv = 0, .retained = 0, .pad = 1};
  EXPECT_EQ(ioctl(kGemMadvise, args), EINVAL);
}

TEST_F(DeviceTest, DumbBuffersTakeMemoryToo) {
  const auto card = open(kMinorVc4);
  create(*card);
  drm::CreateDumb args = {
      .height = 1024, .width = 4096, .bpp = 32, .flags = 0, .handle = 0, .pitch = 0, .size = 0};
  EXPECT_EQ(ioctl(*card, kCreateDumb, args), ENOMEM);
  EXPECT_EQ(card->find_bo(2), nullptr);
  args.height = 512;
  EXPECT_EQ(ioctl(*card, kCreateDumb, args), 0);
  GemMadvise advice = {.handle = args.handle, .madv = kDontNeed, .retained = 0, .pad = 0};
  EXPECT_EQ(ioctl(*card, kGemMadvise, advice), 0);
  EXPECT_EQ(advice.retained, 1u);
}

TEST_F(DeviceTest, PerfmonsCountWhatTheirJobsDo) {
  drm::vc4::PerfmonCreate create_args = {};
  create_args.ncounters = 2;
  create_args.events[0] = 9;  // quads written to colours
  create_args.events[1] = 29;
  ASSERT_EQ(ioctl(drm::vc4::kPerfmonCreate, create_args), 0);
  gpu_.counts[perf::kTlbQuadsWritten] = 5;
  auto args = clear({create()});
  args.perfmonid = create_args.id;
  for (int jobs = 0; jobs < 2; ++jobs) ASSERT_EQ(submit(args), 0);
  host_.run_all();
  const uint64_t values = memory_.place(std::vector<uint64_t>{99, 99});
  drm::vc4::PerfmonGetValues get = {.id = create_args.id, .unused = 0, .values_ptr = values};
  ASSERT_EQ(ioctl(drm::vc4::kPerfmonGetValues, get), 0);
  uint64_t got[2];
  ASSERT_TRUE(memory_.read(values, got, sizeof got));
  EXPECT_EQ(got[0], 10u);
  EXPECT_EQ(got[1], 0u);
}

class CountingWatcher : public Watcher {
 public:
  void notify() override { ++notified; }
  int notified = 0;
};

// There may be any number that wait for jobs of numbers that nobody has yet.
TEST(Vc4Seqnos, WhoWaitsForALaterJobHearsOfNoOther) {
  Device device(kBoardMemory);
  const auto next = std::make_shared<CountingWatcher>(), later = std::make_shared<CountingWatcher>(),
             gone = std::make_shared<CountingWatcher>();
  EXPECT_TRUE(device.watch(next, 1));
  EXPECT_TRUE(device.watch(later, 3));
  EXPECT_TRUE(device.watch(gone, 3));
  EXPECT_TRUE(device.watch(later, UINT64_MAX));
  device.unwatch(gone.get(), 3);
  device.unwatch(gone.get(), 7);
  for (const int notified : {0, 0, 1}) {
    device.issue_seqno();
    EXPECT_EQ(next->notified, 1);
    EXPECT_EQ(later->notified, notified);
  }
  EXPECT_EQ(gone->notified, 0);
  EXPECT_FALSE(device.watch(next, 3));
}

TEST_F(DeviceTest, CreatesPerfmons) {
  const auto create = [&](const std::vector<uint8_t>& events, uint32_t count, uint32_t* id) {
    drm::vc4::PerfmonCreate args = {};
    args.ncounters = count;
    std::copy(events.begin(), events.end(), args.events);
    const int error = ioctl(drm::vc4::kPerfmonCreate, args);
    *id = args.id;
    return error;
  };
  uint32_t id;
  EXPECT_EQ(create({}, 0, &id), EINVAL);
  EXPECT_EQ(create({}, 17, &id), EINVAL);
  EXPECT_EQ(create({30}, 1, &id), EINVAL);
  EXPECT_EQ(create({29, 30}, 1, &id), 0);
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(create({}, 16, &id), 0);
  EXPECT_EQ(id, 2u);
  const uint64_t values = memory_.place(std::vector<uint64_t>(16, 5));
  drm::vc4::PerfmonGetValues get = {.id = 1, .unused = 9, .values_ptr = values};
  EXPECT_EQ(ioctl(drm::vc4::kPerfmonGetValues, get), 0);
  EXPECT_EQ(memory_.at<uint64_t>(values), 0u);
  EXPECT_EQ(memory_.at<uint64_t>(values + 8), 5u);  // one counter
  get.values_ptr = 16;
  EXPECT_EQ(ioctl(drm::vc4::kPerfmonGetValues, get), EFAULT);
  drm::vc4::PerfmonDestroy destroy = {.id = 1};
  EXPECT_EQ(ioctl(drm::vc4::kPerfmonDestroy, destroy), 0);
  EXPECT_EQ(ioctl(drm::vc4::kPerfmonDestroy, destroy), EINVAL);
  EXPECT_EQ(ioctl(drm::vc4::kPerfmonGetValues, get), EINVAL);
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
