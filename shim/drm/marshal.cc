#include "shim/drm/marshal.h"

#include <sys/stat.h>

#include <cstddef>
#include <cstring>
#include <iterator>

#include "ioctl/abi/core.h"
#include "ioctl/abi/dma_buf.h"
#include "ioctl/abi/framebuffer.h"
#include "ioctl/abi/mode.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;
namespace request = drm::request;
namespace vc4 = drm::vc4;

constexpr size_t kMaxArray =
    16u << 20;  // bytes; the longest lists of real drivers have some thousand entries
constexpr uint32_t kMaxSegments = 16384;
constexpr int kMaxExtensions = 64;
constexpr uint64_t kMostText = 4098;  ///< bytes: one more than the daemon takes (ioctl/vc4/bo.cc)
constexpr size_t kMostKnown = 128;    // bytes of a structure that holds pointers

enum Count : uint8_t { kFixed, kCount32, kCount64, kText32 };

/// A pointer inside a structure, and the array behind it.
struct Array {
  uint8_t pointer;  ///< offset of the u64 that points
  /// kFixed: the number of elements; else offset of the number, a u32 or u64. kText32: of the most bytes that
  /// a text has before the one that ends it.
  uint8_t count;
  Count kind;
  uint16_t element;    ///< bytes
  uint32_t direction;  ///< wire::kIn, wire::kOut
};

constexpr uint32_t kIn = wire::kIn, kOut = wire::kOut;

constexpr Count count_of(size_t bytes) { return bytes == sizeof(uint64_t) ? kCount64 : kCount32; }

/// By the members of a structure that point and count.
#define ARRAY(Struct, pointer, count, Element, direction)                                                 \
  {                                                                                                       \
    offsetof(Struct, pointer), offsetof(Struct, count), count_of(sizeof(Struct::count)), sizeof(Element), \
        direction                                                                                         \
  }

/// Whose structures those are.
enum Owner : uint8_t { kOfCore, kOfV3d, kOfVc4, kOfFence, kOfFramebuffer };

constexpr bool is_owner(Owner owner, Driver driver) {
  switch (driver) {
    case Driver::kV3d:
      return owner == kOfCore || owner == kOfV3d;
    case Driver::kVc4:
      return owner == kOfCore || owner == kOfVc4;
    case Driver::kFence:
      return owner == kOfFence;
    case Driver::kFramebuffer:
      return owner == kOfFramebuffer;
  }
  return false;
}

/// Whether it is that ioctl, perhaps with the structure of an older or newer caller.
constexpr bool is_same(uint32_t known, uint32_t request) {
  return drm::request_type(known) == drm::request_type(request) &&
         drm::request_nr(known) == drm::request_nr(request);
}

struct Rule {
  Owner owner;
  uint32_t request;
  Array arrays[4];
};

constexpr Rule kRules[] = {
    {kOfCore,
     request::kVersion,
     {ARRAY(drm::Version, name, name_len, char, kOut), ARRAY(drm::Version, date, date_len, char, kOut),
      ARRAY(drm::Version, desc, desc_len, char, kOut)}},
    {kOfCore, request::kGetUnique, {ARRAY(drm::Unique, unique, unique_len, char, kOut)}},
    {kOfCore, request::kSetClientName, {ARRAY(drm::SetClientName, name, name_len, char, kIn)}},
    {kOfCore, request::kSyncobjWait, {ARRAY(drm::SyncobjWait, handles, count_handles, uint32_t, kIn)}},
    {kOfCore, request::kSyncobjReset, {ARRAY(drm::SyncobjArray, handles, count_handles, uint32_t, kIn)}},
    {kOfCore, request::kSyncobjSignal, {ARRAY(drm::SyncobjArray, handles, count_handles, uint32_t, kIn)}},
    {kOfCore,
     request::kSyncobjTimelineWait,
     {ARRAY(drm::SyncobjTimelineWait, handles, count_handles, uint32_t, kIn),
      ARRAY(drm::SyncobjTimelineWait, points, count_handles, uint64_t, kIn)}},
    {kOfCore,
     request::kSyncobjQuery,
     {ARRAY(drm::SyncobjTimelineArray, handles, count_handles, uint32_t, kIn),
      ARRAY(drm::SyncobjTimelineArray, points, count_handles, uint64_t, kOut)}},
    {kOfCore,
     request::kSyncobjTimelineSignal,
     {ARRAY(drm::SyncobjTimelineArray, handles, count_handles, uint32_t, kIn),
      ARRAY(drm::SyncobjTimelineArray, points, count_handles, uint64_t, kIn)}},
    {kOfV3d, request::kSubmitCl, {ARRAY(drm::SubmitCl, bo_handles, bo_handle_count, uint32_t, kIn)}},
    {kOfV3d, request::kSubmitCsd, {ARRAY(drm::SubmitCsd, bo_handles, bo_handle_count, uint32_t, kIn)}},
    {kOfV3d, request::kSubmitCpu, {ARRAY(drm::SubmitCpu, bo_handles, bo_handle_count, uint32_t, kIn)}},
    {kOfV3d,
     request::kPerfmonGetValues,
     {{offsetof(drm::PerfmonGetValues, values_ptr), drm::kMaxPerfmonCounters, kFixed, sizeof(uint64_t),
       kOut}}},
    {kOfVc4,
     vc4::kSubmitCl,
     {ARRAY(vc4::SubmitCl, bin_cl, bin_cl_size, char, kIn),
      ARRAY(vc4::SubmitCl, shader_rec, shader_rec_size, char, kIn),
      ARRAY(vc4::SubmitCl, uniforms, uniforms_size, char, kIn),
      ARRAY(vc4::SubmitCl, bo_handles, bo_handle_count, uint32_t, kIn)}},
    {kOfVc4, vc4::kCreateShaderBo, {ARRAY(vc4::CreateShaderBo, data, size, char, kIn)}},
    {kOfVc4,
     vc4::kLabelBo,
     {{offsetof(vc4::LabelBo, name), offsetof(vc4::LabelBo, len), kText32, sizeof(char), kIn}}},
    {kOfVc4, vc4::kGetHangState, {ARRAY(vc4::GetHangState, bo, bo_count, vc4::HangStateBo, kOut)}},
    {kOfVc4,
     vc4::kPerfmonGetValues,
     {{offsetof(vc4::PerfmonGetValues, values_ptr), vc4::kMaxPerfmonCounters, kFixed, sizeof(uint64_t),
       kOut}}},
    {kOfVc4,
     request::kGetResources,
     {ARRAY(drm::CardResources, fb_ids, count_fbs, uint32_t, kOut),
      ARRAY(drm::CardResources, crtc_ids, count_crtcs, uint32_t, kOut),
      ARRAY(drm::CardResources, connector_ids, count_connectors, uint32_t, kOut),
      ARRAY(drm::CardResources, encoder_ids, count_encoders, uint32_t, kOut)}},
    {kOfVc4, request::kSetCrtc, {ARRAY(drm::Crtc, connector_ids, count_connectors, uint32_t, kIn)}},
    {kOfVc4,
     request::kGetGamma,
     {ARRAY(drm::CrtcLut, red, gamma_size, uint16_t, kOut),
      ARRAY(drm::CrtcLut, green, gamma_size, uint16_t, kOut),
      ARRAY(drm::CrtcLut, blue, gamma_size, uint16_t, kOut)}},
    {kOfVc4,
     request::kSetGamma,
     {ARRAY(drm::CrtcLut, red, gamma_size, uint16_t, kIn),
      ARRAY(drm::CrtcLut, green, gamma_size, uint16_t, kIn),
      ARRAY(drm::CrtcLut, blue, gamma_size, uint16_t, kIn)}},
    {kOfVc4,
     request::kGetConnector,
     {ARRAY(drm::Connector, encoder_ids, count_encoders, uint32_t, kOut),
      ARRAY(drm::Connector, modes, count_modes, drm::ModeInfo, kOut),
      ARRAY(drm::Connector, property_ids, count_properties, uint32_t, kOut),
      ARRAY(drm::Connector, property_values, count_properties, uint64_t, kOut)}},
    {kOfVc4,
     request::kGetProperty,
     {ARRAY(drm::GetProperty, values, count_values, uint64_t, kOut),
      ARRAY(drm::GetProperty, enum_blobs, count_enum_blobs, drm::PropertyEnum, kOut)}},
    {kOfVc4, request::kGetPropBlob, {ARRAY(drm::GetBlob, data, length, char, kOut)}},
    {kOfVc4, request::kDirtyFb, {ARRAY(drm::FbDirty, clips, num_clips, drm::DirtyClip, kIn)}},
    {kOfVc4,
     request::kGetPlaneResources,
     {ARRAY(drm::PlaneResources, plane_ids, count_planes, uint32_t, kOut)}},
    {kOfVc4, request::kGetPlane, {ARRAY(drm::GetPlane, formats, count_formats, uint32_t, kOut)}},
    {kOfVc4,
     request::kObjGetProperties,
     {ARRAY(drm::ObjectProperties, properties, count, uint32_t, kOut),
      ARRAY(drm::ObjectProperties, values, count, uint64_t, kOut)}},
    {kOfVc4,
     request::kAtomic,  // Marshal::atomic() does the rest
     {ARRAY(drm::Atomic, objects, count_objects, uint32_t, kIn),
      ARRAY(drm::Atomic, count_properties, count_objects, uint32_t, kIn)}},
    {kOfVc4, request::kCreatePropBlob, {ARRAY(drm::CreateBlob, data, length, char, kIn)}},
    {kOfVc4, request::kCreateLease, {ARRAY(drm::CreateLease, object_ids, object_count, uint32_t, kIn)}},
    {kOfVc4, request::kListLessees, {ARRAY(drm::LeaseList, ids, count, uint32_t, kOut)}},
    {kOfVc4, request::kGetLease, {ARRAY(drm::LeaseList, ids, count, uint32_t, kOut)}},
    {kOfFence,
     request::kSyncFileInfo,
     {ARRAY(drm::SyncFileInfo, fence_info, num_fences, drm::SyncFenceInfo, kOut)}},
    {kOfFramebuffer,
     ioctl::fb::request::kGetColors,
     {ARRAY(ioctl::fb::Colors, red, len, uint16_t, kOut),
      ARRAY(ioctl::fb::Colors, green, len, uint16_t, kOut),
      ARRAY(ioctl::fb::Colors, blue, len, uint16_t, kOut)}},
    {kOfFramebuffer,
     ioctl::fb::request::kPutColors,
     {ARRAY(ioctl::fb::Colors, red, len, uint16_t, kIn), ARRAY(ioctl::fb::Colors, green, len, uint16_t, kIn),
      ARRAY(ioctl::fb::Colors, blue, len, uint16_t, kIn)}},
};

/// Where a submit structure has its flags, the head of its extension chain, and without one the handle of the
/// syncobj that gets its fence (kNowhere: it has none).
struct Chained {
  uint32_t request;
  uint8_t flags, head, out_sync;
};
constexpr uint8_t kNowhere = 255;
#define CHAINED(Struct, out_sync) offsetof(Struct, flags), offsetof(Struct, extensions), out_sync
constexpr Chained kChained[] = {
    {request::kSubmitCl, CHAINED(drm::SubmitCl, offsetof(drm::SubmitCl, out_sync))},
    {request::kSubmitTfu, CHAINED(drm::SubmitTfu, offsetof(drm::SubmitTfu, out_sync))},
    {request::kSubmitCsd, CHAINED(drm::SubmitCsd, offsetof(drm::SubmitCsd, out_sync))},
    {request::kSubmitCpu, CHAINED(drm::SubmitCpu, kNowhere)},
};
#undef CHAINED

/// Extensions by id (drm-abi.md 2.9).
struct Extension {
  uint32_t id;
  size_t size;
  Array arrays[2];
  Array id_lists;  ///< array of pointers to lists of u32; the length of each list is at `id_count`
  uint8_t id_count;
};
constexpr Extension kExtensions[] = {
    {drm::kExtMultiSync,
     sizeof(drm::MultiSync),
     {ARRAY(drm::MultiSync, in_syncs, in_sync_count, drm::Sem, kIn),
      ARRAY(drm::MultiSync, out_syncs, out_sync_count, drm::Sem, kIn)},
     {},
     0},
    {drm::kExtCpuIndirectCsd,
     sizeof(drm::IndirectCsd),
     {ARRAY(drm::IndirectCsd, submit.bo_handles, submit.bo_handle_count, uint32_t, kIn)},
     {},
     0},
    {drm::kExtCpuTimestampQuery,
     sizeof(drm::TimestampQuery),
     {ARRAY(drm::TimestampQuery, offsets, count, uint32_t, kIn),
      ARRAY(drm::TimestampQuery, syncs, count, uint32_t, kIn)},
     {},
     0},
    {drm::kExtCpuResetTimestampQuery,
     sizeof(drm::ResetTimestampQuery),
     {ARRAY(drm::ResetTimestampQuery, syncs, count, uint32_t, kIn)},
     {},
     0},
    {drm::kExtCpuCopyTimestampQuery,
     sizeof(drm::CopyTimestampQuery),
     {ARRAY(drm::CopyTimestampQuery, offsets, count, uint32_t, kIn),
      ARRAY(drm::CopyTimestampQuery, syncs, count, uint32_t, kIn)},
     {},
     0},
    {drm::kExtCpuResetPerformanceQuery,
     sizeof(drm::ResetPerformanceQuery),
     {ARRAY(drm::ResetPerformanceQuery, syncs, count, uint32_t, kIn)},
     ARRAY(drm::ResetPerformanceQuery, kperfmon_ids, count, uint64_t, kIn),
     offsetof(drm::ResetPerformanceQuery, nperfmons)},
    {drm::kExtCpuCopyPerformanceQuery,
     sizeof(drm::CopyPerformanceQuery),
     {ARRAY(drm::CopyPerformanceQuery, syncs, count, uint32_t, kIn)},
     ARRAY(drm::CopyPerformanceQuery, kperfmon_ids, count, uint64_t, kIn),
     offsetof(drm::CopyPerformanceQuery, nperfmons)},
};
#undef ARRAY

/// Where an argument names a descriptor that goes to the daemon.
struct DescriptorField {
  uint32_t request;
  uint8_t offset;
};
constexpr DescriptorField kDescriptors[] = {
    {request::kPrimeFdToHandle, offsetof(drm::PrimeHandle, fd)},
    {request::kSyncobjFdToHandle, offsetof(drm::SyncobjHandle, fd)},
    {request::kSyncobjEventfd, offsetof(drm::SyncobjEventfd, fd)},
    {request::kSyncMerge, offsetof(drm::SyncMerge, fd2)},
    {request::kDmaBufImportSyncFile, offsetof(drm::DmaBufSyncFile, fd)},
};

/// Little-endian fields of a copied structure; what lies beyond its end reads as 0, as for an old caller
/// whose structure is shorter.
class Fields {
 public:
  Fields(const void* data, size_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  uint32_t u32(size_t offset) const { return read<uint32_t>(offset); }
  uint64_t u64(size_t offset) const { return read<uint64_t>(offset); }
  template <typename T>
  T as() const {
    T whole{};
    memcpy(&whole, data_, size_ < sizeof(T) ? size_ : sizeof(T));
    return whole;
  }

 private:
  template <typename T>
  T read(size_t offset) const {
    T value = 0;
    if (offset + sizeof(T) <= size_) memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }
  const uint8_t* data_;
  size_t size_;
};

class Marshal {
 public:
  Marshal(Call* call, std::span<const uint32_t> syncobjs) : call_(call), syncobjs_(syncobjs) {}

  bool no_memory() const { return no_memory_; }
  uint32_t num_segments() const { return num_segments_; }
  uint32_t num_fds() const { return num_fds_; }
  const Signals& signals() const { return signals_; }
  const int32_t* fd_numbers() const { return fd_numbers_; }

  /// Returns the position of the last one's copied bytes, 0 if there are none.
  size_t arrays(const Fields& fields, const Array* first, size_t count) {
    size_t position = 0;
    for (const Array* array = first; array != first + count; ++array) {
      if (array->element) position = add_array(fields, *array);
    }
    return position;
  }

  void note_signal(uint32_t handle) {
    if (handle != 0) signals_.all |= set_of(handle);
    for (const uint32_t syncobj : syncobjs_) {
      if (handle == syncobj && handle != 0) signals_.wanted = handle;
    }
  }

  /// One segment. Returns the position of its copied bytes in the payload, 0 if there are none.
  size_t segment(uint64_t address, uint64_t size, uint32_t direction) {
    if (!size || !address || size > kMaxArray || num_segments_ == kMaxSegments) return 0;
    const auto bytes = static_cast<size_t>(size);
    const size_t before = call_->size();
    bool copied = direction & kIn;
    auto* room = static_cast<uint8_t*>(call_->append(sizeof(wire::Segment) + (copied ? bytes : 0)));
    if (!room) {
      no_memory_ = true;
      return 0;
    }
    if (copied && !copy_from_user(room + sizeof(wire::Segment), address, bytes)) {
      call_->truncate(before);
      return 0;
    }
    wire::Segment header{address, static_cast<uint32_t>(size), direction};
    memcpy(room, &header, sizeof(header));
    ++num_segments_;
    return copied ? before + sizeof(wire::Segment) : 0;
  }

  void descriptor(int32_t number, bool sockets_only = false) {
    if (number < 0 || num_fds_ == wire::kMaxFds) return;
    for (uint32_t i = 0; i < num_fds_; ++i) {
      if (fd_numbers_[i] == number) return;
    }
    struct stat st;
    const int fd = find_descriptor(number);
    if (fd < 0 || raw::fstat(fd, &st) < 0 || (sockets_only && !S_ISSOCK(st.st_mode))) return;
    if (call_->attach(fd)) fd_numbers_[num_fds_++] = number;
  }

  /// The chain is a list in client memory: the daemon walks it again over the segments.
  void extensions(uint64_t address) {
    for (int i = 0; address && i < kMaxExtensions; ++i) {
      drm::Extension header;
      if (!copy_from_user(&header, address, sizeof(header))) return;
      const Extension* known = nullptr;
      for (const Extension& extension : kExtensions) {
        if (extension.id == header.id) known = &extension;
      }
      size_t size = known ? known->size : sizeof(header);
      size_t position = segment(address, size, kIn);
      if (!position && known) position = segment(address, size = sizeof(header), kIn);
      if (!position) return;
      uint8_t bytes[kMostKnown];
      memcpy(bytes, call_->at(position), size);
      Fields fields(bytes, size);
      if (known && size == known->size) {
        const size_t last = arrays(fields, known->arrays, 2);
        if (known->id == drm::kExtMultiSync && last)
          note_signals(last, array_bytes(fields, known->arrays[1]));
        if (known->id_lists.element) id_lists(fields, *known);
      }
      address = fields.as<drm::Extension>().next;
    }
  }

  /// ATOMIC: two parallel lists as long as the sum of another list, and among the values descriptors
  /// (IN_FENCE_FD) and pointers (OUT_FENCE_PTR). Which values those are, the daemon knows; here everything
  /// that can be one goes.
  void atomic(const drm::Atomic& args) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < args.count_objects && i < kMaxSegments; ++i) {
      uint32_t count = 0;
      if (!copy_from_user(&count, args.count_properties + uint64_t{i} * sizeof(count), sizeof(count))) return;
      total += count;
    }
    segment(args.properties, total * sizeof(uint32_t), kIn);
    size_t values = segment(args.values, total * sizeof(uint64_t), kIn);
    for (size_t i = 0; values && i < total && i < kMaxSegments; ++i) {
      uint64_t value;
      memcpy(&value, call_->at(values + i * sizeof(value)), sizeof(value));
      if (value < 0x10000) {
        descriptor(static_cast<int32_t>(value), true);
      } else if (value < uint64_t{1} << 47) {
        segment(value, sizeof(int32_t), kOut);
      }
    }
  }

 private:
  /// Of a text with what ends it, as far as it can be read: nothing behind it need be there (strndup_user).
  static uint64_t text_bytes(uint64_t address, uint64_t most) {
    char piece[64];  // in no two pages
    uint64_t bytes = 0;
    while (bytes < most) {
      const uint64_t left = most - bytes, together = sizeof piece - (address + bytes) % sizeof piece;
      const auto size = static_cast<size_t>(left < together ? left : together);
      if (!copy_from_user(piece, address + bytes, size)) break;
      const void* end = memchr(piece, 0, size);
      if (end) return bytes + static_cast<size_t>(static_cast<const char*>(end) - piece) + 1;
      bytes += size;
    }
    return bytes;
  }

  static uint64_t array_bytes(const Fields& fields, const Array& array) {
    if (array.kind == kText32) {
      const uint64_t most = uint64_t{fields.u32(array.count)} + 1;
      return text_bytes(fields.u64(array.pointer), most < kMostText ? most : kMostText);
    }
    uint64_t count = array.kind == kFixed     ? array.count
                     : array.kind == kCount32 ? fields.u32(array.count)
                                              : fields.u64(array.count);
    return count > kMaxArray ? kMaxArray + 1 : count * array.element;
  }

  size_t add_array(const Fields& fields, const Array& array) {
    return segment(fields.u64(array.pointer), array_bytes(fields, array), array.direction);
  }

  void note_signals(size_t position, uint64_t bytes) {
    for (size_t at = 0; at < bytes; at += sizeof(drm::Sem))
      note_signal(Fields(call_->at(position + at), sizeof(drm::Sem)).as<drm::Sem>().handle);
  }

  void id_lists(const Fields& fields, const Extension& extension) {
    size_t position = add_array(fields, extension.id_lists);
    uint64_t count = position ? array_bytes(fields, extension.id_lists) / 8 : 0;
    for (size_t i = 0; i < count; ++i) {
      uint64_t list;
      memcpy(&list, call_->at(position + i * 8), 8);
      segment(list, uint64_t{fields.u32(extension.id_count)} * 4, kIn);
    }
  }

  Call* call_;
  const std::span<const uint32_t> syncobjs_;
  Signals signals_;
  uint32_t num_segments_ = 0;
  uint32_t num_fds_ = 0;
  int32_t fd_numbers_[wire::kMaxFds] = {};
  bool no_memory_ = false;
};

}  // namespace

bool append_segments(Call* call, Driver driver, uint32_t word, uint32_t arg_size,
                     std::span<const uint32_t> syncobjs, Signals* signals) {
  // The argument may be long (14 bits of size); no rule looks further than this.
  uint8_t bytes[kMostKnown];
  size_t known = arg_size < sizeof(bytes) ? arg_size : sizeof(bytes);
  memcpy(bytes, call->at(sizeof(wire::IoctlRequest)), known);
  Fields fields(bytes, known);
  Marshal marshal(call, syncobjs);
  for (const Rule& rule : kRules) {
    if (is_owner(rule.owner, driver) && is_same(rule.request, word))
      marshal.arrays(fields, rule.arrays, std::size(rule.arrays));
  }
  if (driver == Driver::kV3d) {
    for (const Chained& chained : kChained) {
      if (!is_same(chained.request, word)) continue;
      if (fields.u32(chained.flags) & drm::kSubmitExtension)
        marshal.extensions(fields.u64(chained.head));
      else
        marshal.note_signal(fields.u32(chained.out_sync));
    }
  }
  if (driver == Driver::kVc4 && is_same(request::kAtomic, word)) marshal.atomic(fields.as<drm::Atomic>());
  for (const DescriptorField& field : kDescriptors) {
    if (is_same(field.request, word) && field.offset + sizeof(int32_t) <= known)
      marshal.descriptor(static_cast<int32_t>(fields.u32(field.offset)));
  }
  wire::IoctlRequest header;
  memcpy(&header, call->at(0), sizeof(header));
  header.num_segments = marshal.num_segments();
  header.num_fds = marshal.num_fds();
  memcpy(header.fd_numbers, marshal.fd_numbers(), sizeof(header.fd_numbers));
  memcpy(call->at(0), &header, sizeof(header));
  *signals = marshal.signals();
  return !marshal.no_memory();
}

bool is_wait(Driver driver, uint32_t word) {
  switch (driver) {
    case Driver::kFence:
      return word == request::kDmaBufSync;
    case Driver::kFramebuffer:
      return is_same(ioctl::fb::request::kWaitForVsync, word);
    case Driver::kV3d:
      if (is_same(request::kWaitBo, word)) return true;
      break;
    case Driver::kVc4:
      if (is_same(request::kWaitVblank, word) || is_same(vc4::kWaitSeqno, word) ||
          is_same(vc4::kWaitBo, word))
        return true;
      break;
  }
  return is_same(request::kSyncobjWait, word) || is_same(request::kSyncobjTimelineWait, word);
}

}  // namespace v3d::shim
