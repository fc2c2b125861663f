// What DRM's core gives every driver: each row of drm_ioctls[] (Linux 7.1, drivers/gpu/drm/drm_ioctl.c),
// asked with an argument of zeros by those who may and those who may not.
#include <cerrno>
#include <map>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

constexpr int kNone = 0, kNoent = ENOENT, kInval = EINVAL, kAcces = EACCES, kOpnot = EOPNOTSUPP,
              kNosys = ENOSYS;

/// The errno on a render node, for somebody on the vc4 node who is not its master nor authenticated, for its
/// master with CAP_SYS_ADMIN, and for that of the v3d node.
struct Row {
  uint32_t request;
  const char* name;
  int render, other, master, v3d;
};
constexpr Row kRows[] = {
    {0xc0406400, "VERSION", kNone, kNone, kNone, kNone},
    {0xc0106401, "GET_UNIQUE", kAcces, kNone, kNone, kNone},
    {0x80046402, "GET_MAGIC", kAcces, kNone, kNone, kNone},
    {0xc0286405, "GET_CLIENT", kAcces, kNone, kNone, kNone},
    {0x80f86406, "GET_STATS", kAcces, kNone, kNone, kNone},
    {0xc0106407, "SET_VERSION", kAcces, kAcces, kInval, kInval},  // of interface 0.0
    {0x40086409, "GEM_CLOSE", kInval, kInval, kInval, kInval},
    {0xc008640a, "GEM_FLINK", kAcces, kAcces, kNoent, kNoent},
    {0xc010640b, "GEM_OPEN", kAcces, kAcces, kNoent, kNoent},
    {0xc010640c, "GET_CAP", kOpnot, kInval, kInval, kOpnot},
    {0x4010640d, "SET_CLIENT_CAP", kAcces, kInval, kInval, kOpnot},
    {0x40106410, "SET_UNIQUE", kAcces, kAcces, kInval, kInval},
    {0x40046411, "AUTH_MAGIC", kAcces, kAcces, kInval, kInval},
    {0xc0046412, "BLOCK", kAcces, kAcces, kNone, kNone},
    {0xc0046413, "UNBLOCK", kAcces, kAcces, kNone, kNone},
    {0x0000641e, "SET_MASTER", kAcces, kAcces, kNone, kNone},
    {0x0000641f, "DROP_MASTER", kAcces, kAcces, kNone, kNone},
    {0xc0046427, "ADD_DRAW", kAcces, kAcces, kNone, kNone},
    {0xc0046428, "RM_DRAW", kAcces, kAcces, kNone, kNone},
    {0x4008642c, "FINISH", kAcces, kAcces, kNone, kNone},
    {0xc00c642d, "PRIME_HANDLE_TO_FD", kNoent, kNoent, kNoent, kNoent},
    {0xc00c642e, "PRIME_FD_TO_HANDLE", kInval, kInval, kInval, kInval},  // of a descriptor that is no dma-buf
    {0xc018643a, "WAIT_VBLANK", kAcces, kNone, kNone, kOpnot},           // of a sequence that is past
    {0xc018643b, "CRTC_GET_SEQUENCE", kAcces, kNoent, kNoent, kOpnot},
    {0xc018643c, "CRTC_QUEUE_SEQUENCE", kAcces, kNoent, kNoent, kOpnot},
    {0x4018643f, "UPDATE_DRAW", kAcces, kAcces, kNone, kNone},
    {0xc04064a0, "MODE_GETRESOURCES", kAcces, kNone, kNone, kOpnot},
    {0xc06864a1, "MODE_GETCRTC", kAcces, kNoent, kNoent, kOpnot},
    {0xc06864a2, "MODE_SETCRTC", kAcces, kAcces, kNoent, kOpnot},
    {0xc01c64a3, "MODE_CURSOR", kAcces, kAcces, kInval, kOpnot},
    {0xc02064a4, "MODE_GETGAMMA", kAcces, kNoent, kNoent, kOpnot},
    {0xc02064a5, "MODE_SETGAMMA", kAcces, kAcces, kNoent, kOpnot},
    {0xc01464a6, "MODE_GETENCODER", kAcces, kNoent, kNoent, kOpnot},
    {0xc05064a7, "MODE_GETCONNECTOR", kAcces, kNoent, kNoent, kOpnot},
    {0xc04864a8, "MODE_ATTACHMODE", kAcces, kAcces, kNone, kNone},
    {0xc04864a9, "MODE_DETACHMODE", kAcces, kAcces, kNone, kNone},
    {0xc04064aa, "MODE_GETPROPERTY", kAcces, kNoent, kNoent, kOpnot},
    {0xc01064ab, "MODE_SETPROPERTY", kAcces, kAcces, kNoent, kOpnot},
    {0xc01064ac, "MODE_GETPROPBLOB", kAcces, kNoent, kNoent, kOpnot},
    {0xc01c64ad, "MODE_GETFB", kAcces, kNoent, kNoent, kOpnot},
    {0xc01c64ae, "MODE_ADDFB", kAcces, kInval, kInval, kOpnot},
    {0xc00464af, "MODE_RMFB", kAcces, kNoent, kNoent, kOpnot},
    {0xc01864b0, "MODE_PAGE_FLIP", kAcces, kAcces, kNoent, kOpnot},
    {0xc01864b1, "MODE_DIRTYFB", kAcces, kAcces, kNoent, kOpnot},
    {0xc02064b2, "MODE_CREATE_DUMB", kAcces, kInval, kInval, kNosys},
    {0xc01064b3, "MODE_MAP_DUMB", kAcces, kNoent, kNoent, kNosys},
    {0xc00464b4, "MODE_DESTROY_DUMB", kAcces, kInval, kInval, kNosys},
    {0xc01064b5, "MODE_GETPLANERESOURCES", kAcces, kNone, kNone, kOpnot},
    {0xc02064b6, "MODE_GETPLANE", kAcces, kNoent, kNoent, kOpnot},
    {0xc03064b7, "MODE_SETPLANE", kAcces, kAcces, kNoent, kOpnot},
    {0xc06864b8, "MODE_ADDFB2", kAcces, kInval, kInval, kOpnot},
    {0xc02064b9, "MODE_OBJ_GETPROPERTIES", kAcces, kNoent, kNoent, kOpnot},
    {0xc01864ba, "MODE_OBJ_SETPROPERTY", kAcces, kAcces, kNoent, kOpnot},
    {0xc02464bb, "MODE_CURSOR2", kAcces, kAcces, kInval, kOpnot},
    {0xc03864bc, "MODE_ATOMIC", kAcces, kAcces, kInval, kOpnot},  // without the capability
    {0xc01064bd, "MODE_CREATEPROPBLOB", kAcces, kInval, kInval, kOpnot},
    {0xc00464be, "MODE_DESTROYPROPBLOB", kAcces, kNoent, kNoent, kOpnot},
    {0xc00864bf, "SYNCOBJ_CREATE", kNone, kOpnot, kOpnot, kNone},
    {0xc00864c0, "SYNCOBJ_DESTROY", kInval, kOpnot, kOpnot, kInval},
    {0xc01864c1, "SYNCOBJ_HANDLE_TO_FD", kInval, kOpnot, kOpnot, kInval},
    {0xc01864c2, "SYNCOBJ_FD_TO_HANDLE", kInval, kOpnot, kOpnot, kInval},
    {0xc02864c3, "SYNCOBJ_WAIT", kNone, kOpnot, kOpnot, kNone},
    {0xc01064c4, "SYNCOBJ_RESET", kInval, kOpnot, kOpnot, kInval},
    {0xc01064c5, "SYNCOBJ_SIGNAL", kInval, kOpnot, kOpnot, kInval},
    {0xc01864c6, "MODE_CREATE_LEASE", kAcces, kAcces, kNone, kOpnot},  // of no objects
    {0xc01064c7, "MODE_LIST_LESSEES", kAcces, kAcces, kNone, kOpnot},
    {0xc01064c8, "MODE_GET_LEASE", kAcces, kAcces, kNone, kOpnot},
    {0xc00464c9, "MODE_REVOKE_LEASE", kAcces, kAcces, kNoent, kOpnot},
    // Neither driver has DRIVER_SYNCOBJ_TIMELINE.
    {0xc03064ca, "SYNCOBJ_TIMELINE_WAIT", kOpnot, kOpnot, kOpnot, kOpnot},
    {0xc01864cb, "SYNCOBJ_QUERY", kOpnot, kOpnot, kOpnot, kOpnot},
    {0xc02064cc, "SYNCOBJ_TRANSFER", kOpnot, kOpnot, kOpnot, kOpnot},
    {0xc01864cd, "SYNCOBJ_TIMELINE_SIGNAL", kOpnot, kOpnot, kOpnot, kOpnot},
    {0xc06864ce, "MODE_GETFB2", kAcces, kNoent, kNoent, kOpnot},
    {0xc01864cf, "SYNCOBJ_EVENTFD", kOpnot, kOpnot, kOpnot, kOpnot},
    {0xc00864d0, "MODE_CLOSEFB", kAcces, kNoent, kNoent, kOpnot},
    {0xc01064d1, "SET_CLIENT_NAME", kNone, kNone, kNone, kNone},
    {0xc00864d2, "GEM_CHANGE_HANDLE", kInval, kInval, kInval, kInval},
};

class CoreIoctlTest : public IoctlTest {
 protected:
  int ask(File& file, uint32_t request) {
    std::vector<uint8_t> zeros(drm::request_size(request));
    return raw_ioctl(file, request, &zeros);
  }
};

TEST_F(CoreIoctlTest, EachAnswersAsTheKernelDoes) {
  for (const Row& row : kRows) {
    // Anew for each: some of them change who is master.
    const auto v3d = open(kMinorV3d, true), vc4 = open(kMinorVc4, true), other = open(kMinorVc4);
    EXPECT_EQ(ask(*file_, row.request), row.render) << row.name;
    EXPECT_EQ(ask(*other, row.request), row.other) << row.name;
    EXPECT_EQ(ask(*vc4, row.request), row.master) << row.name;
    EXPECT_EQ(ask(*v3d, row.request), row.v3d) << row.name;
    EXPECT_EQ(request_name(*vc4, row.request), row.name);
    host_.given.clear();
  }
}

TEST_F(CoreIoctlTest, ThereAreNoOthers) {
  std::map<uint32_t, const char*> known;
  for (const Row& row : kRows) known[drm::request_nr(row.request)] = row.name;
  const auto vc4 = open(kMinorVc4, true);
  for (uint32_t nr = 0; nr < 256; ++nr)
    if (!known.contains(nr)) {
      EXPECT_EQ(ask(*vc4, 0xc0086400 | nr), EINVAL) << nr;
    }
}

}  // namespace
}  // namespace v3d::ioctl::test
