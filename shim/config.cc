#include "shim/config.h"

#include <atomic>
#include <cstdlib>

#include "ioctl/wire.h"
#include "shim/raw.h"

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
  if (const char* socket = variable(wire::kSocketVariable)) {
    out->socket.add(socket);
    const char* slash = strrchr(socket, '/');
    if (!slash) {
      out->runtime_dir.add(".");
    } else {
      out->runtime_dir.add(socket, slash == socket ? 1 : static_cast<size_t>(slash - socket));
    }
    out->runtime_dir_ours = false;
  } else {
    if (const char* dir = variable("XDG_RUNTIME_DIR")) {
      out->runtime_dir.add(dir).add("/v3demu");
    } else {
      out->runtime_dir.add("/tmp/v3demu-").add(static_cast<uint64_t>(raw::geteuid()));
    }
    out->runtime_dir_ours = true;
    out->socket.add(out->runtime_dir.c_str()).add("/socket");
  }
  if (const char* run = variable(wire::kRunVariable)) out->run.add(run);
  out->host_dri = is("V3DEMU_HOST_DRI", "1");
  out->no_vc4 = is("V3DEMU_VC4", "0");
  out->real_tree = is("V3DEMU_TREE", "real");
  out->native_wsi = is("V3DEMU_WSI", "native");
  out->counts = is("V3DEMU_COUNT", "1");
  const char* device = variable("V3DEMU_DEVICE");
  out->chip = device && starts_with(device, "rpi4") ? 42 : 71;
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

int make_runtime_dir() {
  const Config& c = config();
  if (c.runtime_dir.overflowed() || c.socket.overflowed()) return ENAMETOOLONG;
  if (c.runtime_dir_ours) {
    int error = raw::mkdirat(AT_FDCWD, c.runtime_dir.c_str(), 0700);
    if (error < 0 && error != -EEXIST) return -error;
  }
  return check_runtime_dir();
}

int check_runtime_dir() {
  const Config& c = config();
  if (!c.runtime_dir_ours) return 0;
  struct stat st;
  int error = raw::fstatat(AT_FDCWD, c.runtime_dir.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  if (error < 0) return -error;
  if (!S_ISDIR(st.st_mode)) return ENOTDIR;
  return st.st_uid == raw::geteuid() && (st.st_mode & 077) == 0 ? 0 : EPERM;
}

void complain(const char* what, const char* detail, const char* more) {
  Text<2048> line;
  line.add("v3demu: ").add(what).add(detail).add(more).add('\n');
  raw::write(2, line.c_str(), line.size());
}

}  // namespace v3d::shim
