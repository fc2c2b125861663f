/// @file The ioctl tables and the dispatcher (Linux drm_ioctl.c, drm_ioctl and drm_ioctl_permit; the tables
/// are drm_ioctls there and v3d_drm_ioctls in v3d_drv.c).
#include "ioctl/ioctl_table.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"
#include "ioctl/core/handlers.h"
#include "ioctl/kms/handlers.h"
#include "ioctl/v3d/handlers.h"
#include "ioctl/vc4/handlers.h"

namespace v3d::ioctl {
namespace {

namespace request = drm::request;

/// Who may call, as in the kernel's tables.
enum Permission : uint32_t {
  kAuth = 1,          ///< render nodes, or authenticated
  kMaster = 2,        ///< the current master
  kRootOnly = 4,      ///< CAP_SYS_ADMIN
  kRenderAllow = 32,  ///< render nodes too
};

struct Row {
  uint32_t request;  ///< of the kernel
  const char* name;
  uint32_t permissions;
  int (*handler)(Call&, void*);
  bool Abi::*known = nullptr;  ///< only in some versions
};

template <uint32_t kRequest, auto kHandler, typename Args>
constexpr Row make_row(const char* name, uint32_t permissions, int (*)(Call&, Args&)) {
  static_assert(std::is_empty_v<Args> ? drm::request_size(kRequest) == 0
                                      : drm::request_size(kRequest) == sizeof(Args));
  return {kRequest, name, permissions,
          [](Call& call, void* args) { return kHandler(call, *static_cast<Args*>(args)); }, nullptr};
}
template <uint32_t kRequest, auto kHandler>
constexpr Row row(const char* name, uint32_t permissions, bool Abi::*known = nullptr) {
  Row made = make_row<kRequest, kHandler>(name, permissions, kHandler);
  made.known = known;
  return made;
}
constexpr Row fixed_row(uint32_t request, const char* name, uint32_t permissions,
                        int (*handler)(Call&, void*), bool Abi::*known = nullptr) {
  return {request, name, permissions, handler, known};
}

int no_op(Call&, void*) { return 0; }
int invalid(Call&, void*) { return EINVAL; }
int not_supported(Call&, void*) { return EOPNOTSUPP; }

constexpr Row kCoreRows[] = {
    row<request::kVersion, version>("VERSION", kRenderAllow),
    row<request::kGetUnique, get_unique>("GET_UNIQUE", 0),
    row<request::kGetMagic, get_magic>("GET_MAGIC", 0),
    row<request::kGetClient, get_client>("GET_CLIENT", 0),
    row<request::kGetStats, get_stats>("GET_STATS", 0),
    row<request::kSetVersion, set_version>("SET_VERSION", kMaster),
    row<request::kGemClose, gem_close>("GEM_CLOSE", kRenderAllow),
    row<request::kGemFlink, gem_flink>("GEM_FLINK", kAuth),
    row<request::kGemOpen, gem_open>("GEM_OPEN", kAuth),
    row<request::kGetCap, get_cap>("GET_CAP", kRenderAllow),
    row<request::kSetClientCap, set_client_cap>("SET_CLIENT_CAP", 0),
    fixed_row(request::kSetUnique, "SET_UNIQUE", kAuth | kMaster | kRootOnly, invalid),
    row<request::kAuthMagic, auth_magic>("AUTH_MAGIC", kMaster),
    fixed_row(request::kBlock, "BLOCK", kAuth | kMaster | kRootOnly, no_op),
    fixed_row(request::kUnblock, "UNBLOCK", kAuth | kMaster | kRootOnly, no_op),
    row<request::kSetMaster, set_master>("SET_MASTER", 0),
    row<request::kDropMaster, drop_master>("DROP_MASTER", 0),
    fixed_row(request::kAddDraw, "ADD_DRAW", kAuth | kMaster | kRootOnly, no_op),
    fixed_row(request::kRmDraw, "RM_DRAW", kAuth | kMaster | kRootOnly, no_op),
    fixed_row(request::kFinish, "FINISH", kAuth, no_op),
    row<request::kPrimeHandleToFd, prime_handle_to_fd>("PRIME_HANDLE_TO_FD", kRenderAllow),
    row<request::kPrimeFdToHandle, prime_fd_to_handle>("PRIME_FD_TO_HANDLE", kRenderAllow),
    row<request::kWaitVblank, wait_vblank>("WAIT_VBLANK", 0),
    row<request::kCrtcGetSequence, crtc_get_sequence>("CRTC_GET_SEQUENCE", 0),
    row<request::kCrtcQueueSequence, crtc_queue_sequence>("CRTC_QUEUE_SEQUENCE", 0),
    fixed_row(request::kUpdateDraw, "UPDATE_DRAW", kAuth | kMaster | kRootOnly, no_op),

    row<request::kGetResources, get_resources>("MODE_GETRESOURCES", 0),
    row<request::kGetCrtc, get_crtc>("MODE_GETCRTC", 0),
    row<request::kSetCrtc, set_crtc>("MODE_SETCRTC", kMaster),
    row<request::kCursor, cursor>("MODE_CURSOR", kMaster),
    row<request::kGetGamma, get_gamma>("MODE_GETGAMMA", 0),
    row<request::kSetGamma, set_gamma>("MODE_SETGAMMA", kMaster),
    row<request::kGetEncoder, get_encoder>("MODE_GETENCODER", 0),
    row<request::kGetConnector, get_connector>("MODE_GETCONNECTOR", 0),
    fixed_row(request::kAttachMode, "MODE_ATTACHMODE", kMaster, no_op),
    fixed_row(request::kDetachMode, "MODE_DETACHMODE", kMaster, no_op),
    row<request::kGetProperty, get_property>("MODE_GETPROPERTY", 0),
    row<request::kSetProperty, set_property>("MODE_SETPROPERTY", kMaster),
    row<request::kGetPropBlob, get_property_blob>("MODE_GETPROPBLOB", 0),
    row<request::kGetFb, get_fb>("MODE_GETFB", 0),
    row<request::kAddFb, add_fb>("MODE_ADDFB", 0),
    row<request::kRmFb, rm_fb>("MODE_RMFB", 0),
    row<request::kPageFlip, page_flip>("MODE_PAGE_FLIP", kMaster),
    row<request::kDirtyFb, dirty_fb>("MODE_DIRTYFB", kMaster),
    row<request::kCreateDumb, create_dumb>("MODE_CREATE_DUMB", 0),
    row<request::kMapDumb, map_dumb>("MODE_MAP_DUMB", 0),
    row<request::kDestroyDumb, destroy_dumb>("MODE_DESTROY_DUMB", 0),
    row<request::kGetPlaneResources, get_plane_resources>("MODE_GETPLANERESOURCES", 0),
    row<request::kGetPlane, get_plane>("MODE_GETPLANE", 0),
    row<request::kSetPlane, set_plane>("MODE_SETPLANE", kMaster),
    row<request::kAddFb2, add_fb2>("MODE_ADDFB2", 0),
    row<request::kObjGetProperties, get_object_properties>("MODE_OBJ_GETPROPERTIES", 0),
    row<request::kObjSetProperty, set_object_property>("MODE_OBJ_SETPROPERTY", kMaster),
    row<request::kCursor2, cursor2>("MODE_CURSOR2", kMaster),
    row<request::kAtomic, atomic>("MODE_ATOMIC", kMaster),
    row<request::kCreatePropBlob, create_blob>("MODE_CREATEPROPBLOB", 0),
    row<request::kDestroyPropBlob, destroy_blob>("MODE_DESTROYPROPBLOB", 0),

    row<request::kSyncobjCreate, syncobj_create>("SYNCOBJ_CREATE", kRenderAllow),
    row<request::kSyncobjDestroy, syncobj_destroy>("SYNCOBJ_DESTROY", kRenderAllow),
    row<request::kSyncobjHandleToFd, syncobj_handle_to_fd>("SYNCOBJ_HANDLE_TO_FD", kRenderAllow),
    row<request::kSyncobjFdToHandle, syncobj_fd_to_handle>("SYNCOBJ_FD_TO_HANDLE", kRenderAllow),
    row<request::kSyncobjWait, syncobj_wait>("SYNCOBJ_WAIT", kRenderAllow),
    row<request::kSyncobjReset, syncobj_reset>("SYNCOBJ_RESET", kRenderAllow),
    row<request::kSyncobjSignal, syncobj_signal>("SYNCOBJ_SIGNAL", kRenderAllow),
    row<request::kCreateLease, create_lease>("MODE_CREATE_LEASE", kMaster),
    row<request::kListLessees, list_lessees>("MODE_LIST_LESSEES", kMaster),
    row<request::kGetLease, get_lease>("MODE_GET_LEASE", kMaster),
    row<request::kRevokeLease, revoke_lease>("MODE_REVOKE_LEASE", kMaster),
    // Neither node has DRIVER_SYNCOBJ_TIMELINE.
    fixed_row(request::kSyncobjTimelineWait, "SYNCOBJ_TIMELINE_WAIT", kRenderAllow, not_supported),
    fixed_row(request::kSyncobjQuery, "SYNCOBJ_QUERY", kRenderAllow, not_supported),
    fixed_row(request::kSyncobjTransfer, "SYNCOBJ_TRANSFER", kRenderAllow, not_supported),
    fixed_row(request::kSyncobjTimelineSignal, "SYNCOBJ_TIMELINE_SIGNAL", kRenderAllow, not_supported),
    row<request::kGetFb2, get_fb2>("MODE_GETFB2", 0),
    fixed_row(request::kSyncobjEventfd, "SYNCOBJ_EVENTFD", kRenderAllow, not_supported,
              &Abi::syncobj_eventfd),
    row<request::kCloseFb, close_fb>("MODE_CLOSEFB", 0, &Abi::close_fb),
    row<request::kSetClientName, set_client_name>("SET_CLIENT_NAME", kRenderAllow, &Abi::set_client_name),
    fixed_row(request::kGemChangeHandle, "GEM_CHANGE_HANDLE", kRenderAllow, invalid, &Abi::gem_change_handle),
};

constexpr Row kV3dRows[] = {
    row<request::kSubmitCl, submit_cl>("V3D_SUBMIT_CL", kRenderAllow | kAuth),
    row<request::kWaitBo, wait_bo>("V3D_WAIT_BO", kRenderAllow),
    row<request::kCreateBo, create_bo>("V3D_CREATE_BO", kRenderAllow),
    row<request::kMmapBo, mmap_bo>("V3D_MMAP_BO", kRenderAllow),
    row<request::kGetParam, get_param>("V3D_GET_PARAM", kRenderAllow),
    row<request::kGetBoOffset, get_bo_offset>("V3D_GET_BO_OFFSET", kRenderAllow),
    row<request::kSubmitTfu, submit_tfu>("V3D_SUBMIT_TFU", kRenderAllow | kAuth),
    row<request::kSubmitCsd, submit_csd>("V3D_SUBMIT_CSD", kRenderAllow | kAuth),
    row<request::kPerfmonCreate, perfmon_create>("V3D_PERFMON_CREATE", kRenderAllow),
    row<request::kPerfmonDestroy, perfmon_destroy>("V3D_PERFMON_DESTROY", kRenderAllow),
    row<request::kPerfmonGetValues, perfmon_get_values>("V3D_PERFMON_GET_VALUES", kRenderAllow),
    row<request::kSubmitCpu, submit_cpu>("V3D_SUBMIT_CPU", kRenderAllow | kAuth),
    row<request::kPerfmonGetCounter, perfmon_get_counter>("V3D_PERFMON_GET_COUNTER", kRenderAllow),
    row<request::kPerfmonSetGlobal, perfmon_set_global>("V3D_PERFMON_SET_GLOBAL", kRenderAllow,
                                                        &Abi::set_global_perfmon),
};

constexpr Row kVc4Rows[] = {
    row<drm::vc4::kSubmitCl, vc4::submit_cl>("VC4_SUBMIT_CL", kRenderAllow),
    row<drm::vc4::kWaitSeqno, vc4::wait_seqno>("VC4_WAIT_SEQNO", kRenderAllow),
    row<drm::vc4::kWaitBo, vc4::wait_bo>("VC4_WAIT_BO", kRenderAllow),
    row<drm::vc4::kCreateBo, vc4::create_bo>("VC4_CREATE_BO", kRenderAllow),
    row<drm::vc4::kMmapBo, vc4::mmap_bo>("VC4_MMAP_BO", kRenderAllow),
    row<drm::vc4::kCreateShaderBo, vc4::create_shader_bo>("VC4_CREATE_SHADER_BO", kRenderAllow),
    row<drm::vc4::kGetHangState, vc4::get_hang_state>("VC4_GET_HANG_STATE", kRootOnly),
    row<drm::vc4::kGetParam, vc4::get_param>("VC4_GET_PARAM", kRenderAllow),
    row<drm::vc4::kSetTiling, vc4::set_tiling>("VC4_SET_TILING", kRenderAllow),
    row<drm::vc4::kGetTiling, vc4::get_tiling>("VC4_GET_TILING", kRenderAllow),
    row<drm::vc4::kLabelBo, vc4::label_bo>("VC4_LABEL_BO", kRenderAllow),
    row<drm::vc4::kGemMadvise, vc4::gem_madvise>("VC4_GEM_MADVISE", kRenderAllow),
    row<drm::vc4::kPerfmonCreate, vc4::perfmon_create>("VC4_PERFMON_CREATE", kRenderAllow),
    row<drm::vc4::kPerfmonDestroy, vc4::perfmon_destroy>("VC4_PERFMON_DESTROY", kRenderAllow),
    row<drm::vc4::kPerfmonGetValues, vc4::perfmon_get_values>("VC4_PERFMON_GET_VALUES", kRenderAllow),
    // Its memory counts as that of the driver's own ioctls does.
    row<request::kCreateDumb, vc4::create_dumb>("MODE_CREATE_DUMB", 0),
    row<request::kAddFb, vc4::add_fb>("MODE_ADDFB", 0),
    row<request::kAddFb2, vc4::add_fb2>("MODE_ADDFB2", 0),
};

/// Rows by number: those of all drivers, then the driver's own. A display alone has none, so the numbers 0x40
/// to 0x9f are EINVAL there (drm-abi.md 1.6).
struct Table {
  std::array<const Row*, 256> rows{};
  constexpr explicit Table(std::span<const Row> driver) {
    for (const Row& r : kCoreRows) rows[drm::request_nr(r.request)] = &r;
    for (const Row& r : driver) rows[drm::request_nr(r.request)] = &r;
  }
};
constexpr Table kV3dTable{kV3dRows}, kDisplayTable{{}}, kVc4Table{kVc4Rows};

/// The same word means one thing to v3d and another to vc4, so the device chooses.
const Table& table_of(const DrmDevice& device) {
  switch (device.driver) {
    case DrmDevice::Driver::kV3d:
      return kV3dTable;
    case DrmDevice::Driver::kDisplay:
      return kDisplayTable;
    case DrmDevice::Driver::kVc4:
      break;
  }
  return kVc4Table;
}

const Row* find_row(const File& file, uint32_t request) {
  const Row* r = table_of(file.device()).rows[drm::request_nr(request)];
  return r && (!r->known || file.abi().*r->known) ? r : nullptr;
}

int permit(uint32_t permissions, const File& file) {
  if ((permissions & kRootOnly) && !file.privileged()) return EACCES;
  {
    DrmDevice& device = file.device();
    const std::lock_guard lock(device.mutex);
    if ((permissions & kAuth) && !file.is_render() && !file.authenticated) return EACCES;
    if ((permissions & kMaster) && !file.is_current_master()) return EACCES;
  }
  if (!(permissions & kRenderAllow) && file.is_render()) return EACCES;
  return 0;
}

}  // namespace

std::string request_name(const File& file, uint32_t request) {
  const Row* r = find_row(file, request);
  return r ? r->name : absl::StrFormat("%#x", request);
}

int drm_ioctl(Call& call, uint32_t request, std::vector<uint8_t>* arg) {
  if (drm::request_type(request) != 'd') {
    arg->clear();
    return ENOTTY;
  }
  const Row* r = find_row(call.file, request);
  if (!r) {
    arg->clear();
    log_debug(Debug::kIoctl, "%s (pid %d): unknown ioctl %#x: EINVAL", call.file.client()->program,
              call.file.client()->pid, request);
    return EINVAL;
  }
  const size_t user_size = drm::request_size(request);
  const bool in = (request & r->request & drm::kDirectionIn) != 0;
  const bool out = (request & r->request & drm::kDirectionOut) != 0;

  // 8-byte alignment for the structs.
  alignas(8) uint8_t data[512] = {};
  static_assert(sizeof data >= sizeof(drm::PerfmonGetCounter));
  const size_t kernel_size = drm::request_size(r->request);
  if (in) std::copy_n(arg->begin(), std::min({user_size, arg->size(), sizeof data}), data);
  std::memset(data + kernel_size, 0, sizeof data - kernel_size);

  int error = permit(r->permissions, call.file);
  if (!error) error = out_of_memory_is_enomem([&] { return r->handler(call, data); });

  // Bytes beyond the kernel's struct go back as they came.
  arg->resize(out ? user_size : 0);
  std::copy_n(data, std::min(arg->size(), kernel_size), arg->begin());
  log_debug(Debug::kIoctl, "%s (pid %d) minor %d: %s: %s", call.file.client()->program,
            call.file.client()->pid, call.file.minor(), r->name, error ? strerrorname_np(error) : "0");
  return error;
}

int mmap_file(Call& call, uint64_t offset, uint64_t length, int prot, int flags, Buffer::Backing* backing) {
  const std::shared_ptr<Bo> bo = call.kernel.find_mmap_offset(offset);
  if (!bo || length == 0 || length > bo->size()) return EINVAL;  // objects are whole pages
  if (call.file.find_mmap(offset) != bo) return EACCES;
  if ((flags & MAP_TYPE) == MAP_PRIVATE) return EINVAL;
  if (DriverState* const state = bo->buffer()->driver().find())
    if (const int error = state->map_it(prot)) return error;
  *backing = bo->buffer()->backing_for_client();
  return 0;
}

}  // namespace v3d::ioctl
