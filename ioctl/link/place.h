/// A daemon is found in a folder of the user's, at a socket for each set of settings. The preload
/// library, the daemon and the tools have to agree on both. No dependencies: the shim includes it.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace v3d::place {

/// What another value means to a program that asked for one.
enum class OtherValue : uint8_t {
  kRefused,  ///< its GPU would be another one
  kTold,     ///< what is written of it, or where, is not what was asked for
  kApart,    ///< as kTold, but the command "debug" compares
};

/// Of a daemon. Two daemons of the same settings are the same to a program.
struct Setting {
  const char* name;      ///< in messages
  const char* variable;  ///< of the environment that asks for a value
  const char* usual;     ///< where nobody asks; the tests of the daemon compare that with its own defaults
  const char* mark;      ///< before the value in the name of the socket
  OtherValue other;
  bool is_path = false;
};

inline constexpr Setting kSettings[] = {
    {"device", "V3DEMU_DEVICE", "rpi5", "-", OtherValue::kRefused},
    {"kernel", "V3DEMU_KERNEL", "7.3", "-", OtherValue::kRefused},
    {"timing", "V3DEMU_TIMING", "off", "-", OtherValue::kRefused},
    {"engine", "V3DEMU_JIT", "auto", "-jit=", OtherValue::kRefused},
    {"level", "V3DEMU_LEVEL", "", "-level=", OtherValue::kRefused},
    {"vblank-hz", "V3DEMU_VBLANK_HZ", "60", "-hz=", OtherValue::kRefused},
    {"no-execute", "V3DEMU_NO_EXECUTE", "0", "-no-execute=", OtherValue::kRefused},
    {"leave-out", "V3DEMU_LEAVE_OUT", "", "-without=", OtherValue::kRefused},
    {"memory", "V3DEMU_MEMORY", "", "-memory=", OtherValue::kRefused},
    {"capture", "V3DEMU_CAPTURE", "", "", OtherValue::kTold, true},
    {"debug", "V3DEMU_DEBUG", "", "", OtherValue::kApart},
    {"log", "V3DEMU_LOG", "", "", OtherValue::kTold, true},
    {"trace-qpu", "V3DEMU_TRACE_QPU", "", "", OtherValue::kTold},
    {"hazards", "V3DEMU_HAZARDS", "", "", OtherValue::kTold},
    {"perf-map", "V3DEMU_PERF_MAP", "0", "", OtherValue::kTold},
    {"host-profile", "V3DEMU_HOST_PROFILE", "", "", OtherValue::kTold, true},
};
inline constexpr size_t kNumSettings = sizeof(kSettings) / sizeof(*kSettings);

/// The command of wire::kCommand by which a client asks whether a daemon is what it wants: this line, then
/// lines NAME=VALUE. The answer is nothing when it is, else one of the words below, a line end and a text
/// that goes on after "the daemon that runs at SOCKET".
inline constexpr char kCompareCommand[] = "settings\n";
inline constexpr char kRefusedAnswer[] = "refused\n", kToldAnswer[] = "told\n";
/// Where it says kAcceptOthers, what is refused is told only.
inline constexpr char kOthersVariable[] = "V3DEMU_OTHER_SETTINGS", kAcceptOthers[] = "accept";

/// Why a user's daemons cannot live in $XDG_RUNTIME_DIR, as a text after its name; nullptr: they can. Where
/// they cannot, they live in /tmp/v3demu-UID.
/// @param runtime  what stat says of it, null if there is none
/// @param folder  what lstat says of "v3demu" in it, null if there is none
/// @param writable  whether the user may write in it
inline const char* why_not_in(const struct stat* runtime, const struct stat* folder, bool writable,
                              uid_t user) {
  if (!runtime || !S_ISDIR(runtime->st_mode)) return runtime ? " is no folder" : " does not exist";
  if (folder) return folder->st_uid == user ? nullptr : "/v3demu belongs to another user";
  constexpr mode_t kEverybodys = S_ISVTX | S_IWOTH;  // as /tmp is
  if (runtime->st_uid != user && (runtime->st_mode & kEverybodys) != kEverybodys)
    return " belongs to another user";
  return writable ? nullptr : " cannot be written";
}

/// The name of the socket of a daemon of these settings, piece by piece: "socket", and what is not as usual.
/// @param values  kNumSettings texts; nullptr or empty: as usual
/// @param add  called with a text and its length
template <typename Add>
void add_socket_name(const char* const* values, Add add) {
  constexpr size_t kMostPlain = 12;
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const auto add_text = [&](const char* text) { add(text, std::strlen(text)); };
  uint32_t hash = 2166136261u;  // FNV-1a, of what does not stand in the name itself
  bool hashed = false;
  add_text("socket");
  for (size_t i = 0; i < kNumSettings; ++i) {
    const Setting& setting = kSettings[i];
    const char* value = values[i] ? values[i] : "";
    const size_t size = std::strlen(value);
    if (size == 0 || std::strcmp(value, setting.usual) == 0) continue;
    if (*setting.mark && size <= kMostPlain && std::strspn(value, kPlain) == size) {
      add_text(setting.mark);
      add_text(value);
      continue;
    }
    hashed = true;
    for (const char* text : {setting.name, value})
      for (const char* at = text; at == text || at[-1]; ++at)  // with the end of each
        hash = (hash ^ static_cast<uint8_t>(*at)) * 16777619u;
  }
  if (!hashed) return;
  add_text("-own=");
  for (int shift = 28; shift >= 0; shift -= 4) add(&"0123456789abcdef"[hash >> shift & 15], 1);
}

}  // namespace v3d::place
