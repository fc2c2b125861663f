#include "ioctl/base/account.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gpu/base/log.h"
#include "gpu/device/device.h"

namespace v3d::ioctl {
namespace {

constexpr uint64_t kKi = 1 << 10, kMi = 1 << 20, kGi = 1 << 30;
constexpr uint64_t kNone = UINT64_MAX;

// In the order of Resource.
constexpr std::array<ResourceRow, kNumResources> kTable = {{
    {"bo-bytes", "bytes of memory of buffer objects", 4 * kGi, 32 * kMi, kNone, ENOMEM, &HostRoom::memory,
     kGi},
    {"bos", "handles of buffer objects", 128 * kKi, 256, kMi, ENOMEM},
    {"mappings", "mappings of the daemon (vm.max_map_count)", kNone, 128, kMi, ENOMEM, &HostRoom::mappings,
     4096 + device::kMostCodeMappings},
    {"descriptors", "descriptors of the daemon", 64 * kKi, 32, kMi, EMFILE, &HostRoom::descriptors, 256},
    {"connections", "connections, one per thread of a client; each takes a thread", 2048, 2, 4096, ENOMEM,
     &HostRoom::threads, 64},
    {"open-nodes", "open device nodes", 1024, 4, 8192, EMFILE},
    {"address-spaces", "GPU address spaces; each reserves 12 GiB of addresses", 512, 4, 4096, ENOMEM},
    {"syncobjs", "handles of syncobjs", 128 * kKi, 256, kMi, ENOMEM},
    {"perfmons", "performance monitors", 64 * kKi, 64, 512 * kKi, ENOMEM},
    {"jobs", "jobs that have not ended", 64 * kKi, 64, 512 * kKi, ENOMEM},
    {"job-bytes", "bytes of the lists of jobs that have not ended", 256 * kMi, kMi, kGi, ENOMEM},
    {"derived-bytes",
     "bytes of what jobs make of their lists: those of tiles, shaded vertices, decoded programs", 2 * kGi,
     4 * kMi, 4 * kGi, ENOMEM, &HostRoom::memory, kGi},
    {"request-bytes", "bytes of requests and replies under way", 64 * kMi, 256 * kKi, 256 * kMi, ENOMEM},
    {"watches", "fences that waits, sync_files and timeline points look at", 256 * kKi, kKi, kMi, ENOMEM},
    {"framebuffers", "framebuffers of the display", 4 * kKi, 64, 16 * kKi, ENOMEM},
    {"blobs", "blobs for properties of the display", 4 * kKi, 64, 16 * kKi, ENOMEM},
    {"blob-bytes", "bytes of them", 16 * kMi, 64 * kKi, 64 * kMi, ENOMEM},
    {"viewers", "connections that look at the screen", 8, 0, 64, EBUSY},
}};

/// Guaranteed amounts take at most that part of all, so that so many clients can be admitted anyway.
constexpr uint64_t kLeastClients = 64;

constexpr const ResourceRow& row(Resource r) { return kTable[static_cast<size_t>(r)]; }

/// Whether a client that has so much of a resource may have more.
/// @param shared  called with what is taken from all, and with what the client then holds; whether there is
/// so much
template <typename Shared>
bool fits(const ResourceLimit& limit, uint64_t used, uint64_t amount, const Shared& shared) {
  if (amount > limit.per_client || used > limit.per_client - amount) return false;
  const uint64_t held = used + amount, before = std::max(used, limit.guaranteed);
  return held <= before || shared(held - before, held);
}

/// Whether the count-th refusal is worth a line.
constexpr bool is_told(uint64_t count) { return (count & (count - 1)) == 0; }

}  // namespace

const ResourceRow& resource_row(Resource resource) { return row(resource); }

bool find_resource(const std::string& name, Resource* resource) {
  const auto it = std::find_if(kTable.begin(), kTable.end(), [&](const auto& r) { return r.name == name; });
  *resource = static_cast<Resource>(it - kTable.begin());
  return it != kTable.end();
}

ResourceLimits::ResourceLimits(const HostRoom& host) {
  for (size_t i = 0; i < kNumResources; ++i) {
    const ResourceRow& r = kTable[i];
    uint64_t in_all = r.in_all;
    if (r.host && host.*r.host != UINT64_MAX) {
      const uint64_t room = host.*r.host;
      in_all = std::min(in_all, room - std::min(r.reserve, room / 2));
    }
    rows[i] = {r.per_client, r.guaranteed, in_all};
  }
}

// --- Charge

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this == &other) return *this;
  release();
  account_ = std::move(other.account_);
  amount_ = std::exchange(other.amount_, 0);
  resource_ = other.resource_;
  return *this;
}

int Charge::grow(uint64_t more) {
  if (!account_) return EINVAL;
  if (const int error = account_->take(resource_, more)) return error;
  amount_ += more;
  return 0;
}

void Charge::shrink(uint64_t less) {
  if (!account_) return;
  less = std::min(less, amount_);
  account_->give_back(resource_, less);
  amount_ -= less;
}

void Charge::release() {
  if (!account_) return;
  account_->give_back(resource_, std::exchange(amount_, 0));
  account_.reset();
}

// --- Account

Account::~Account() {
  for (size_t i = 0; i < kNumResources; ++i) {
    const auto r = static_cast<Resource>(i);
    budget_->give_back(r, limit(r).guaranteed);
  }
  budget_->forget(*this);
}

void Account::retire() {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kNumResources; ++i) {
    const auto r = static_cast<Resource>(i);
    const uint64_t guaranteed = limit(r).guaranteed;
    budget_->give_back(r, guaranteed - std::min<uint64_t>(guaranteed, entry(r).used));
  }
  retired_ = true;
}

ResourceLimit Account::limit(Resource resource) const {
  ResourceLimit limit = budget_->limit(resource);
  if (retired_) limit.guaranteed = 0;
  return limit;
}

std::string Account::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

void Account::set_name(std::string name) {
  const std::lock_guard lock(mutex_);
  name_ = std::move(name);
}

int Account::charge(Resource resource, uint64_t amount, Charge* charge) {
  charge->release();
  if (const int error = take(resource, amount)) return error;
  *charge = Charge(shared_from_this(), resource, amount);
  return 0;
}

bool Account::has_room(Resource resource, uint64_t amount) const {
  return fits(limit(resource), entry(resource).used, amount, [&](uint64_t more, uint64_t held) {
    return budget_->fits(resource, budget_->used(resource), more, held);
  });
}

int Account::take(Resource resource, uint64_t amount) {
  {
    const std::lock_guard lock(mutex_);
    std::atomic<uint64_t>& used = entry(resource).used;
    const uint64_t now = used.load(std::memory_order_relaxed);
    if (fits(limit(resource), now, amount,
             [&](uint64_t more, uint64_t held) { return budget_->take(resource, more, held); })) {
      used.store(now + amount, std::memory_order_relaxed);
      return 0;
    }
  }
  tell_refusal(resource, amount);
  return row(resource).error;
}

void Account::give_back(Resource resource, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  const uint64_t guaranteed = limit(resource).guaranteed;
  std::atomic<uint64_t>& used = entry(resource).used;
  const uint64_t before = used.load(std::memory_order_relaxed), held = before - amount;
  used.store(held, std::memory_order_relaxed);
  if (before > guaranteed) budget_->give_back(resource, before - std::max(held, guaranteed));
}

void Account::tell_refusal(Resource resource, uint64_t amount) {
  const uint64_t count = ++entry(resource).refusals;
  if (!is_told(count)) return;
  const ResourceLimit& limit = budget_->limit(resource);
  log_warning("%s gets no more %s: %d asked for, %d held, limit %d; %d of %d held by all (refusal %d)",
              name(), row(resource).name, amount, used(resource), limit.per_client, budget_->used(resource),
              limit.in_all, count);
}

// --- Budget

std::shared_ptr<Budget> Budget::create(const ResourceLimits& limits) {
  return std::shared_ptr<Budget>(new Budget(limits));
}

Budget::Budget(const ResourceLimits& limits) : limits_(limits) {
  for (ResourceLimit& limit : limits_.rows) {
    limit.in_all = std::min(limit.in_all, UINT64_MAX / 4);  // sums do not wrap
    limit.per_client = std::min(limit.per_client, limit.in_all);
    limit.guaranteed = std::min({limit.guaranteed, limit.per_client, limit.in_all / kLeastClients});
  }
}

bool Budget::fits(Resource resource, uint64_t total, uint64_t more, uint64_t held) const {
  const ResourceLimit& limit = limits_[resource];
  // What is kept for newcomers is at most a quarter (kNewcomers of kLeastClients).
  return total + more + held <= limit.in_all - kNewcomers * limit.guaranteed;
}

bool Budget::take(Resource resource, uint64_t more, uint64_t held) {
  std::atomic<uint64_t>& used = total(resource);
  uint64_t now = used.load(std::memory_order_relaxed);
  do {
    if (!fits(resource, now, more, held)) return false;
  } while (!used.compare_exchange_weak(now, now + more, std::memory_order_relaxed));
  return true;
}

void Budget::give_back(Resource resource, uint64_t amount) {
  total(resource).fetch_sub(amount, std::memory_order_relaxed);
}

std::shared_ptr<Account> Budget::admit(ProcessId process, const std::string& name, Resource* scarce) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Account>& known = accounts_[process];
  if (std::shared_ptr<Account> account = known.lock()) return account;
  const auto erase_if_new = [&] {
    if (known.expired()) accounts_.erase(process);
  };
  // Only here is anything taken without regard to what others hold, and never more than there is: no
  // compare-exchange of take() can overtake, as it leaves at least as much as the newcomers' part.
  for (size_t i = 0; i < kNumResources; ++i) {
    const auto r = static_cast<Resource>(i);
    const ResourceLimit& limit = limits_[r];
    std::atomic<uint64_t>& used = total(r);
    uint64_t now = used.load(std::memory_order_relaxed);
    bool fits = false;
    do {
      fits = now + limit.guaranteed <= limit.in_all;
    } while (fits && !used.compare_exchange_weak(now, now + limit.guaranteed, std::memory_order_relaxed));
    if (fits) continue;
    *scarce = r;
    while (i-- > 0) give_back(static_cast<Resource>(i), limits_.rows[i].guaranteed);
    erase_if_new();
    return nullptr;
  }
  std::shared_ptr<Account> account(new Account(shared_from_this(), process, name));
  known = account;
  return account;
}

void Budget::forget(const Account& account) {
  const std::lock_guard lock(mutex_);
  const auto it = accounts_.find(account.process());
  // The process may have come back meanwhile, with a new account.
  if (it != accounts_.end() && it->second.expired()) accounts_.erase(it);
}

std::vector<std::shared_ptr<Account>> Budget::accounts() const {
  std::vector<std::shared_ptr<Account>> accounts;
  const std::lock_guard lock(mutex_);
  for (const auto& [process, weak] : accounts_)
    if (std::shared_ptr<Account> account = weak.lock()) accounts.push_back(std::move(account));
  return accounts;
}

}  // namespace v3d::ioctl
