#include "shim/drm/marshal.h"

#include <sys/stat.h>

#include <cstring>

#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

constexpr size_t kMaxArray =
    16u << 20;  // bytes; the longest lists of real drivers have some thousand entries
constexpr uint32_t kMaxSegments = 16384;
constexpr int kMaxExtensions = 64;
constexpr uint32_t kHeaderSize = 16;  // of an extension: next, id, flags

enum Count : uint8_t { kFixed, kCount32, kCount64 };

/// A pointer inside a structure, and the array behind it.
struct Array {
  uint8_t pointer;  ///< offset of the u64 that points
  uint8_t count;    ///< kFixed: the number of elements; else offset of the number, a u32 or u64
  Count kind;
  uint16_t element;    ///< bytes
  uint32_t direction;  ///< wire::kIn, wire::kOut
};

constexpr uint32_t kIn = wire::kIn, kOut = wire::kOut;

struct Rule {
  Driver driver;
  bool both;  ///< core ioctl: the same on either node
  uint8_t number;
  Array arrays[5];
};

// Layouts: drm-abi.md 2.2, 2.6, 2.7, 2.10, 6.1, 7.6.
constexpr Rule kRules[] = {
    {Driver::kV3d,
     true,
     0x00,
     {{24, 16, kCount64, 1, kOut}, {40, 32, kCount64, 1, kOut}, {56, 48, kCount64, 1, kOut}}},
    {Driver::kV3d, true, 0x01, {{8, 0, kCount64, 1, kOut}}},                              // GET_UNIQUE
    {Driver::kV3d, true, 0xc3, {{0, 16, kCount32, 4, kIn}}},                              // SYNCOBJ_WAIT
    {Driver::kV3d, true, 0xc4, {{0, 8, kCount32, 4, kIn}}},                               // SYNCOBJ_RESET
    {Driver::kV3d, true, 0xc5, {{0, 8, kCount32, 4, kIn}}},                               // SYNCOBJ_SIGNAL
    {Driver::kV3d, true, 0xca, {{0, 24, kCount32, 4, kIn}, {8, 24, kCount32, 8, kIn}}},   // TIMELINE_WAIT
    {Driver::kV3d, true, 0xcb, {{0, 16, kCount32, 4, kIn}, {8, 16, kCount32, 8, kOut}}},  // QUERY
    {Driver::kV3d, true, 0xcd, {{0, 16, kCount32, 4, kIn}, {8, 16, kCount32, 8, kIn}}},   // TIMELINE_SIGNAL
    {Driver::kV3d, true, 0xd1, {{8, 0, kCount64, 1, kIn}}},                               // SET_CLIENT_NAME
    {Driver::kV3d, false, 0x40, {{40, 48, kCount32, 4, kIn}}},                            // SUBMIT_CL
    {Driver::kV3d, false, 0x47, {{48, 56, kCount32, 4, kIn}}},                            // SUBMIT_CSD
    {Driver::kV3d, false, 0x4a, {{8, 32, kFixed, 8, kOut}}},  // PERFMON_GET_VALUES
    {Driver::kV3d, false, 0x4b, {{0, 8, kCount32, 4, kIn}}},  // SUBMIT_CPU
    {Driver::kVc4,
     false,
     0xa0,  // GETRESOURCES
     {{0, 32, kCount32, 4, kOut},
      {8, 36, kCount32, 4, kOut},
      {16, 40, kCount32, 4, kOut},
      {24, 44, kCount32, 4, kOut}}},
    {Driver::kVc4, false, 0xa2, {{0, 8, kCount32, 4, kIn}}},  // SETCRTC
    {Driver::kVc4,
     false,
     0xa4,  // GETGAMMA
     {{8, 4, kCount32, 2, kOut}, {16, 4, kCount32, 2, kOut}, {24, 4, kCount32, 2, kOut}}},
    {Driver::kVc4,
     false,
     0xa5,  // SETGAMMA
     {{8, 4, kCount32, 2, kIn}, {16, 4, kCount32, 2, kIn}, {24, 4, kCount32, 2, kIn}}},
    {Driver::kVc4,
     false,
     0xa7,  // GETCONNECTOR
     {{0, 40, kCount32, 4, kOut},
      {8, 32, kCount32, 68, kOut},
      {16, 36, kCount32, 4, kOut},
      {24, 36, kCount32, 8, kOut}}},
    {Driver::kVc4, false, 0xaa, {{0, 56, kCount32, 8, kOut}, {8, 60, kCount32, 40, kOut}}},  // GETPROPERTY
    {Driver::kVc4, false, 0xac, {{8, 4, kCount32, 1, kOut}}},                                // GETPROPBLOB
    {Driver::kVc4, false, 0xb1, {{16, 12, kCount32, 8, kIn}}},                               // DIRTYFB
    {Driver::kVc4, false, 0xb5, {{0, 8, kCount32, 4, kOut}}},    // GETPLANERESOURCES
    {Driver::kVc4, false, 0xb6, {{24, 20, kCount32, 4, kOut}}},  // GETPLANE
    {Driver::kVc4,
     false,
     0xb9,
     {{0, 16, kCount32, 4, kOut}, {8, 16, kCount32, 8, kOut}}},                          // OBJ_GETPROPERTIES
    {Driver::kVc4, false, 0xbc, {{8, 4, kCount32, 4, kIn}, {16, 4, kCount32, 4, kIn}}},  // ATOMIC; rest below
    {Driver::kVc4, false, 0xbd, {{0, 8, kCount32, 1, kIn}}},                             // CREATEPROPBLOB
    {Driver::kVc4, false, 0xc6, {{0, 8, kCount32, 4, kIn}}},                             // CREATE_LEASE
    {Driver::kVc4, false, 0xc7, {{8, 0, kCount32, 4, kOut}}},                            // LIST_LESSEES
    {Driver::kVc4, false, 0xc8, {{8, 0, kCount32, 4, kOut}}},                            // GET_LEASE
    {Driver::kFence, false, 0x04, {{48, 40, kCount32, 80, kOut}}},                       // SYNC_IOC_FILE_INFO
    {Driver::kFramebuffer,
     false,
     0x04,  // FBIOGETCMAP
     {{8, 4, kCount32, 2, kOut}, {16, 4, kCount32, 2, kOut}, {24, 4, kCount32, 2, kOut}}},
    {Driver::kFramebuffer,
     false,
     0x05,  // FBIOPUTCMAP
     {{8, 4, kCount32, 2, kIn}, {16, 4, kCount32, 2, kIn}, {24, 4, kCount32, 2, kIn}}},
};

/// Where a submit structure has its flags, the head of its extension chain, and without one the handle of the
/// syncobj that gets its fence (beyond the structure: nowhere).
struct Chained {
  uint8_t number, flags, head, out_sync;
};
constexpr Chained kChained[] = {
    {0x40, 52, 64, 24}, {0x46, 68, 72, 64}, {0x47, 80, 72, 64}, {0x4b, 12, 16, 255}};
constexpr uint32_t kSubmitExtension = 2;
constexpr uint32_t kMultiSync = 1;

/// Extensions by id (drm-abi.md 2.9). INDIRECT_CSD embeds a submit_csd at 16.
struct Extension {
  uint32_t id, size;
  Array arrays[2];
  Array id_lists;  ///< array of pointers to lists of u32; the length of each list is at `id_count`
  uint8_t id_count;
};
constexpr Extension kExtensions[] = {
    {kMultiSync, 48, {{16, 32, kCount32, 32, kIn}, {24, 36, kCount32, 32, kIn}}, {}, 0},
    {2, 128, {{16 + 48, 16 + 56, kCount32, 4, kIn}}, {}, 0},                   // INDIRECT_CSD
    {3, 40, {{16, 32, kCount32, 4, kIn}, {24, 32, kCount32, 4, kIn}}, {}, 0},  // TIMESTAMP_QUERY
    {4, 32, {{16, 28, kCount32, 4, kIn}}, {}, 0},                              // RESET_TIMESTAMP
    {5, 48, {{32, 28, kCount32, 4, kIn}, {40, 28, kCount32, 4, kIn}}, {}, 0},  // COPY_TIMESTAMP
    {6, 40, {{16, 24, kCount32, 4, kIn}}, {32, 24, kCount32, 8, kIn}, 28},     // RESET_PERFORMANCE
    {7, 56, {{40, 36, kCount32, 4, kIn}}, {48, 36, kCount32, 8, kIn}, 28},     // COPY_PERFORMANCE
};

/// Where an argument names a descriptor that goes to the daemon.
struct DescriptorField {
  uint8_t type, number, offset;
};
constexpr DescriptorField kDescriptors[] = {
    {'d', 0x2e, 8},   // PRIME_FD_TO_HANDLE
    {'d', 0xc2, 8},   // SYNCOBJ_FD_TO_HANDLE
    {'d', 0xcf, 16},  // SYNCOBJ_EVENTFD
    {'>', 0x03, 32},  // SYNC_IOC_MERGE
    {'b', 0x03, 4},   // DMA_BUF_IOCTL_IMPORT_SYNC_FILE
};

/// Little-endian fields of a copied structure; what lies beyond its end reads as 0, as for an old caller
/// whose structure is shorter.
class Fields {
 public:
  Fields(const void* data, size_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  uint32_t u32(size_t offset) const { return read<uint32_t>(offset); }
  uint64_t u64(size_t offset) const { return read<uint64_t>(offset); }

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
  uint32_t signalled() const { return signalled_; }
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
    for (const uint32_t syncobj : syncobjs_) {
      if (handle == syncobj && handle != 0) signalled_ = handle;
    }
  }

  /// One segment. Returns the position of its copied bytes in the payload, 0 if there are none.
  size_t segment(uint64_t address, uint64_t size, uint32_t direction) {
    if (!size || !address || size > kMaxArray || num_segments_ == kMaxSegments) return 0;
    const size_t before = call_->size();
    bool copied = direction & kIn;
    auto* room = static_cast<uint8_t*>(call_->append(sizeof(wire::Segment) + (copied ? size : 0)));
    if (!room) {
      no_memory_ = true;
      return 0;
    }
    if (copied && !copy_from_user(room + sizeof(wire::Segment), address, size)) {
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
      uint8_t bytes[128];
      if (!copy_from_user(bytes, address, kHeaderSize)) return;
      Fields header(bytes, kHeaderSize);
      const Extension* known = nullptr;
      for (const Extension& extension : kExtensions) {
        if (extension.id == header.u32(8)) known = &extension;
      }
      size_t size = known ? known->size : kHeaderSize;
      size_t position = segment(address, size, kIn);
      if (!position && known) position = segment(address, size = kHeaderSize, kIn);
      if (!position) return;
      memcpy(bytes, call_->at(position), size);
      Fields fields(bytes, size);
      if (known && size == known->size) {
        const size_t last = arrays(fields, known->arrays, 2);
        if (known->id == kMultiSync && last) note_signals(last, array_bytes(fields, known->arrays[1]));
        if (known->id_lists.element) id_lists(fields, *known);
      }
      address = fields.u64(0);
    }
  }

  /// ATOMIC: two parallel lists as long as the sum of another list, and among the values descriptors
  /// (IN_FENCE_FD) and pointers (OUT_FENCE_PTR). Which values those are, the daemon knows; here everything
  /// that can be one goes.
  void atomic(const Fields& fields) {
    uint64_t total = 0;
    uint32_t objects = fields.u32(4);
    uint64_t counts = fields.u64(16);
    for (uint32_t i = 0; i < objects && i < kMaxSegments; ++i) {
      uint32_t count = 0;
      if (!copy_from_user(&count, counts + uint64_t{i} * 4, 4)) return;
      total += count;
    }
    segment(fields.u64(24), total * 4, kIn);
    size_t values = segment(fields.u64(32), total * 8, kIn);
    for (uint64_t i = 0; values && i < total && i < kMaxSegments; ++i) {
      uint64_t value;
      memcpy(&value, call_->at(values + i * 8), 8);
      if (value < 0x10000) {
        descriptor(static_cast<int32_t>(value), true);
      } else if (value < uint64_t{1} << 47) {
        segment(value, 4, kOut);
      }
    }
  }

 private:
  static uint64_t array_bytes(const Fields& fields, const Array& array) {
    uint64_t count = array.kind == kFixed     ? array.count
                     : array.kind == kCount32 ? fields.u32(array.count)
                                              : fields.u64(array.count);
    return count > kMaxArray ? kMaxArray + 1 : count * array.element;
  }

  size_t add_array(const Fields& fields, const Array& array) {
    return segment(fields.u64(array.pointer), array_bytes(fields, array), array.direction);
  }

  /// Of a list of drm_v3d_sem, which starts with the handle.
  void note_signals(size_t position, uint64_t bytes) {
    constexpr size_t kSem = 32;
    for (size_t at = 0; at < bytes; at += kSem) note_signal(Fields(call_->at(position + at), kSem).u32(0));
  }

  void id_lists(const Fields& fields, const Extension& extension) {
    size_t position = add_array(fields, extension.id_lists);
    uint64_t count = position ? array_bytes(fields, extension.id_lists) / 8 : 0;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t list;
      memcpy(&list, call_->at(position + i * 8), 8);
      segment(list, uint64_t{fields.u32(extension.id_count)} * 4, kIn);
    }
  }

  Call* call_;
  const std::span<const uint32_t> syncobjs_;
  uint32_t signalled_ = 0;
  uint32_t num_segments_ = 0;
  uint32_t num_fds_ = 0;
  int32_t fd_numbers_[wire::kMaxFds] = {};
  bool no_memory_ = false;
};

}  // namespace

bool append_segments(Call* call, Driver driver, uint32_t request, uint32_t arg_size,
                     std::span<const uint32_t> syncobjs, uint32_t* signalled) {
  // The argument may be long (14 bits of size); no rule looks further than this.
  uint8_t bytes[128];
  size_t known = arg_size < sizeof(bytes) ? arg_size : sizeof(bytes);
  memcpy(bytes, call->at(sizeof(wire::IoctlRequest)), known);
  Fields fields(bytes, known);
  const uint32_t number = ioctl_number(request);
  Marshal marshal(call, syncobjs);
  for (const Rule& rule : kRules) {
    bool applies = rule.driver == driver || (rule.both && driver != Driver::kFence);
    if (applies && rule.number == number && (driver != Driver::kFence || ioctl_type(request) == '>')) {
      marshal.arrays(fields, rule.arrays, 5);
    }
  }
  if (driver == Driver::kV3d) {
    for (const Chained& chained : kChained) {
      if (chained.number != number) continue;
      if (fields.u32(chained.flags) & kSubmitExtension)
        marshal.extensions(fields.u64(chained.head));
      else
        marshal.note_signal(fields.u32(chained.out_sync));
    }
  }
  if (driver == Driver::kVc4 && number == 0xbc) marshal.atomic(fields);
  for (const DescriptorField& field : kDescriptors) {
    if (field.type == ioctl_type(request) && field.number == number && field.offset + 4u <= known) {
      marshal.descriptor(static_cast<int32_t>(fields.u32(field.offset)));
    }
  }
  wire::IoctlRequest header;
  memcpy(&header, call->at(0), sizeof(header));
  header.num_segments = marshal.num_segments();
  header.num_fds = marshal.num_fds();
  memcpy(header.fd_numbers, marshal.fd_numbers(), sizeof(header.fd_numbers));
  memcpy(call->at(0), &header, sizeof(header));
  *signalled = marshal.signalled();
  return !marshal.no_memory();
}

bool is_wait(Driver driver, uint32_t request) {
  constexpr uint32_t kDmaBufSync = 0x40086200;
  if (driver == Driver::kFence) return request == kDmaBufSync;
  if (driver == Driver::kFramebuffer) return ioctl_number(request) == 0x20;  // FBIO_WAITFORVSYNC
  switch (ioctl_number(request)) {
    case wire::kWaitBo:
      return driver == Driver::kV3d;
    case 0x3a:  // WAIT_VBLANK
      return driver == Driver::kVc4;
    case 0xc3:  // SYNCOBJ_WAIT
    case 0xca:  // SYNCOBJ_TIMELINE_WAIT
      return true;
    default:
      return false;
  }
}

}  // namespace v3d::shim
