#include "shim/process/place.h"

#include <sys/resource.h>

#include <atomic>

#include "ioctl/link/place.h"
#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

using v3d::place::kNumSettings;
using v3d::place::kSettings;

constexpr char kRuntimeVariable[] = "XDG_RUNTIME_DIR";

const char* variable(const char* name) {
  const char* value = environment_variable(name);
  return value && *value ? value : nullptr;
}

/// access(2) by the effective ids.
bool may_write(const char* path) {
  constexpr long kFaccessat2 = 439;
  const long error = raw::call(kFaccessat2, AT_FDCWD, raw::word(path), W_OK | X_OK, AT_EACCESS);
  return error == -ENOSYS ? raw::access(path, W_OK | X_OK) == 0 : error == 0;
}

/// A path is meant from the folder in which the program stands.
void add_absolute(const char* path, Path* out) {
  if (*path != '/') {
    // Without a working folder the path means nothing, and stays.
    const long size = raw::call(SYS_getcwd, raw::word(out->data()), static_cast<long>(Path::capacity() - 1));
    if (size > 1) out->set_size(static_cast<size_t>(size) - 1);
    if (size > 1 && out->c_str()[size - 2] != '/') out->add('/');
    while (strncmp(path, "./", 2) == 0) path += 2;
  }
  out->add(path);
}

/// What the environment asks for.
struct Wishes {
  const char* values[kNumSettings];
  Path paths[2];

  Wishes() {
    size_t used = 0;
    for (size_t i = 0; i < kNumSettings; ++i) {
      values[i] = variable(kSettings[i].variable);
      if (!values[i] || !kSettings[i].is_path || strcmp(values[i], "-") == 0 || used == 2) continue;
      add_absolute(values[i], &paths[used]);
      values[i] = paths[used++].c_str();
    }
  }
};

/// Whether a former user's $V3DEMU_SOCKET is of use to this one.
bool is_open_to(const DaemonPlace& place) {
  struct stat st;
  if (raw::fstatat(AT_FDCWD, place.socket.c_str(), &st, 0) == 0) return st.st_uid == place.user;
  return may_write(place.runtime_dir.c_str());
}

void read_named_socket(const char* named, DaemonPlace* out) {
  Path socket;
  add_absolute(named, &socket);
  out->socket.add(socket.c_str());
  const char* slash = strrchr(socket.c_str(), '/');
  if (!slash) {
    out->runtime_dir.add(".");
  } else {
    out->runtime_dir.add(socket.c_str(),
                         slash == socket.c_str() ? 1 : static_cast<size_t>(slash - socket.c_str()));
  }
}

const char* why_not_in(const char* runtime, uid_t user) {
  Path folder;
  folder.add(runtime).add("/v3demu");
  struct stat outer, inner;
  const bool has_outer = raw::fstatat(AT_FDCWD, runtime, &outer, 0) == 0;
  const bool has_inner = raw::fstatat(AT_FDCWD, folder.c_str(), &inner, AT_SYMLINK_NOFOLLOW) == 0;
  return v3d::place::why_not_in(has_outer ? &outer : nullptr, has_inner ? &inner : nullptr,
                                may_write(runtime), user);
}

/// A program that has become another user more than once.
struct OtherPlace {
  DaemonPlace place;
  const OtherPlace* next;
};
std::atomic<const OtherPlace*> other_places{nullptr};

}  // namespace

void read_usual_place(DaemonPlace* out) {
  *out = DaemonPlace{};
  out->user = raw::geteuid();
  const char* runtime = variable(kRuntimeVariable);
  if (runtime) out->not_in_xdg = why_not_in(runtime, out->user);
  if (runtime && !out->not_in_xdg) {
    out->runtime_dir.add(runtime).add("/v3demu");
  } else {
    out->runtime_dir.add("/tmp/v3demu-").add(static_cast<uint64_t>(out->user));
  }
  out->runtime_dir_ours = true;
  const Wishes wishes;
  out->socket.add(out->runtime_dir.c_str()).add('/');
  v3d::place::add_socket_name(wishes.values,
                              [out](const char* text, size_t size) { out->socket.add(text, size); });
}

void read_place(DaemonPlace* out, uid_t former_user) {
  *out = DaemonPlace{};
  out->user = raw::geteuid();
  if (const char* named = variable(wire::kSocketVariable)) {
    read_named_socket(named, out);
    if (out->user == former_user || is_open_to(*out)) return;
    read_usual_place(out);
    out->not_by_name = " is not open to this user";
    return;
  }
  read_usual_place(out);
}

void read_place(DaemonPlace* out) { read_place(out, raw::geteuid()); }

bool has_changed_user() { return raw::geteuid() != config().user; }

const DaemonPlace& place() {
  const uid_t user = raw::geteuid();
  if (user == config().user) return config();
  const OtherPlace* head = other_places.load(std::memory_order_acquire);
  for (const OtherPlace* one = head; one; one = one->next)
    if (one->place.user == user) return one->place;
  auto* fresh = static_cast<OtherPlace*>(raw::map_memory(sizeof(OtherPlace)));
  if (!fresh) return config();
  read_place(&fresh->place, config().user);
  do {
    fresh->next = head;
  } while (!other_places.compare_exchange_weak(head, fresh, std::memory_order_acq_rel));
  return fresh->place;
}

namespace {

int check(const DaemonPlace& p) {
  if (!p.runtime_dir_ours) return 0;
  struct stat st;
  int error = raw::fstatat(AT_FDCWD, p.runtime_dir.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  if (error < 0) return -error;
  if (!S_ISDIR(st.st_mode)) return ENOTDIR;
  return st.st_uid == p.user && (st.st_mode & 077) == 0 ? 0 : EPERM;
}

}  // namespace

int make_runtime_dir(const DaemonPlace& at) {
  if (at.runtime_dir.overflowed() || at.socket.overflowed()) return ENAMETOOLONG;
  if (at.runtime_dir_ours) {
    int error = raw::mkdirat(AT_FDCWD, at.runtime_dir.c_str(), 0700);
    if (error < 0 && error != -EEXIST) return -error;
  }
  return check(at);
}

int make_runtime_dir() { return make_runtime_dir(place()); }
int check_runtime_dir() { return check(place()); }

namespace {

/// Whether a daemon that this process starts would be short of something to the end of its life. Root lifts
/// limits.
bool is_limited() {
  if (raw::geteuid() == 0) return false;
  constexpr rlim_t kFewDescriptors = 4096;
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_NOFILE}) {
    rlimit limit{};
    if (raw::call(SYS_prlimit64, 0, resource, 0, raw::word(&limit)) < 0) continue;
    if (limit.rlim_max < (resource == RLIMIT_NOFILE ? kFewDescriptors : RLIM_INFINITY)) return true;
  }
  constexpr long kUsual = 20;  // the system call's, of niceness 0; less is nicer
  const long priority = raw::call(SYS_getpriority, PRIO_PROCESS, 0);
  return priority > 0 && priority < kUsual;
}

}  // namespace

void limited_socket(const DaemonPlace& at, Text<108>* out) {
  enum : int { kUnknown, kNo, kYes };
  static std::atomic<int> limited{kUnknown};
  if (limited.load(std::memory_order_relaxed) == kUnknown) limited.store(is_limited() ? kYes : kNo);
  out->clear();
  if (at.runtime_dir_ours && limited.load(std::memory_order_relaxed) == kYes)
    out->add(at.socket.c_str()).add(kLimitedSuffix);
}

void tell_of_other_folder() {
  const DaemonPlace& p = place();
  if (!p.not_in_xdg && !p.not_by_name) return;
  const char* name = p.not_by_name ? wire::kSocketVariable : kRuntimeVariable;
  Path why;
  why.add(name).add('=').add(variable(name) ? variable(name) : "");
  why.add(p.not_by_name ? p.not_by_name : p.not_in_xdg);
  complain(why.c_str(), ": the daemon is in ", p.runtime_dir.c_str());
}

bool add_wishes(const DaemonPlace& at, Text<8192>* command) {
  const Wishes wishes;
  bool any = false;
  command->add(v3d::place::kCompareCommand);
  for (size_t i = 0; i < kNumSettings; ++i) {
    const v3d::place::Setting& setting = kSettings[i];
    if (setting.other == v3d::place::OtherValue::kApart) continue;
    const char* value = wishes.values[i] ? wishes.values[i] : at.runtime_dir_ours ? setting.usual : nullptr;
    if (!value) continue;
    command->add(setting.name).add('=').add(value).add('\n');
    any = true;
  }
  return any && !command->overflowed();
}

}  // namespace v3d::shim
