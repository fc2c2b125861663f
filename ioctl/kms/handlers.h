/// These are the handlers of the ioctls that set modes, which DRM's core has for drivers with displays. All
/// return 0 or a positive errno.
#pragma once

#include <cstdint>
#include <vector>

#include "ioctl/abi/mode.h"
#include "ioctl/core/call.h"
#include "ioctl/display/objects.h"
#include "ioctl/display/state.h"

namespace v3d::ioctl {

// dumb.cc
int create_dumb(Call& call, drm::CreateDumb& args);
int map_dumb(Call& call, drm::MapDumb& args);
int destroy_dumb(Call& call, drm::DestroyDumb& args);

// resources.cc
int get_resources(Call& call, drm::CardResources& args);
int get_crtc(Call& call, drm::Crtc& args);
int get_encoder(Call& call, drm::Encoder& args);
int get_connector(Call& call, drm::Connector& args);
int get_plane_resources(Call& call, drm::PlaneResources& args);
int get_plane(Call& call, drm::GetPlane& args);

// properties.cc
int get_property(Call& call, drm::GetProperty& args);
int get_property_blob(Call& call, drm::GetBlob& args);
int get_object_properties(Call& call, drm::ObjectProperties& args);
int set_property(Call& call, drm::SetConnectorProperty& args);
int set_object_property(Call& call, drm::SetObjectProperty& args);
int create_blob(Call& call, drm::CreateBlob& args);
int destroy_blob(Call& call, drm::DestroyBlob& args);

// framebuffers.cc
int add_fb(Call& call, drm::FbCmd& args);
int add_fb2(Call& call, drm::FbCmd2& args);
int rm_fb(Call& call, drm::FbId& args);
int close_fb(Call& call, drm::CloseFb& args);
int get_fb(Call& call, drm::FbCmd& args);
int get_fb2(Call& call, drm::FbCmd2& args);
int dirty_fb(Call& call, drm::FbDirty& args);
/// Of framebuffers in each direction: the first scaler has less than those of a Pi 4 and 5.
uint32_t max_pixels(const Call& call);
/// ADDFB as ADDFB2. False: there is no format of these bits and depth.
bool full_request(const drm::FbCmd& args, drm::FbCmd2* full);
/// @param owned  the file has it, and it has an id; else it lives as long as it is shown
int make_framebuffer(Call& call, const drm::FbCmd2& args, kms::FramebufferPtr* made, bool owned);

// legacy.cc
int set_crtc(Call& call, drm::Crtc& args);
int page_flip(Call& call, drm::PageFlip& args);
int set_plane(Call& call, drm::SetPlane& args);
int cursor(Call& call, drm::Cursor& args);
int cursor2(Call& call, drm::Cursor2& args);
int get_gamma(Call& call, drm::CrtcLut& args);
int set_gamma(Call& call, drm::CrtcLut& args);

// leases.cc
int create_lease(Call& call, drm::CreateLease& args);
int list_lessees(Call& call, drm::LeaseList& args);
int get_lease(Call& call, drm::LeaseList& args);
int revoke_lease(Call& call, drm::RevokeLease& args);
/// kms::find_object() of what the file's master holds; null for what is lent to others' lessees alone.
const kms::Object* find_held_object(const Call& call, uint32_t id, uint32_t type);
/// Ids of all of a type, in the order in which the kernel numbers them.
std::vector<uint32_t> held_objects(const Call& call, uint32_t type);

// atomic.cc
int atomic(Call& call, drm::Atomic& args);

// vblank.cc
int wait_vblank(Call& call, drm::WaitVblank& args);
int crtc_get_sequence(Call& call, drm::CrtcGetSequence& args);
int crtc_queue_sequence(Call& call, drm::CrtcQueueSequence& args);

}  // namespace v3d::ioctl
