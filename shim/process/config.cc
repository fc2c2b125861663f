#include "shim/process/config.h"

#include <atomic>
#include <cstdlib>

#include "gpu/chip/board.h"
#include "ioctl/link/wire.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

// Not a Config object: its constructor would run after the first use and wipe it.
alignas(Config) unsigned char storage[sizeof(Config)];
std::atomic<bool> ready{false};

const char* variable(const char* name) {
  const char* value = environment_variable(name);
  return value && *value ? value : nullptr;
}

bool is(const char* name, const char* expected) {
  const char* value = variable(name);
  return value && strcmp(value, expected) == 0;
}

void read_environment(Config* out) {
  read_place(out);
  if (const char* run = variable(wire::kRunVariable)) out->run.add(run);
  out->host_dri = is("V3DEMU_HOST_DRI", "1");
  out->no_vc4 = is("V3DEMU_VC4", "0");
  out->no_board = is("V3DEMU_BOARD", "0");
  out->real_tree = is("V3DEMU_TREE", "real");
  out->native_wsi = is("V3DEMU_WSI", "native");
  out->counts = is("V3DEMU_COUNT", "1");
  const char* device = variable("V3DEMU_DEVICE");
  if (device) out->device.add(device);
  out->chip = static_cast<uint32_t>(version_number(chip::kBoards[0].soc->generation));
  for (const chip::Board& board : chip::kBoards)
    if (strcmp(board.name, out->device.c_str()) == 0)
      out->chip = static_cast<uint32_t>(version_number(board.soc->generation));
}

// Before main, while one thread runs, so that the lazy path is taken by early calls only.
[[gnu::constructor(101)]] void read_early() { config(); }

}  // namespace

const char* environment_variable(const char* name) {
  size_t length = strlen(name);
  for (char** entry = environ; entry && *entry; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

const Config& config() {
  Config* shared = reinterpret_cast<Config*>(storage);
  if (!ready.load(std::memory_order_acquire)) {
    Config fresh{};
    read_environment(&fresh);
    memcpy(storage, static_cast<void*>(&fresh), sizeof(fresh));
    ready.store(true, std::memory_order_release);
  }
  return *shared;
}

void complain(const char* what, const char* detail, const char* more) {
  Text<2048> line;
  line.add("v3demu: ").add(what).add(detail).add(more).add('\n');
  raw::write(2, line.c_str(), line.size());
}

}  // namespace v3d::shim
