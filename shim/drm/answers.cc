#include "shim/drm/answers.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "ioctl/abi/core.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/process/raw.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {

namespace drm = ioctl::drm;

namespace {

constexpr size_t kMostText = 64, kTexts = 3;
constexpr uint64_t kNumValues = 64, kNumCounters = 128;

/// Written once; readers see nothing or all of it.
template <typename T>
struct Once {
  std::atomic<uint32_t> state;  ///< 0 empty, 1 being written, 2 there
  T value;

  const T* get() const { return state.load(std::memory_order_acquire) == 2 ? &value : nullptr; }
  void set(const T& fresh) {
    uint32_t empty = 0;
    if (!state.compare_exchange_strong(empty, 1)) return;
    memcpy(static_cast<void*>(&value), &fresh, sizeof(T));
    state.store(2, std::memory_order_release);
  }
};

/// What VERSION says, with room for its texts.
struct Version {
  drm::Version args;
  char texts[kTexts][kMostText];
};

struct Answers {
  pid_t daemon;
  struct OfDriver {
    Once<Version> version;
    Once<uint64_t> caps[kNumValues];
    Once<uint64_t> params[kNumValues];
  } drivers[2];
  Once<drm::PerfmonGetCounter> counters[kNumCounters];
};

std::atomic<Answers*> answers{nullptr};

/// Those of the daemon that holds the file. Another daemon may model another chip; memory of the last one's
/// answers is left to whoever still reads it.
Answers* answers_of(const File& file, bool make) {
  Answers* known = answers.load(std::memory_order_acquire);
  if (known && known->daemon == file.daemon) return known;
  if (!make) return nullptr;
  auto* fresh = static_cast<Answers*>(raw::map_memory(sizeof(Answers)));
  if (!fresh) return nullptr;
  fresh->daemon = file.daemon;
  if (answers.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  raw::unmap_memory(fresh, sizeof(Answers));
  return known && known->daemon == file.daemon ? known : nullptr;
}

Answers::OfDriver* of_driver(Answers* all, Driver driver) {
  return all ? &all->drivers[driver == Driver::kVc4] : nullptr;
}

Answers::OfDriver* known_of(const LocalCall& call) {
  return of_driver(answers_of(call.file, false), call.driver);
}
Answers::OfDriver* made_of(const LocalCall& call) {
  return of_driver(answers_of(call.file, true), call.driver);
}

/// Asked once with room for everything, so that it can be answered from then on. Null: it could not.
const Version* ask_version(const LocalCall& call) {
  Version fresh{};
  fresh.args.name_len = fresh.args.date_len = fresh.args.desc_len = kMostText;
  fresh.args.name = raw::address_of(fresh.texts[0]);
  fresh.args.date = raw::address_of(fresh.texts[1]);
  fresh.args.desc = raw::address_of(fresh.texts[2]);
  if (forward_ioctl(call.file, drm::request::kVersion, raw::address_of(&fresh.args)) != 0 ||
      fresh.args.name_len > kMostText || fresh.args.date_len > kMostText || fresh.args.desc_len > kMostText) {
    return nullptr;
  }
  Answers::OfDriver* made = made_of(call);
  if (!made) return nullptr;
  made->version.set(fresh);
  return made->version.get();
}

/// What changes while a daemon lives is not kept.
bool is_fixed(uint32_t param) {
  return param != drm::kParamGlobalResetCounter && param != drm::kParamContextResetCounter;
}

}  // namespace

// Texts have no terminating zero, and are as much as fits; their lengths are the whole ones (drm_version).
int answer_version(LocalCall& call, drm::Version& args) {
  const Answers::OfDriver* all = known_of(call);
  const Version* known = all ? all->version.get() : nullptr;
  if (!known) known = ask_version(call);
  if (!known) return LocalCall::kAskDaemon;
  args.major = known->args.major;
  args.minor = known->args.minor;
  args.patchlevel = known->args.patchlevel;
  struct {
    uint64_t *length, to, whole;
  } texts[kTexts] = {{&args.name_len, args.name, known->args.name_len},
                     {&args.date_len, args.date, known->args.date_len},
                     {&args.desc_len, args.desc, known->args.desc_len}};
  int result = 0;
  for (size_t i = 0; i < kTexts; ++i) {
    const uint64_t length = *texts[i].length < texts[i].whole ? *texts[i].length : texts[i].whole;
    *texts[i].length = texts[i].whole;
    if (length && texts[i].to && !copy_to_user(texts[i].to, known->texts[i], static_cast<size_t>(length)))
      result = -EFAULT;
  }
  return result;
}

int answer_get_cap(LocalCall& call, drm::GetCap& args) {
  const Answers::OfDriver* all = known_of(call);
  const uint64_t* known = all && args.capability < kNumValues ? all->caps[args.capability].get() : nullptr;
  if (!known) return LocalCall::kAskDaemon;
  args.value = *known;
  return 0;
}

void remember_get_cap(LocalCall& call, drm::GetCap& args) {
  Answers::OfDriver* made = args.capability < kNumValues ? made_of(call) : nullptr;
  if (made) made->caps[args.capability].set(args.value);
}

// The input value is checked (drm-abi.md 2.8): anything unusual is the daemon's to judge.
int answer_get_param(LocalCall& call, drm::GetParam& args) {
  const Answers::OfDriver* all = known_of(call);
  const bool usual = !args.pad && !args.value && args.param < kNumValues;
  const uint64_t* known = all && usual ? all->params[args.param].get() : nullptr;
  if (!known) return LocalCall::kAskDaemon;
  args.value = *known;
  return 0;
}

void remember_get_param(LocalCall& call, drm::GetParam& args) {
  Answers::OfDriver* made = args.param < kNumValues && is_fixed(args.param) ? made_of(call) : nullptr;
  if (made) made->params[args.param].set(args.value);
}

int answer_get_counter(LocalCall& call, drm::PerfmonGetCounter& args) {
  const Answers* all = answers_of(call.file, false);
  if (!all || args.counter >= kNumCounters) return LocalCall::kAskDaemon;
  for (const uint8_t byte : args.reserved)
    if (byte) return LocalCall::kAskDaemon;
  const drm::PerfmonGetCounter* known = all->counters[args.counter].get();
  if (!known) return LocalCall::kAskDaemon;
  args = *known;
  return 0;
}

void remember_get_counter(LocalCall& call, drm::PerfmonGetCounter& args) {
  Answers* made = args.counter < kNumCounters ? answers_of(call.file, true) : nullptr;
  if (made) made->counters[args.counter].set(args);
}

}  // namespace v3d::shim
