// The dispatcher and the ioctls of every DRM device: drm-abi.md 2.1 to 2.3, 2.8.
#include <cerrno>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class GenericTest : public IoctlTest {};

TEST_F(GenericTest, WrongTypeIsEnotty) {
  std::vector<uint8_t> arg(16);
  EXPECT_EQ(raw_ioctl(*file_, 0xc0106242, &arg), ENOTTY);
  EXPECT_TRUE(arg.empty());
}

TEST_F(GenericTest, NumbersWithoutHandlerAreEinval) {
  for (const uint32_t nr : {0x08u, 0x14u, 0x4eu, 0x9fu, 0xd3u, 0xffu}) {
    std::vector<uint8_t> arg(16);
    EXPECT_EQ(raw_ioctl(*file_, 0xc0106400 | nr, &arg), EINVAL) << nr;
  }
}

TEST_F(GenericTest, SizeAndDirectionDoNotSelect) {
  // CREATE_BO with a shorter argument: what is missing reads as 0, what fits comes back.
  std::vector<uint8_t> arg = {0x00, 0x10, 0x00, 0x00};
  EXPECT_EQ(raw_ioctl(*file_, 0xc0046442, &arg), 0);
  EXPECT_EQ(arg.size(), 4u);
  EXPECT_NE(file_->find_bo(1), nullptr);

  // A longer one: the rest comes back untouched.
  arg.assign(24, 0xaa);
  const drm::CreateBo create = {.size = 1, .flags = 0, .handle = 0, .offset = 0};
  std::memcpy(arg.data(), &create, sizeof create);
  EXPECT_EQ(raw_ioctl(*file_, 0xc0186442, &arg), 0);
  ASSERT_EQ(arg.size(), 24u);
  EXPECT_EQ(arg[8], 2);  // handle
  EXPECT_EQ(arg[20], 0xaa);

  // An argument that the caller does not declare as input reads as 0: size 0.
  arg.assign(16, 1);
  EXPECT_EQ(raw_ioctl(*file_, 0x80106442, &arg), EINVAL);
  // One that it does not declare as output is not copied out.
  std::memcpy(arg.data(), &create, sizeof create);
  EXPECT_EQ(raw_ioctl(*file_, 0x40106442, &arg), 0);
  EXPECT_TRUE(arg.empty());
}

TEST_F(GenericTest, ArgumentIsCopiedOutOnFailure) {
  drm::GetCap cap = {.capability = drm::kCapDumbBuffer, .value = 77};
  EXPECT_EQ(ioctl(kGetCap, cap), EOPNOTSUPP);
  EXPECT_EQ(cap.value, 0u);
}

TEST_F(GenericTest, VersionOfBothDevices) {
  const auto vc4 = open(kMinorVc4);
  for (const auto& [file, name, desc, major] : {std::tuple(file_, "v3d", "Broadcom V3D graphics", 1),
                                                std::tuple(vc4, "vc4", "Broadcom VC4 graphics", 0)}) {
    drm::Version lengths = {};
    ASSERT_EQ(ioctl(*file, kVersion, lengths), 0);
    EXPECT_EQ(lengths.name_len, std::strlen(name));
    EXPECT_EQ(lengths.date_len, 1u);
    EXPECT_EQ(lengths.desc_len, std::strlen(desc));
    EXPECT_EQ(lengths.major, major);
    EXPECT_EQ(lengths.minor, 0);
    drm::Version args = lengths;
    args.name = memory_.place(std::vector<char>(8, 'x'));
    args.date = memory_.place(std::vector<char>(8, 'x'));
    args.desc = memory_.place(std::vector<char>(32, 'x'));
    args.desc_len = 8;  // as much as fits
    ASSERT_EQ(ioctl(*file, kVersion, args), 0);
    EXPECT_EQ(memory_.at<uint32_t>(args.name) & 0xffffff, uint32_t(name[0] | name[1] << 8 | name[2] << 16));
    EXPECT_EQ(memory_.at<char>(args.name + 3), 'x');
    EXPECT_EQ(memory_.at<char>(args.date), '0');
    EXPECT_EQ(memory_.at<char>(args.desc + 7), desc[7]);
    EXPECT_EQ(memory_.at<char>(args.desc + 8), 'x');
    EXPECT_EQ(args.desc_len, std::strlen(desc));
    args.name = 8;
    args.name_len = 3;
    EXPECT_EQ(ioctl(*file, kVersion, args), EFAULT);
  }
}

TEST_F(GenericTest, Capabilities) {
  const struct {
    uint64_t cap;
    int v3d_error;
    uint64_t v3d;
    int vc4_error;
    uint64_t vc4;
  } kCases[] = {
      {1, EOPNOTSUPP, 0, 0, 1},
      {2, EOPNOTSUPP, 0, 0, 1},
      {3, EOPNOTSUPP, 0, 0, 24},
      {4, EOPNOTSUPP, 0, 0, 0},
      {5, 0, 3, 0, 3},
      {6, 0, 1, 0, 1},
      {7, EOPNOTSUPP, 0, 0, 1},
      {8, EOPNOTSUPP, 0, 0, 64},
      {9, EOPNOTSUPP, 0, 0, 64},
      {0x10, EOPNOTSUPP, 0, 0, 1},
      {0x11, EOPNOTSUPP, 0, 0, 0},
      {0x12, EOPNOTSUPP, 0, 0, 1},
      {0x13, 0, 1, 0, 0},
      {0x14, 0, 0, 0, 0},
      {0x15, EOPNOTSUPP, 0, 0, 1},
      {0x16, EOPNOTSUPP, 0, EINVAL, 0},
  };
  const auto vc4 = open(kMinorVc4);
  for (const auto& c : kCases) {
    drm::GetCap args = {.capability = c.cap, .value = 99};
    EXPECT_EQ(ioctl(kGetCap, args), c.v3d_error) << c.cap;
    EXPECT_EQ(args.value, c.v3d) << c.cap;
    args.value = 99;
    EXPECT_EQ(ioctl(*vc4, kGetCap, args), c.vc4_error) << c.cap;
    EXPECT_EQ(args.value, c.vc4) << c.cap;
  }
}

TEST_F(GenericTest, ClientCapabilities) {
  constexpr uint32_t kSetClientCap = 0x4010640d;
  const auto primary = open(kMinorV3d);
  drm::SetClientCap args = {.capability = drm::kClientCapAtomic, .value = 1};
  EXPECT_EQ(ioctl(kSetClientCap, args), EACCES);  // no RENDER_ALLOW
  EXPECT_EQ(ioctl(*primary, kSetClientCap, args), EOPNOTSUPP);
  const auto vc4 = open(kMinorVc4), xorg = open(kMinorVc4, false, "Xorg");
  const struct {
    uint64_t cap, value;
    int error;
  } kCases[] = {{5, 1, EINVAL},  // needs ATOMIC first
                {1, 1, 0},      {1, 2, EINVAL}, {2, 1, 0},          {3, 2, 0},     {3, 3, EINVAL},
                {4, 1, 0},      {5, 1, 0},      {6, 1, EOPNOTSUPP}, {8, 1, EINVAL}};
  for (const auto& c : kCases) {
    args = {c.cap, c.value};
    EXPECT_EQ(ioctl(*vc4, kSetClientCap, args), c.error) << c.cap;
  }
  args = {drm::kClientCapAtomic, 1};
  EXPECT_EQ(ioctl(*xorg, kSetClientCap, args), EOPNOTSUPP);
}

TEST_F(GenericTest, RenderNodesRefuseWhatIsNotForThem) {
  for (const uint32_t request :
       {0xc0106401u, 0x80046402u, 0xc0286405u, 0xc0106407u, 0xc008640au, 0xc010640bu, 0x40046411u,
        0x0000641eu, 0x0000641fu, 0xc04064a0u, 0xc02064b2u, 0xc018643au}) {
    std::vector<uint8_t> arg(drm::request_size(request));
    EXPECT_EQ(raw_ioctl(*file_, request, &arg), EACCES) << std::hex << request;
  }
}

TEST_F(GenericTest, V3dRefusesModeSetting) {
  const auto primary = open(kMinorV3d);
  for (const uint32_t request : {0xc04064a0u, 0xc06864a1u, 0xc06864a2u, 0xc05064a7u, 0xc03864bcu, 0xc018643au,
                                 0xc018643bu, 0xc01864b0u, 0xc06864b8u}) {
    std::vector<uint8_t> arg(drm::request_size(request));
    EXPECT_EQ(raw_ioctl(*primary, request, &arg), EOPNOTSUPP) << std::hex << request;
  }
  // v3d has no dumb_create.
  drm::CreateDumb dumb = {.height = 1, .width = 1, .bpp = 32, .flags = 0, .handle = 0, .pitch = 0, .size = 0};
  EXPECT_EQ(ioctl(*primary, kCreateDumb, dumb), ENOSYS);
}

TEST_F(GenericTest, FirstOpenerIsMasterAndAuthenticated) {
  constexpr uint32_t kAuthMagic = 0x40046411, kGetMagic = 0x80046402;
  const auto master = open(kMinorV3d), other = open(kMinorV3d);
  drm::SubmitCl submit = {};
  EXPECT_EQ(ioctl(*master, kSubmitCl, submit), EINVAL);  // no BOs: got past the permission
  EXPECT_EQ(ioctl(*other, kSubmitCl, submit), EACCES);

  drm::Auth magic = {};
  EXPECT_EQ(ioctl(*master, kAuthMagic, magic), EINVAL);  // magic 0: what drmIsMaster asks
  EXPECT_EQ(ioctl(*other, kAuthMagic, magic), EACCES);
  EXPECT_EQ(ioctl(*other, kGetMagic, magic), 0);
  EXPECT_NE(magic.magic, 0u);
  EXPECT_EQ(ioctl(*master, kAuthMagic, magic), 0);
  EXPECT_EQ(ioctl(*other, kSubmitCl, submit), EINVAL);
  EXPECT_EQ(ioctl(*master, kAuthMagic, magic), EINVAL);  // good for one use
}

TEST_F(GenericTest, AMagicIsForTheMasterOfItsTime) {
  constexpr uint32_t kAuthMagic = 0x40046411, kGetMagic = 0x80046402, kSetMaster = 0x641e,
                     kDropMaster = 0x641f;
  const auto first = open(kMinorVc4), client = open(kMinorVc4);
  drm::Auth magic = {};
  drm::None none;
  ASSERT_EQ(ioctl(*client, kGetMagic, magic), 0);
  ASSERT_EQ(ioctl(*first, kDropMaster, none), 0);
  const auto second = open(kMinorVc4), other = open(kMinorVc4);
  EXPECT_EQ(ioctl(*second, kAuthMagic, magic), EINVAL);
  EXPECT_FALSE(client->authenticated);
  drm::Auth another = {};
  ASSERT_EQ(ioctl(*other, kGetMagic, another), 0);
  EXPECT_EQ(another.magic, magic.magic);  // each master counts anew
  EXPECT_EQ(ioctl(*second, kAuthMagic, another), 0);
  EXPECT_TRUE(other->authenticated);
  ASSERT_EQ(ioctl(*second, kDropMaster, none), 0);
  ASSERT_EQ(ioctl(*first, kSetMaster, none), 0);
  EXPECT_EQ(ioctl(*first, kAuthMagic, magic), 0);
  EXPECT_TRUE(client->authenticated);
}

TEST_F(GenericTest, Mastership) {
  constexpr uint32_t kSetMaster = 0x641e, kDropMaster = 0x641f;
  drm::None none;
  auto first = open(kMinorVc4);
  const auto second = open(kMinorVc4), root = open(kMinorVc4, true);
  EXPECT_EQ(ioctl(*first, kSetMaster, none), 0);
  EXPECT_EQ(ioctl(*second, kSetMaster, none), EACCES);
  EXPECT_EQ(ioctl(*root, kSetMaster, none), EBUSY);
  EXPECT_EQ(ioctl(*root, kDropMaster, none), EINVAL);
  EXPECT_EQ(ioctl(*second, kDropMaster, none), EACCES);
  EXPECT_EQ(ioctl(*first, kDropMaster, none), 0);
  EXPECT_EQ(ioctl(*first, kDropMaster, none), EINVAL);
  EXPECT_EQ(ioctl(*root, kSetMaster, none), 0);
  EXPECT_EQ(ioctl(*first, kSetMaster, none), EBUSY);
  EXPECT_EQ(ioctl(*root, kDropMaster, none), 0);
  EXPECT_EQ(ioctl(*first, kSetMaster, none), 0);  // it was master before
  first.reset();                                  // closing gives it up
  const auto third = open(kMinorVc4);
  EXPECT_EQ(ioctl(*third, kDropMaster, none), 0);
}

TEST_F(GenericTest, AMasterThatIsClosedIsNoneForWhoComesNext) {
  constexpr uint32_t kSetMaster = 0x641e, kDropMaster = 0x641f;
  drm::None none;
  auto first = open(kMinorVc4), copy = first;
  host_.close = [&] {
    if (copy) copy->release();
  };
  const auto second = open(kMinorVc4);  // the host releases `first` no sooner than it is asked to
  EXPECT_EQ(ioctl(*second, kDropMaster, none), 0);
  auto third = open(kMinorVc4);
  copy = third;
  EXPECT_EQ(ioctl(*second, kSetMaster, none), 0);
}

TEST_F(GenericTest, UniqueNameAfterSetVersion) {
  constexpr uint32_t kGetUnique = 0xc0106401, kSetVersion = 0xc0106407;
  const auto primary = open(kMinorV3d);
  drm::Unique unique = {.unique_len = 64, .unique = memory_.place(std::vector<char>(64))};
  EXPECT_EQ(ioctl(*primary, kGetUnique, unique), 0);
  EXPECT_EQ(unique.unique_len, 0u);
  drm::SetVersion version = {.di_major = 1, .di_minor = 5, .dd_major = -1, .dd_minor = -1};
  EXPECT_EQ(ioctl(*primary, kSetVersion, version), EINVAL);
  EXPECT_EQ(version.di_minor, 4);
  EXPECT_EQ(version.dd_major, 1);
  version = {.di_major = 1, .di_minor = 4, .dd_major = -1, .dd_minor = -1};
  EXPECT_EQ(ioctl(*primary, kSetVersion, version), 0);
  unique.unique_len = 64;
  EXPECT_EQ(ioctl(*primary, kGetUnique, unique), 0);
  EXPECT_EQ(unique.unique_len, std::strlen("1002000000.v3d"));
  EXPECT_EQ(memory_.at<char>(unique.unique), '1');
  unique = {.unique_len = 64, .unique = 8};
  EXPECT_EQ(ioctl(*primary, kGetUnique, unique), EFAULT);
}

TEST_F(GenericTest, GetClientDescribesTheCallerOnly) {
  constexpr uint32_t kGetClient = 0xc0286405;
  const auto primary = open(kMinorV3d), other = open(kMinorV3d);
  drm::Client client = {};
  EXPECT_EQ(ioctl(*primary, kGetClient, client), 0);
  EXPECT_EQ(client.auth, 1);
  EXPECT_EQ(client.pid, 1000u);
  EXPECT_EQ(ioctl(*other, kGetClient, client), 0);
  EXPECT_EQ(client.auth, 0);
  client.idx = 1;
  EXPECT_EQ(ioctl(*primary, kGetClient, client), EINVAL);
}

TEST_F(GenericTest, Parameters) {
  const uint64_t kExpected[] = {0x45, 0x81117, 0x1900, 0x700, 0x07443356, 0x81001431, 0xc0078101, 1, 1,
                                1,    1,       1,      1,     93,         1,          0,          0};
  for (uint32_t param = 0; param < 20; ++param) {
    drm::GetParam args = {.param = param, .pad = 0, .value = 0};
    const bool known = param < std::size(kExpected);
    EXPECT_EQ(ioctl(kGetParam, args), known ? 0 : EINVAL) << param;
    if (known) {
      EXPECT_EQ(args.value, kExpected[param]) << param;
    }
    args = {.param = param, .pad = 1, .value = 0};
    EXPECT_EQ(ioctl(kGetParam, args), EINVAL) << param;
    args = {.param = param, .pad = 0, .value = 5};
    EXPECT_EQ(ioctl(kGetParam, args), param >= 7 && known ? 0 : EINVAL) << param;
  }
}

TEST_F(GenericTest, SubmitIsNoDriverIoctlOfVc4) {
  const auto vc4 = open(kMinorVc4);
  std::vector<uint8_t> arg(16);
  EXPECT_EQ(raw_ioctl(*vc4, 0xc0106447, &arg), EINVAL);  // VC4_GET_PARAM, by which Mesa tells old chips
  drm::SyncobjCreate syncobj = {};
  EXPECT_EQ(ioctl(*vc4, kSyncobjCreate, syncobj), EOPNOTSUPP);
}

TEST_F(GenericTest, UnknownNodesCannotBeOpened) {
  EXPECT_EQ(open(2), nullptr);
  EXPECT_EQ(open(129), nullptr);
}

}  // namespace
}  // namespace v3d::ioctl::test
