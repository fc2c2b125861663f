#include "shim/drm/answers.h"

#include <atomic>
#include <cstring>

#include "shim/process/raw.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

constexpr uint32_t kGetCap = 0xc010640c, kGetParam = 0xc0106444, kGetCounter = 0xc168644c;
constexpr size_t kVersionSize = 64, kPairSize = 16, kCounterSize = 360;
constexpr uint64_t kNumPairs = 64, kNumCounters = 128;
constexpr uint64_t kFirstResetCounter = 15;  ///< GET_PARAM: what changes while a daemon lives

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

struct Counter {
  uint8_t bytes[kCounterSize];
};

struct Answers {
  pid_t daemon;
  struct OfDriver {
    Once<Version> version;
    Once<uint64_t> caps[kNumPairs];
    Once<uint64_t> params[kNumPairs];
  } drivers[2];
  Once<Counter> counters[kNumCounters];
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

/// GET_CAP and GET_PARAM: a number in, a value out.
struct Pair {
  uint64_t key, value;
};

Once<uint64_t>* pair_slot(Answers* all, Driver driver, uint32_t request, uint64_t key) {
  Answers::OfDriver* mine = of_driver(all, driver);
  if (!mine || key >= kNumPairs) return nullptr;
  if (request == kGetParam && (driver != Driver::kV3d || key >= kFirstResetCounter)) return nullptr;
  return request == kGetParam ? &mine->params[key] : &mine->caps[key];
}

/// drm_version: texts without terminating zero, as much as fits; then the full lengths.
int answer_version(const Version& known, uint64_t argument) {
  Version asked{};
  if (!copy_from_user(&asked, argument, kVersionSize)) return -EFAULT;
  asked.major = known.major;
  asked.minor = known.minor;
  asked.patch = known.patch;
  struct {
    uint64_t *size, to, full;
  } texts[] = {{&asked.name_size, asked.name, known.name_size},
               {&asked.date_size, asked.date, known.date_size},
               {&asked.description_size, asked.description, known.description_size}};
  int result = 0;
  for (size_t i = 0; i < 3; ++i) {
    uint64_t size = *texts[i].size < texts[i].full ? *texts[i].size : texts[i].full;
    *texts[i].size = texts[i].full;
    if (size && texts[i].to && !copy_to_user(texts[i].to, known.texts[i], size)) result = -EFAULT;
  }
  return copy_to_user(argument, &asked, kVersionSize) ? result : -EFAULT;
}

}  // namespace

bool find_answer(const File& file, Driver driver, uint32_t request, uint64_t argument, int* result) {
  Answers* all = answers_of(file, false);
  if (!all) return false;
  if (answers_version(request)) {
    const Version* known = of_driver(all, driver)->version.get();
    if (known) *result = answer_version(*known, argument);
    return known;
  }
  if (request == kGetCap || request == kGetParam) {
    Pair pair;
    if (!copy_from_user(&pair, argument, kPairSize)) return false;
    // GET_PARAM checks its input value (drm-abi.md 2.8): anything unusual is the daemon's to judge.
    const Once<uint64_t>* slot =
        request == kGetParam && pair.value ? nullptr : pair_slot(all, driver, request, pair.key);
    const uint64_t* known = slot ? slot->get() : nullptr;
    if (!known) return false;
    pair.value = *known;
    *result = copy_to_user(argument, &pair, kPairSize) ? 0 : -EFAULT;
    return true;
  }
  if (request == kGetCounter && driver == Driver::kV3d) {
    Counter asked;
    if (!copy_from_user(&asked, argument, kCounterSize) || asked.bytes[0] >= kNumCounters) return false;
    for (size_t i = kCounterSize - 7; i < kCounterSize; ++i) {  // reserved, must be zero
      if (asked.bytes[i]) return false;
    }
    const Counter* known = all->counters[asked.bytes[0]].get();
    if (known) *result = copy_to_user(argument, known, kCounterSize) ? 0 : -EFAULT;
    return known;
  }
  return false;
}

void remember_answer(const File& file, Driver driver, uint32_t request, uint64_t argument) {
  if (request == kGetCap || request == kGetParam) {
    Pair pair;
    if (!copy_from_user(&pair, argument, kPairSize)) return;
    if (Once<uint64_t>* slot = pair_slot(answers_of(file, true), driver, request, pair.key))
      slot->set(pair.value);
  } else if (request == kGetCounter && driver == Driver::kV3d) {
    Counter answer;
    if (!copy_from_user(&answer, argument, kCounterSize) || answer.bytes[0] >= kNumCounters) return;
    if (Answers* all = answers_of(file, true)) all->counters[answer.bytes[0]].set(answer);
  }
}

bool remember_version(const File& file, Driver driver, const Version& version) {
  if (version.name_size > kVersionText || version.date_size > kVersionText ||
      version.description_size > kVersionText) {
    return false;
  }
  Answers* all = answers_of(file, true);
  if (!all) return false;
  of_driver(all, driver)->version.set(version);
  return of_driver(all, driver)->version.get();
}

}  // namespace v3d::shim
