/// An account counts what one client holds of the things that all clients share, and bounds it.
///
/// A client is a process: all its connections, open nodes and exported descriptors count together, whatever
/// it opens them with. Whose request makes an object is charged for it until the object is gone, also where
/// the object belongs to a node that another process opened (under DRI3, Xwayland opens the node of an X11
/// program), and also when the process is gone and the object is not.
///
/// The rule for more of a resource:
///  - What a client holds never exceeds its own limit.
///  - A small amount is guaranteed to each client. It is set aside when the client connects; one for whom it
///    cannot be is refused then. Nothing else stands between a client and its guaranteed amount.
///  - Beyond it a client may hold as much as is still free after that for everybody else, of what all may
///  hold
///    less the guaranteed amounts of kNewcomers further clients. One client thus gets at most half, a next
///    one half of the rest; and however many are greedy, a newcomer finds its guaranteed amount.
/// A refused charge changes nothing, for nobody, not even for a moment.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace v3d::ioctl {

enum class Resource : uint8_t {
  kBoBytes,
  kBos,
  kMappings,
  kDescriptors,
  kConnections,
  kOpenNodes,
  kAddressSpaces,
  kSyncobjs,
  kPerfmons,
  kJobs,
  kJobBytes,
  kDerivedBytes,
  kRequestBytes,
  kWatches,
  kFramebuffers,
  kBlobs,
  kBlobBytes,
  kViewers,
};
inline constexpr size_t kNumResources = 18;

/// What the host leaves to this process; UINT64_MAX is no limit.
struct HostRoom {
  uint64_t memory = UINT64_MAX;       ///< bytes
  uint64_t descriptors = UINT64_MAX;  ///< RLIMIT_NOFILE
  uint64_t mappings = UINT64_MAX;     ///< vm.max_map_count
  uint64_t threads = UINT64_MAX;
};

/// The table of limits. Amounts are numbers of things, or bytes where the name says so.
struct ResourceRow {
  const char* name;     ///< as --limit and `v3demu status` call it
  const char* meaning;  ///< what counts
  uint64_t per_client;
  uint64_t guaranteed;  ///< to each client
  uint64_t in_all;      ///< together, unless the host has less
  int error;            ///< errno of whoever gets no more
  /// What of the host it takes, and how much of that is kept for the daemon itself (at most half).
  uint64_t HostRoom::*host = nullptr;
  uint64_t reserve = 0;
};
const ResourceRow& resource_row(Resource resource);
/// @return false when no resource has that name
bool find_resource(const std::string& name, Resource* resource);

struct ResourceLimit {
  uint64_t per_client, guaranteed, in_all;
};
struct ResourceLimits {
  /// Those of the table on a host with that room.
  explicit ResourceLimits(const HostRoom& host);
  ResourceLimits() : ResourceLimits(HostRoom()) {}

  ResourceLimit& operator[](Resource r) { return rows[static_cast<size_t>(r)]; }
  const ResourceLimit& operator[](Resource r) const { return rows[static_cast<size_t>(r)]; }

  std::array<ResourceLimit, kNumResources> rows;
};

/// So many further clients can always be admitted with their guaranteed amounts while others are greedy.
inline constexpr uint64_t kNewcomers = 16;

/// A process, also when another one has its number by now.
struct ProcessId {
  int32_t pid = 0;
  uint64_t birth = 0;  ///< something that no earlier or later process of that number has
  auto operator<=>(const ProcessId&) const = default;
};

class Account;
class Budget;

/// An amount of a resource that somebody holds, given back when this is destroyed. Movable.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept;
  ~Charge() { release(); }

  uint64_t amount() const { return amount_; }
  /// Whether the process that pays has exited (Account::retire).
  bool orphaned() const;
  /// Of what this is a charge already. 0, or the resource's errno and nothing has changed.
  [[nodiscard]] int grow(uint64_t more);
  /// Nothing yet of another resource, which the same client will pay for.
  Charge sibling(Resource resource) const { return {account_, resource, 0}; }
  /// Gives a part back. @param less  at most amount()
  void shrink(uint64_t less);
  void release();

 private:
  friend class Account;
  Charge(std::shared_ptr<Account> account, Resource resource, uint64_t amount)
      : account_(std::move(account)), amount_(amount), resource_(resource) {}

  std::shared_ptr<Account> account_;
  uint64_t amount_ = 0;
  Resource resource_ = Resource::kBos;
};

/// What one process holds. Thread safe. Lives until the last charge is released.
class Account : public std::enable_shared_from_this<Account> {
 public:
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  const ProcessId& process() const { return process_; }
  /// For messages: "vkcube (pid 12)".
  std::string name() const;
  void set_name(std::string name);

  /// 0 and *charge is that amount, or the resource's errno. What *charge was is released in either case.
  [[nodiscard]] int charge(Resource resource, uint64_t amount, Charge* charge);
  /// Whether that much could be charged now.
  bool has_room(Resource resource, uint64_t amount) const;

  /// The process has exited: what is set aside for it beyond what it still holds is free for others, and
  /// nothing is guaranteed to it any more.
  void retire();
  bool retired() const { return retired_.load(std::memory_order_relaxed); }

  uint64_t used(Resource resource) const { return entry(resource).used; }
  uint64_t refusals(Resource resource) const { return entry(resource).refusals; }

 private:
  friend class Budget;
  friend class Charge;
  struct Entry {
    std::atomic<uint64_t> used{0};
    std::atomic<uint64_t> refusals{0};
  };

  Account(std::shared_ptr<Budget> budget, ProcessId process, std::string name)
      : budget_(std::move(budget)), process_(process), name_(std::move(name)) {}
  Entry& entry(Resource r) { return entries_[static_cast<size_t>(r)]; }
  const Entry& entry(Resource r) const { return entries_[static_cast<size_t>(r)]; }
  /// As they are for this client.
  ResourceLimit limit(Resource resource) const;
  int take(Resource resource, uint64_t amount);
  void give_back(Resource resource, uint64_t amount);
  void tell_refusal(Resource resource, uint64_t amount);

  const std::shared_ptr<Budget> budget_;
  const ProcessId process_;
  std::array<Entry, kNumResources> entries_;
  mutable std::mutex mutex_;  // protects the used amounts and retired_ against other writers, and name_
  std::atomic<bool> retired_{false};
  std::string name_;
};

inline bool Charge::orphaned() const { return account_ && account_->retired(); }

/// What all clients hold. Thread safe.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  static std::shared_ptr<Budget> create(const ResourceLimits& limits = ResourceLimits());

  /// The account of a process, made when there is none yet.
  /// @return null when its guaranteed amounts cannot be set aside; *scarce is what there is too little of
  std::shared_ptr<Account> admit(ProcessId process, const std::string& name, Resource* scarce);
  /// Of all who hold something or are connected.
  std::vector<std::shared_ptr<Account>> accounts() const;

  /// As they are in force: guaranteed amounts never exceed a 64th of what all may hold.
  const ResourceLimit& limit(Resource resource) const { return limits_[resource]; }
  /// In all, with what is set aside for the guaranteed amounts.
  uint64_t used(Resource resource) const { return total(resource).load(std::memory_order_relaxed); }

 private:
  friend class Account;
  struct alignas(64) Total {
    std::atomic<uint64_t> used{0};
  };

  explicit Budget(const ResourceLimits& limits);
  std::atomic<uint64_t>& total(Resource r) { return totals_[static_cast<size_t>(r)].used; }
  const std::atomic<uint64_t>& total(Resource r) const { return totals_[static_cast<size_t>(r)].used; }
  /// Sets more aside for somebody who then holds `held`, all of it guaranteed or not.
  bool take(Resource resource, uint64_t more, uint64_t held);
  bool fits(Resource resource, uint64_t total, uint64_t more, uint64_t held) const;
  void give_back(Resource resource, uint64_t amount);
  void forget(const Account& account);

  ResourceLimits limits_;
  std::array<Total, kNumResources> totals_;
  mutable std::mutex mutex_;  // protects accounts_
  std::map<ProcessId, std::weak_ptr<Account>> accounts_;
};

}  // namespace v3d::ioctl
