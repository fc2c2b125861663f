#include "shim/board/firmware_calls.h"

#include <cstdlib>
#include <cstring>

#include "shim/board/firmware.h"
#include "shim/board/firmware_file.h"
#include "shim/link/connection.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"

namespace v3d::shim {
namespace {

/// What gpu_mem in config.txt would be.
uint32_t asked_memory_mib() {
  const char* text = environment_variable(kMemoryVariable);
  return text ? static_cast<uint32_t>(strtoul(text, nullptr, 10)) : 0;
}

}  // namespace

int open_firmware_file(FirmwareFile* out) {
  Call call(wire::kOpen, kStartDaemon | kCloseOnExec);
  const wire::OpenRequest request{wire::kFirstRenderMinor, O_RDWR | O_CLOEXEC};
  int error = call.open();
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  wire::FileReply reply;
  const int fd = call.take(0);
  if (fd < 0) return -EMFILE;
  if (call.reply_size() < sizeof(reply)) {
    raw::close(fd);
    return -ENODEV;
  }
  memcpy(&reply, call.reply(), sizeof(reply));
  *out = {fd, call.daemon(), reply.token};
  return 0;
}

bool has_user_programs() {
  const Tree* nodes = tree();
  return nodes && board_of(nodes->chip).soc->peripherals != 0;
}

int call_firmware(wire::FirmwareCall what, uint32_t a, uint32_t b, uint32_t c, uint32_t* answer, int* mapped,
                  uint32_t* handle) {
  raw::KeepErrno keep;
  FirmwareFile file;
  if (const int error = find_firmware_file(&file)) return error;
  Call call(wire::kFirmware, kCloseOnExec);
  const wire::FirmwareRequest request{file.token, what, {a, b, c}, asked_memory_mib(), 0};
  int error = call.open(file.daemon, file.fd);
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  wire::FirmwareReply reply;
  if (call.reply_size() < sizeof(reply)) return -EPROTO;
  memcpy(&reply, call.reply(), sizeof(reply));
  *answer = reply.word;
  if (handle) *handle = reply.handle;
  if (!mapped) return 0;
  *mapped = call.take(0);
  return *mapped < 0 ? -EMFILE : 0;
}

}  // namespace v3d::shim
