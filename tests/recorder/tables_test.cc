/// What libv3drec.so states again, since boards have it without the rest of v3demu, is what stands there.

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

#include "daemon/capture.h"
#include "gpu/cle/packet_table.h"
#include "gpu/cle/vc4_packet_table.h"
#include "ioctl/abi/core.h"
#include "ioctl/abi/mode.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"
#include "recorder/v3drec.h"

namespace v3d {
namespace {

TEST(RecorderTables, PacketsAreAsLong) {
  std::set<uint8_t> known;
  for (const cle::PacketInfo& packet : cle::packet_table::kPackets) {
    const auto opcode = static_cast<uint8_t>(packet.opcode);
    if (opcode >= std::size(packet_bytes) || packet_bytes[opcode] == 0) continue;
    known.insert(opcode);
    const bool is_of_42_alone = packet.generations == chip::set_of(chip::Generation::k42);
    const uint32_t more = opcode == PACKET_CLEAR_TILE_BUFFERS && is_of_42_alone;
    EXPECT_EQ(packet_bytes[opcode] + more, packet.length) << packet.name;
  }
  for (size_t opcode = 0; opcode < std::size(packet_bytes); ++opcode)
    EXPECT_TRUE(packet_bytes[opcode] == 0 || known.contains(static_cast<uint8_t>(opcode))) << opcode;
}

// All that the kernel lets through, which are one more than the chip has.
TEST(RecorderTables, PacketsOfVc4AreAsLong) {
  constexpr uint8_t kGemHandles = 254;
  EXPECT_EQ(int{VC4_PACKET_GEM_HANDLES}, kGemHandles);
  for (const auto& [opcode, bytes] : vc4_packets) {
    if (opcode == kGemHandles) continue;
    const cle::vc4_table::Row* found = nullptr;
    for (const cle::vc4_table::Row& row : cle::vc4_table::kPackets)
      if (row.number == opcode) found = &row;
    ASSERT_NE(found, nullptr) << int{opcode};
    EXPECT_EQ(bytes, found->info.length) << found->info.name;
  }
}

TEST(RecorderTables, RequestsAreThoseOfTheKernel) {
  using namespace ioctl;
  const auto is = [](uint32_t request, uint32_t number, size_t size) {
    return drm::request_nr(request) == number && drm::request_size(request) == size;
  };
  EXPECT_TRUE(is(drm::request::kVersion, DRM_VERSION, sizeof(drm_version_arg)));
  EXPECT_TRUE(is(drm::request::kGemClose, GEM_CLOSE, sizeof(gem_close)));
  EXPECT_TRUE(is(drm::request::kGemOpen, GEM_OPEN, sizeof(gem_open)));
  EXPECT_TRUE(is(drm::request::kPrimeFdToHandle, PRIME_FD_TO_HANDLE, sizeof(prime_handle)));
  EXPECT_TRUE(is(drm::request::kSubmitCl, V3D_SUBMIT_CL, sizeof(v3d_submit_cl)));
  EXPECT_TRUE(is(drm::request::kWaitBo, V3D_WAIT_BO, sizeof(v3d_wait_bo)));
  EXPECT_TRUE(is(drm::request::kCreateBo, V3D_CREATE_BO, sizeof(v3d_create_bo)));
  EXPECT_TRUE(is(drm::request::kMmapBo, V3D_MMAP_BO, sizeof(v3d_mmap_bo)));
  EXPECT_TRUE(is(drm::request::kGetParam, V3D_GET_PARAM, sizeof(v3d_get_param)));
  EXPECT_TRUE(is(drm::request::kGetBoOffset, V3D_GET_BO_OFFSET, sizeof(v3d_get_bo_offset)));
  EXPECT_TRUE(is(drm::request::kSubmitTfu, V3D_SUBMIT_TFU, sizeof(v3d_submit_tfu)));
  EXPECT_TRUE(is(drm::request::kSubmitCsd, V3D_SUBMIT_CSD, sizeof(v3d_submit_csd)));
  EXPECT_TRUE(is(drm::request::kSubmitCpu, V3D_SUBMIT_CPU, sizeof(v3d_submit_cpu)));
  EXPECT_EQ(drm::request_nr(drm::request::kSyncobjWait), uint32_t{SYNCOBJ_WAIT});
}

TEST(RecorderTables, RequestsOfVc4AreThoseOfTheKernel) {
  using namespace ioctl;
  const auto is = [](uint32_t request, uint32_t number, size_t size) {
    return drm::request_nr(request) == number && drm::request_size(request) == size;
  };
  EXPECT_TRUE(is(drm::vc4::kSubmitCl, VC4_SUBMIT_CL, sizeof(vc4_submit_cl)));
  EXPECT_TRUE(is(drm::vc4::kWaitBo, VC4_WAIT_BO, sizeof(v3d_wait_bo)));
  EXPECT_TRUE(is(drm::vc4::kCreateBo, VC4_CREATE_BO, sizeof(vc4_create_bo)));
  EXPECT_TRUE(is(drm::vc4::kMmapBo, VC4_MMAP_BO, sizeof(v3d_mmap_bo)));
  EXPECT_TRUE(is(drm::vc4::kCreateShaderBo, VC4_CREATE_SHADER_BO, sizeof(vc4_create_shader_bo)));
  EXPECT_TRUE(is(drm::vc4::kGetParam, VC4_GET_PARAM, sizeof(v3d_get_param)));
  EXPECT_EQ(sizeof(create_dumb), sizeof(drm::CreateDumb));
  EXPECT_EQ(int{VC4_PARAM_IDENT0}, int{drm::vc4::kParamIdent0});
  EXPECT_EQ(int{VC4_PARAM_IDENT1}, int{drm::vc4::kParamIdent1});
  EXPECT_EQ(uint32_t{VC4_NO_SURFACE}, drm::vc4::kNoSurface);
}

TEST(RecorderTables, ArgumentsLieWhereTheKernelHasThem) {
  using namespace ioctl;
#define EXPECT_PLACE(theirs, ours, member) EXPECT_EQ(offsetof(theirs, member), offsetof(ours, member))
  EXPECT_PLACE(v3d_submit_cl, drm::SubmitCl, bo_handles);
  EXPECT_PLACE(v3d_submit_cl, drm::SubmitCl, flags);
  EXPECT_PLACE(v3d_submit_cl, drm::SubmitCl, extensions);
  EXPECT_PLACE(v3d_submit_tfu, drm::SubmitTfu, bo_handles);
  EXPECT_PLACE(v3d_submit_tfu, drm::SubmitTfu, extensions);
  EXPECT_PLACE(v3d_submit_tfu, drm::SubmitTfu, ioc);
  EXPECT_PLACE(v3d_submit_csd, drm::SubmitCsd, bo_handles);
  EXPECT_PLACE(v3d_submit_csd, drm::SubmitCsd, extensions);
  EXPECT_PLACE(v3d_submit_csd, drm::SubmitCsd, flags);
  EXPECT_PLACE(v3d_multi_sync, drm::MultiSync, in_syncs);
  EXPECT_PLACE(v3d_multi_sync, drm::MultiSync, in_sync_count);
  EXPECT_PLACE(v3d_submit_cpu, drm::SubmitCpu, bo_handle_count);
  EXPECT_PLACE(v3d_submit_cpu, drm::SubmitCpu, flags);
  EXPECT_PLACE(v3d_submit_cpu, drm::SubmitCpu, extensions);
  EXPECT_PLACE(v3d_indirect_csd, drm::IndirectCsd, submit);
  EXPECT_PLACE(v3d_indirect_csd, drm::IndirectCsd, indirect);
  EXPECT_PLACE(v3d_indirect_csd, drm::IndirectCsd, offset);
  EXPECT_PLACE(v3d_indirect_csd, drm::IndirectCsd, wg_size);
  EXPECT_PLACE(v3d_indirect_csd, drm::IndirectCsd, wg_uniform_offsets);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, bo_handle_count);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, width);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, color_write);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, msaa_color_write);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, seqno);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, in_sync);
  EXPECT_PLACE(vc4_submit_cl, drm::vc4::SubmitCl, pad2);
  EXPECT_PLACE(vc4_create_bo, drm::vc4::CreateBo, handle);
  EXPECT_PLACE(vc4_create_shader_bo, drm::vc4::CreateShaderBo, handle);
  EXPECT_PLACE(create_dumb, drm::CreateDumb, handle);
  EXPECT_PLACE(create_dumb, drm::CreateDumb, size);
#undef EXPECT_PLACE
  EXPECT_EQ(sizeof(v3d_multi_sync), sizeof(drm::MultiSync));
  EXPECT_EQ(sizeof(v3d_sem), sizeof(drm::Sem));
  EXPECT_EQ(int{PARAM_HUB_IDENT3}, int{drm::kParamHubIdent3});
  EXPECT_EQ(int{PARAM_CORE0_IDENT0}, int{drm::kParamCore0Ident0});
  EXPECT_EQ(int{PARAM_CORE0_IDENT1}, int{drm::kParamCore0Ident1});
  EXPECT_EQ(int{SUBMIT_EXTENSION}, int{drm::kSubmitExtension});
  EXPECT_EQ(int{EXTENSION_MULTI_SYNC}, int{drm::kExtMultiSync});
  EXPECT_EQ(int{EXTENSION_INDIRECT_CSD}, int{drm::kExtCpuIndirectCsd});
}

TEST(RecorderTables, CapturesAreOfTheNewestFormat) {
  EXPECT_EQ(CAPTURE_FORMAT, daemon::kCaptureFormat);
  EXPECT_EQ(size_t{PAGE}, mmu::kPageSize);
  EXPECT_EQ(uint32_t{JOB_BIN}, uint32_t{daemon::CapturedJob::kBin});
  EXPECT_EQ(uint32_t{JOB_RENDER}, uint32_t{daemon::CapturedJob::kRender});
  EXPECT_EQ(uint32_t{JOB_CSD}, uint32_t{daemon::CapturedJob::kCsd});
  EXPECT_EQ(uint32_t{JOB_TFU}, uint32_t{daemon::CapturedJob::kTfu});
  EXPECT_EQ(sizeof(job_record::words), sizeof(daemon::CapturedJob::words));
  EXPECT_EQ(uint32_t{MOST_PAGES_IN_CHUNK}, daemon::kMostPagesOfChunk);
}

}  // namespace
}  // namespace v3d
