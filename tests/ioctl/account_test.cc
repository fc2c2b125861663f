#include "ioctl/base/account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device/device.h"

namespace v3d::ioctl::test {
namespace {

constexpr Resource kBos = Resource::kBos;

/// All resources as in the table but BOs: 6400 in all, 100 guaranteed, so 4800 for the greedy.
ResourceLimits small_limits() {
  ResourceLimits limits;
  limits[kBos] = {.per_client = 6400, .guaranteed = 100, .in_all = 6400};
  return limits;
}

class AccountTest : public ::testing::Test {
 protected:
  std::shared_ptr<Account> admit(int32_t pid) {
    Resource scarce;
    return budget_->admit({pid, 1}, "client " + std::to_string(pid), &scarce);
  }
  /// As much as the account gets, in steps of one.
  static std::vector<Charge> hog(Account& account) {
    std::vector<Charge> charges(1);
    while (account.charge(kBos, 1, &charges.back()) == 0) charges.emplace_back();
    charges.pop_back();
    return charges;
  }

  std::shared_ptr<Budget> budget_ = Budget::create(small_limits());
};

TEST_F(AccountTest, ChargesEndWithTheirObjects) {
  const auto account = admit(1);
  {
    Charge charge;
    ASSERT_EQ(account->charge(kBos, 300, &charge), 0);
    EXPECT_EQ(account->used(kBos), 300u);
    EXPECT_EQ(budget_->used(kBos), 300u);
    Charge moved = std::move(charge);
    EXPECT_EQ(moved.amount(), 300u);
    EXPECT_EQ(account->used(kBos), 300u);
  }
  EXPECT_EQ(account->used(kBos), 0u);
  EXPECT_EQ(budget_->used(kBos), 100u);  // the guaranteed amount
}

TEST_F(AccountTest, AChargeGrowsAndShrinks) {
  const auto account = admit(1);
  Charge charge;
  ASSERT_EQ(account->charge(kBos, 50, &charge), 0);
  EXPECT_EQ(charge.grow(1000), 0);
  EXPECT_EQ(account->used(kBos), 1050u);
  EXPECT_EQ(charge.grow(6000), ENOMEM);
  EXPECT_EQ(charge.amount(), 1050u);
  charge.shrink(1000);
  EXPECT_EQ(budget_->used(kBos), 100u);
  charge.release();
  EXPECT_EQ(account->used(kBos), 0u);
}

TEST_F(AccountTest, TheClientsOwnLimitHoldsAndARefusalChangesNothing) {
  ResourceLimits limits = small_limits();
  limits[Resource::kDescriptors] = {.per_client = 10, .guaranteed = 1, .in_all = 1000};
  budget_ = Budget::create(limits);
  const auto account = admit(1);
  Charge charge, other;
  ASSERT_EQ(account->charge(Resource::kDescriptors, 10, &charge), 0);
  EXPECT_EQ(account->charge(Resource::kDescriptors, 1, &other), EMFILE);
  EXPECT_EQ(account->charge(Resource::kDescriptors, UINT64_MAX, &other), EMFILE);
  EXPECT_EQ(account->used(Resource::kDescriptors), 10u);
  EXPECT_EQ(budget_->used(Resource::kDescriptors), 10u);
  EXPECT_EQ(account->refusals(Resource::kDescriptors), 2u);
}

TEST_F(AccountTest, TheGreedyLeaveAsMuchAsTheyHold) {
  const auto first = admit(1), second = admit(2);
  const auto held_first = hog(*first);
  // Of 4800 the second has 100 set aside.
  EXPECT_EQ(held_first.size(), 2350u);
  const auto held_second = hog(*second);
  EXPECT_EQ(held_second.size(), 1225u);
}

TEST_F(AccountTest, BesideTheGreedyNewcomersGetTheirGuaranteedAmount) {
  std::vector<std::shared_ptr<Account>> clients;
  std::vector<std::vector<Charge>> held;
  const auto come = [&] {
    clients.push_back(admit(static_cast<int32_t>(clients.size())));
    ASSERT_NE(clients.back(), nullptr) << clients.size();
    held.push_back(hog(*clients.back()));
    EXPECT_GE(held.back().size(), 100u);
  };
  while (held.empty() || held.back().size() > 100) come();
  for (uint64_t i = 1; i < kNewcomers; ++i) come();
  EXPECT_LE(budget_->used(kBos), 6400u);
}

TEST_F(AccountTest, WhoseGuaranteedAmountCannotBeSetAsideIsRefusedWithoutATrace) {
  std::vector<std::shared_ptr<Account>> clients;
  Resource scarce = Resource::kPerfmons;
  int32_t pid = 0;
  while (auto account = budget_->admit({pid, 1}, "one of many", &scarce)) {
    clients.push_back(std::move(account));
    ++pid;
  }
  EXPECT_EQ(clients.size(), 64u);
  EXPECT_EQ(scarce, kBos);
  const uint64_t bytes = budget_->used(Resource::kBoBytes);
  EXPECT_EQ(admit(1000), nullptr);
  EXPECT_EQ(budget_->used(Resource::kBoBytes), bytes);
  EXPECT_EQ(budget_->accounts().size(), clients.size());
  clients.pop_back();
  EXPECT_NE(admit(1000), nullptr);
}

TEST_F(AccountTest, AProcessHasOneAccountAndAnotherWithItsNumberAnother) {
  const auto account = admit(1);
  EXPECT_EQ(admit(1), account);
  Resource scarce;
  EXPECT_NE(budget_->admit({1, 2}, "later", &scarce), account);
}

TEST_F(AccountTest, AnAccountStaysWithWhatItsProcessLeft) {
  auto account = admit(1);
  Charge charge;
  ASSERT_EQ(account->charge(kBos, 7, &charge), 0);
  account.reset();
  ASSERT_EQ(budget_->accounts().size(), 1u);
  EXPECT_EQ(admit(1)->used(kBos), 7u);
  charge.release();
  EXPECT_TRUE(budget_->accounts().empty());
  for (size_t i = 0; i < kNumResources; ++i) EXPECT_EQ(budget_->used(static_cast<Resource>(i)), 0u);
}

TEST_F(AccountTest, NothingIsSetAsideForTheDead) {
  auto few = admit(1), many = admit(2);
  Charge of_few, of_many, more;
  ASSERT_EQ(few->charge(kBos, 30, &of_few), 0);
  ASSERT_EQ(many->charge(kBos, 150, &of_many), 0);
  EXPECT_EQ(budget_->used(kBos), 250u);
  few->retire();
  few->retire();
  many->retire();
  EXPECT_EQ(budget_->used(kBos), 180u);
  EXPECT_EQ(few->charge(kBos, 10, &more), 0);  // from what all share
  EXPECT_EQ(budget_->used(kBos), 190u);
  more.release();
  of_many.shrink(120);
  EXPECT_EQ(budget_->used(kBos), 60u);
  of_few.release();
  of_many.release();
  few.reset();
  many.reset();
  EXPECT_EQ(budget_->used(kBos), 0u);
}

TEST_F(AccountTest, WhoAsksForTooMuchDisturbsNobody) {
  const auto greedy = admit(1), victim = admit(2);
  const auto held = hog(*greedy);
  std::atomic<bool> stop{false};
  std::thread asking([&] {
    Charge charge;
    while (!stop) EXPECT_EQ(greedy->charge(kBos, 4000, &charge), ENOMEM);
  });
  for (int i = 0; i < 20000; ++i) {
    Charge charge;
    ASSERT_EQ(victim->charge(kBos, 1000, &charge), 0);
  }
  stop = true;
  asking.join();
}

TEST_F(AccountTest, NothingIsLostBetweenThreads) {
  const auto one = admit(1), two = admit(2);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 5000; ++i) {
        Account& account = (i + t) % 2 ? *one : *two;
        Charge a, b;
        static_cast<void>(account.charge(kBos, 1 + (i * 37 + t) % 300, &a));
        if (account.charge(kBos, 90, &b) == 0 && b.grow(20) == 0) b.shrink(60);
        EXPECT_LE(budget_->used(kBos), 6400u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(one->used(kBos), 0u);
  EXPECT_EQ(two->used(kBos), 0u);
  EXPECT_EQ(budget_->used(kBos), 200u);
}

TEST(ResourceTable, RowsAreSound) {
  std::set<std::string> names;
  for (size_t i = 0; i < kNumResources; ++i) {
    const ResourceRow& row = resource_row(static_cast<Resource>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.error == ENOMEM || row.error == EMFILE || row.error == EBUSY) << row.name;
    EXPECT_LE(row.guaranteed, row.in_all / 64) << row.name;
    EXPECT_LE(row.guaranteed, row.per_client) << row.name;
    Resource found;
    EXPECT_TRUE(find_resource(row.name, &found));
    EXPECT_EQ(static_cast<size_t>(found), i);
  }
  Resource found;
  EXPECT_FALSE(find_resource("bo", &found));
}

TEST(ResourceLimits, TheHostsRoomIsTheLimitLessWhatTheDaemonNeeds) {
  HostRoom host;
  host.mappings = 65530;
  host.descriptors = 300;  // of which 256 would leave too few
  const ResourceLimits limits(host);
  EXPECT_EQ(limits[Resource::kMappings].in_all, 65530u - 4096 - device::kMostCodeMappings);
  EXPECT_EQ(limits[Resource::kDescriptors].in_all, 150u);
  EXPECT_EQ(limits[Resource::kBos].in_all, resource_row(Resource::kBos).in_all);
}

}  // namespace
}  // namespace v3d::ioctl::test
