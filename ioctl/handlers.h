/// These are the handlers that the tables of ioctl_table.cc name. All return 0 or a positive errno.
#pragma once

#include "ioctl/call.h"
#include "ioctl/drm.h"
#include "ioctl/kms/drm_kms.h"
#include "ioctl/kms/state.h"

namespace v3d::ioctl {

// generic.cc
int version(Call& call, drm::Version& args);
int get_unique(Call& call, drm::Unique& args);
int get_magic(Call& call, drm::Auth& args);
int get_client(Call& call, drm::Client& args);
int get_stats(Call& call, drm::Stats& args);
int set_version(Call& call, drm::SetVersion& args);
int get_cap(Call& call, drm::GetCap& args);
int set_client_cap(Call& call, drm::SetClientCap& args);
int set_client_name(Call& call, drm::SetClientName& args);
int auth_magic(Call& call, drm::Auth& args);
int set_master(Call& call, drm::None& args);
int drop_master(Call& call, drm::None& args);

// bo.cc
int gem_close(Call& call, drm::GemClose& args);
int gem_flink(Call& call, drm::GemFlink& args);
int gem_open(Call& call, drm::GemOpen& args);
int create_bo(Call& call, drm::CreateBo& args);
int mmap_bo(Call& call, drm::MmapBo& args);
int get_bo_offset(Call& call, drm::GetBoOffset& args);
int wait_bo(Call& call, drm::WaitBo& args);

// param.cc
int get_param(Call& call, drm::GetParam& args);

// prime.cc
int prime_handle_to_fd(Call& call, drm::PrimeHandle& args);
int prime_fd_to_handle(Call& call, drm::PrimeHandle& args);
/// Before others can get at an object's memory: gives it memory of its own. 0, ENOMEM or EINTR.
int make_shareable(Call& call, Bo& bo);

// syncobj.cc
int syncobj_create(Call& call, drm::SyncobjCreate& args);
int syncobj_destroy(Call& call, drm::SyncobjDestroy& args);
int syncobj_handle_to_fd(Call& call, drm::SyncobjHandle& args);
int syncobj_fd_to_handle(Call& call, drm::SyncobjHandle& args);
int syncobj_wait(Call& call, drm::SyncobjWait& args);
int syncobj_reset(Call& call, drm::SyncobjArray& args);
int syncobj_signal(Call& call, drm::SyncobjArray& args);

// submit_*.cc
int submit_cl(Call& call, drm::SubmitCl& args);
int submit_tfu(Call& call, drm::SubmitTfu& args);
int submit_csd(Call& call, drm::SubmitCsd& args);
int submit_cpu(Call& call, drm::SubmitCpu& args);

// perfmon.cc
int perfmon_create(Call& call, drm::PerfmonCreate& args);
int perfmon_destroy(Call& call, drm::PerfmonDestroy& args);
int perfmon_get_values(Call& call, drm::PerfmonGetValues& args);
int perfmon_get_counter(Call& call, drm::PerfmonGetCounter& args);
int perfmon_set_global(Call& call, drm::PerfmonSetGlobal& args);

// vc4_dumb.cc
int create_dumb(Call& call, drm::CreateDumb& args);
int map_dumb(Call& call, drm::MapDumb& args);
int destroy_dumb(Call& call, drm::DestroyDumb& args);

// kms/resources.cc
int get_resources(Call& call, drm::CardResources& args);
int get_crtc(Call& call, drm::Crtc& args);
int get_encoder(Call& call, drm::Encoder& args);
int get_connector(Call& call, drm::Connector& args);
int get_plane_resources(Call& call, drm::PlaneResources& args);
int get_plane(Call& call, drm::GetPlane& args);

// kms/properties.cc
int get_property(Call& call, drm::GetProperty& args);
int get_property_blob(Call& call, drm::GetBlob& args);
int get_object_properties(Call& call, drm::ObjectProperties& args);
int set_property(Call& call, drm::SetConnectorProperty& args);
int set_object_property(Call& call, drm::SetObjectProperty& args);
int create_blob(Call& call, drm::CreateBlob& args);
int destroy_blob(Call& call, drm::DestroyBlob& args);

// kms/framebuffers.cc
int add_fb(Call& call, drm::FbCmd& args);
int add_fb2(Call& call, drm::FbCmd2& args);
int rm_fb(Call& call, drm::FbId& args);
int close_fb(Call& call, drm::CloseFb& args);
int get_fb(Call& call, drm::FbCmd& args);
int get_fb2(Call& call, drm::FbCmd2& args);
int dirty_fb(Call& call, drm::FbDirty& args);
/// @param owned  the file has it, and it has an id; else it lives as long as it is shown
int make_framebuffer(Call& call, const drm::FbCmd2& args, kms::FramebufferPtr* made, bool owned);

// kms/legacy.cc
int set_crtc(Call& call, drm::Crtc& args);
int page_flip(Call& call, drm::PageFlip& args);
int set_plane(Call& call, drm::SetPlane& args);
int cursor(Call& call, drm::Cursor& args);
int cursor2(Call& call, drm::Cursor2& args);
int get_gamma(Call& call, drm::CrtcLut& args);
int set_gamma(Call& call, drm::CrtcLut& args);

// kms/leases.cc
int create_lease(Call& call, drm::CreateLease& args);
int list_lessees(Call& call, drm::LeaseList& args);
int get_lease(Call& call, drm::LeaseList& args);
int revoke_lease(Call& call, drm::RevokeLease& args);
/// kms::find_object() of what the file's master holds; null for what is lent to others' lessees alone.
const kms::Object* find_held_object(const Call& call, uint32_t id, uint32_t type);
/// Ids of all of a type, in the order in which the kernel numbers them.
std::vector<uint32_t> held_objects(const Call& call, uint32_t type);

// kms/atomic.cc
int atomic(Call& call, drm::Atomic& args);

// kms/vblank.cc
int wait_vblank(Call& call, drm::WaitVblank& args);
int crtc_get_sequence(Call& call, drm::CrtcGetSequence& args);
int crtc_queue_sequence(Call& call, drm::CrtcQueueSequence& args);

}  // namespace v3d::ioctl
