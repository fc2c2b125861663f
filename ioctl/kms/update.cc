/// @file Values of properties as clients set them (Linux drm_property.c, drm_atomic_uapi.c).
#include "ioctl/kms/update.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace v3d::ioctl::kms {
namespace {

constexpr uint64_t kRotateMask = 15;

/// Bytes that a blob must have.
size_t blob_size(PropertyId property) {
  constexpr size_t kCtmBytes = 9 * sizeof(uint64_t), kHdrBytes = 32;
  return property == kModeId ? sizeof(drm::ModeInfo) : property == kCtm ? kCtmBytes : kHdrBytes;
}

bool is_enum_value(const Property& property, uint64_t value) {
  return std::any_of(property.enums.begin(), property.enums.end(),
                     [&](const EnumValue& known) { return known.value == value; });
}

bool is_bits(const Property& property, uint64_t value) {
  uint64_t mask = 0;
  for (const EnumValue& bit : property.enums) mask |= uint64_t{1} << bit.value;
  return (value & ~mask) == 0;
}

bool is_object(Display& display, uint64_t type, uint64_t id) {
  if (id == 0) return true;
  if (id > UINT32_MAX) return false;
  return type == drm::kObjectFb
             ? display.find_fb(static_cast<uint32_t>(id)) != nullptr
             : find_object(static_cast<uint32_t>(id), static_cast<uint32_t>(type)) != nullptr &&
                   display.has(static_cast<uint32_t>(id));
}

}  // namespace

bool is_valid(Display& display, const Property& property, uint64_t value) {
  const uint32_t flags = property.flags;
  if (flags & drm::kPropertyImmutable) return false;
  if (flags & drm::kPropertyRange) return value >= property.min && value <= property.max;
  if (flags & drm::kPropertySignedRange)
    return static_cast<int64_t>(value) >= static_cast<int64_t>(property.min) &&
           static_cast<int64_t>(value) <= static_cast<int64_t>(property.max);
  if (flags & drm::kPropertyBitmask) return is_bits(property, value);
  if (flags & drm::kPropertyBlob)
    return value == 0 || (value <= UINT32_MAX && display.find_blob(static_cast<uint32_t>(value)));
  if (flags & drm::kPropertyObject) return is_object(display, property.min, value);
  return is_enum_value(property, value);
}

bool has_property(const Display& display, const Object& object, uint32_t property) {
  return display.has_property(property) &&
         std::any_of(object.properties.begin(), object.properties.end(),
                     [&](const Attached& attached) { return attached.property == property; });
}

int Update::set(const Object& object, uint32_t id, uint64_t value) {
  if (!has_property(call_.kernel.display(), object, id)) return ENOENT;
  const auto property = static_cast<PropertyId>(id);
  changed_ |= bit_of(object.id);
  if (!is_valid(call_.kernel.display(), *find_property(id), value)) return EINVAL;
  const uint32_t pipe = find_pipe(object.id);
  const bool is_primary = pipe != kNumPipes && kPipes[pipe].primary == object.id;
  if (async_ && !(is_primary && (property == kFb || property == kInFence)))
    return call_.kernel.display().state().of(object.id).get(property) == value ? 0 : EINVAL;
  return set_value(object, property, value);
}

int Update::set_value(const Object& object, PropertyId property, uint64_t value) {
  Values& values = objects_[index_of(object)];
  switch (property) {
    case kInFence:
      return set_in_fence(values, static_cast<int32_t>(value));
    case kOutFence:
      return set_fence_pointer(&out_fences_[find_pipe(object.id)], value);
    case kWritebackFence:
      return set_fence_pointer(&write_fences_[find_pipe(object.id)], value);
    case kWritebackFb:
    case kFb:
      values.fb = call_.kernel.display().find_fb(static_cast<uint32_t>(value));
      if (value && !values.fb) return EINVAL;  // removed meanwhile
      break;
    case kModeId:
    case kCtm:
    case kHdrMetadata:
      if (const int error = set_blob(values, property, value)) return error;
      break;
    case kCrtc:
      if (value && !call_.file.holds(static_cast<uint32_t>(value))) return EACCES;
      break;
    case kDpms:
      return EINVAL;  // by (OBJ_)SETPROPERTY alone
    case kRotation:
      if (!std::has_single_bit(value & kRotateMask)) return EINVAL;
      break;
    default:
      break;
  }
  values.values[property - kFirstPropertyId] = value;
  values.set |= uint64_t{1} << (property - kFirstPropertyId);
  return 0;
}

int Update::set_fence_pointer(uint64_t* to, uint64_t address) {
  if (address == 0) return 0;
  if (!call_.user.put(address, int32_t{-1})) return EFAULT;
  *to = address;
  return 0;
}

bool Update::writes_to(uint32_t pipe) const {
  if (!kPipes[pipe].connector) return false;
  return (objects_[index_of(kPipes[pipe].connector)].set >> (kWritebackFb - kFirstPropertyId) & 1) != 0;
}

bool Update::has_fence_of_nothing() const {
  for (uint32_t pipe = 0; pipe < kNumPipes; ++pipe)
    if (write_fence(pipe) && !objects_[index_of(kPipes[pipe].connector)].fb) return true;
  return false;
}

int Update::set_in_fence(Values& values, int32_t fd) {
  if (values.in_fence) return EINVAL;
  if (fd == -1) return 0;
  const int found = call_.fds.find(fd);
  const auto file = found < 0 ? nullptr : call_.kernel.find_sync_file(found);
  if (!file) return EINVAL;
  values.in_fence = file->fence;
  return 0;
}

int Update::set_blob(Values& values, PropertyId property, uint64_t id) {
  BlobPtr blob = call_.kernel.display().find_blob(static_cast<uint32_t>(id));
  if (id && (!blob || blob->bytes.size() != blob_size(property))) return EINVAL;
  if (blob && property == kModeId) {
    drm::ModeInfo mode;
    std::memcpy(&mode, blob->bytes.data(), sizeof mode);
    if (check_mode(mode, call_.kernel.display().unit().max_pixels)) return EINVAL;
  }
  values.blobs[property == kCtm] = std::move(blob);
  return 0;
}

void Update::apply(DisplayState& state) const {
  for (uint32_t i = 0; i < kNumObjects; ++i) {
    const Values& values = objects_[i];
    ObjectState& object = state.objects[i];
    if (values.in_fence) object.in_fence = values.in_fence;
    for (uint64_t left = values.set; left; left &= left - 1) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(left));
      const auto property = static_cast<PropertyId>(kFirstPropertyId + bit);
      if (property == kFb)
        object.set_fb(values.fb);
      else if (property == kWritebackFb)
        object.fb = values.fb;
      else if (property == kModeId || property == kCtm || property == kHdrMetadata)
        object.set_blob(property, values.blobs[property == kCtm]);
      else
        object.set(property, values.values[bit]);
    }
  }
}

uint32_t Update::pipes(const DisplayState& before) const {
  DisplayState after = before;
  apply(after);
  return pipes_of(before, after, changed_);
}

}  // namespace v3d::ioctl::kms
