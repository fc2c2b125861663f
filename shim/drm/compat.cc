#include "shim/drm/compat.h"

#include <cerrno>
#include <cstring>

#include "ioctl/abi/core.h"
#include "ioctl/abi/framebuffer.h"
#include "ioctl/abi/mode.h"
#include "ioctl/abi/request.h"
#include "shim/drm/driver.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/process/raw.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

namespace drm = ioctl::drm;
namespace fb = ioctl::fb;

/// @name The short layouts, and how their fields get to the long ones and back
/// @{
struct Version32 {
  int32_t major, minor, patchlevel;
  uint32_t name_len, name, date_len, date, desc_len, desc;
};
void widen(const Version32& from, drm::Version* to) {
  *to = {from.major,    from.minor, from.patchlevel, 0,        from.name_len, from.name,
         from.date_len, from.date,  from.desc_len,   from.desc};
}
void narrow(const drm::Version& from, Version32* to) {
  to->major = from.major;
  to->minor = from.minor;
  to->patchlevel = from.patchlevel;
  to->name_len = static_cast<uint32_t>(from.name_len);
  to->date_len = static_cast<uint32_t>(from.date_len);
  to->desc_len = static_cast<uint32_t>(from.desc_len);
}

struct Unique32 {
  uint32_t unique_len, unique;
};
void widen(const Unique32& from, drm::Unique* to) { *to = {from.unique_len, from.unique}; }
void narrow(const drm::Unique& from, Unique32* to) {
  to->unique_len = static_cast<uint32_t>(from.unique_len);
}

struct Client32 {
  int32_t idx, auth;
  uint32_t pid, uid, magic, iocs;
};
void widen(const Client32& from, drm::Client* to) {
  *to = {from.idx, from.auth, from.pid, from.uid, from.magic, from.iocs};
}
void narrow(const drm::Client& from, Client32* to) {
  *to = {from.idx,
         from.auth,
         static_cast<uint32_t>(from.pid),
         static_cast<uint32_t>(from.uid),
         static_cast<uint32_t>(from.magic),
         static_cast<uint32_t>(from.iocs)};
}

struct Stats32 {
  uint32_t count;
  struct {
    uint32_t value, type;
  } data[15];
};
void widen(const Stats32&, drm::Stats* to) { *to = {}; }
void narrow(const drm::Stats& from, Stats32* to) {
  to->count = static_cast<uint32_t>(from.count);
  for (size_t i = 0; i < 15; ++i)
    to->data[i] = {static_cast<uint32_t>(from.data[i].value), from.data[i].type};
}

struct WaitVblank32 {
  uint32_t type, sequence;
  int32_t signal_or_sec, usec;
};
void widen(const WaitVblank32& from, drm::WaitVblank* to) {
  *to = {from.type, from.sequence, {static_cast<uint32_t>(from.signal_or_sec)}, 0};
}
void narrow(const drm::WaitVblank& from, WaitVblank32* to) {
  *to = {from.type, from.sequence, static_cast<int32_t>(from.tval_sec), static_cast<int32_t>(from.tval_usec)};
}

struct FixedScreen32 {
  char id[16];
  uint32_t smem_start, smem_len, type, type_aux, visual;
  uint16_t xpanstep, ypanstep, ywrapstep;
  uint32_t line_length, mmio_start, mmio_len, accel;
  uint16_t capabilities, reserved[2];
};
void widen(const FixedScreen32&, fb::FixedScreen* to) { *to = {}; }
void narrow(const fb::FixedScreen& from, FixedScreen32* to) {
  *to = {{},
         static_cast<uint32_t>(from.smem_start),
         from.smem_len,
         from.type,
         from.type_aux,
         from.visual,
         from.xpanstep,
         from.ypanstep,
         from.ywrapstep,
         from.line_length,
         static_cast<uint32_t>(from.mmio_start),
         from.mmio_len,
         from.accel,
         from.capabilities,
         {}};
  memcpy(to->id, from.id, sizeof(to->id));
}

struct Colors32 {
  uint32_t start, len, red, green, blue, transp;
};
void widen(const Colors32& from, fb::Colors* to) {
  *to = {from.start, from.len, from.red, from.green, from.blue, from.transp};
}
void narrow(const fb::Colors&, Colors32*) {}
/// @}

static_assert(sizeof(Version32) == 36 && sizeof(Client32) == 24 && sizeof(Stats32) == 124 &&
              sizeof(WaitVblank32) == 16 && sizeof(FixedScreen32) == 68 && sizeof(Colors32) == 24);

/// Makes the call by `forward` with the long layout in place of the short one.
template <typename Short, typename Long, typename Forward>
int convert(uint64_t argument, Forward forward) {
  Short narrow_args;
  if (!copy_from_user(&narrow_args, argument, sizeof(narrow_args))) return -EFAULT;
  Long args;
  widen(narrow_args, &args);
  const int result = forward(raw::address_of(&args));
  if (result != 0) return result;
  narrow(args, &narrow_args);
  return copy_to_user(argument, &narrow_args, sizeof(narrow_args)) ? 0 : -EFAULT;
}

/// True when the request has the number of `word`, and the size of the short layout.
template <typename Short, typename Long>
bool convert_drm(uint32_t word, const File& file, uint32_t request, uint64_t argument, int* result) {
  if (request != drm::request_of_size(word, sizeof(Short))) return false;
  *result = convert<Short, Long>(argument, [&](uint64_t args) { return drm_ioctl(file, word, args); });
  return true;
}

template <typename Short, typename Long>
bool convert_framebuffer(uint32_t word, int fd, uint32_t known, uint64_t argument, int* result) {
  if (known != word) return false;
  *result = convert<Short, Long>(
      argument, [&](uint64_t args) { return forward_fd_ioctl(fd, Driver::kFramebuffer, known, args); });
  return true;
}

}  // namespace

bool compat_drm_ioctl(const File& file, uint32_t request, uint64_t argument, int* result) {
  namespace word = drm::request;
  return raw::kIs32Bit &&
         (convert_drm<Version32, drm::Version>(word::kVersion, file, request, argument, result) ||
          convert_drm<Unique32, drm::Unique>(word::kGetUnique, file, request, argument, result) ||
          convert_drm<Client32, drm::Client>(word::kGetClient, file, request, argument, result) ||
          convert_drm<Stats32, drm::Stats>(word::kGetStats, file, request, argument, result) ||
          convert_drm<WaitVblank32, drm::WaitVblank>(word::kWaitVblank, file, request, argument, result));
}

bool compat_framebuffer_ioctl(int fd, uint32_t known, uint64_t argument, int* result) {
  namespace word = fb::request;
  return raw::kIs32Bit &&
         (convert_framebuffer<FixedScreen32, fb::FixedScreen>(word::kGetFixed, fd, known, argument, result) ||
          convert_framebuffer<Colors32, fb::Colors>(word::kGetColors, fd, known, argument, result) ||
          convert_framebuffer<Colors32, fb::Colors>(word::kPutColors, fd, known, argument, result));
}

}  // namespace v3d::shim
