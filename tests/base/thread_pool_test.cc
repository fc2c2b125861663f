// Workers and the jobs that share them.
#include "gpu/base/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <thread>
#include <vector>

namespace v3d {
namespace {

using Piece = std::function<void(int, int)>;

template <typename Condition>
bool soon(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Two pieces that must run at one time to end.
void meet(ThreadPool& pool) {
  std::atomic<int> met{0};
  const Piece piece = [&](int, int) {
    ++met;
    EXPECT_TRUE(soon([&] { return met == 2; }));
  };
  pool.parallel_for(2, piece);
}

TEST(ThreadPool, RunsEachPieceOnce) {
  for (const int workers : {0, 1, 3}) {
    ThreadPool pool(workers);
    std::vector<std::atomic<int>> runs(1000);
    const Piece piece = [&](int i, int slot) {
      EXPECT_LT(slot, pool.concurrency());
      ++runs[static_cast<size_t>(i)];
    };
    pool.parallel_for(1000, piece);
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPool, SlotsAreUniqueAmongRunningPieces) {
  ThreadPool pool(3);
  std::atomic<int> clashes{0};
  const auto call = [&] {
    std::array<std::atomic<bool>, 4> mine{};
    const Piece piece = [&](int, int slot) {
      if (mine[static_cast<size_t>(slot)].exchange(true)) ++clashes;
      std::this_thread::yield();
      mine[static_cast<size_t>(slot)] = false;
    };
    for (int i = 0; i < 20; ++i) pool.parallel_for(100, piece);
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(clashes, 0);
}

// One caller has pieces without end; the two of the other must run at one time to end.
TEST(ThreadPool, CallersShareTheWorkers) {
  ThreadPool pool(1);
  std::atomic<bool> over{false};
  std::atomic<int> begun{0};
  std::thread hog([&] {
    const Piece piece = [&](int, int) {
      ++begun;
      if (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    pool.parallel_for(30'000, piece);
  });
  EXPECT_TRUE(soon([&] { return begun > 3; }));
  meet(pool);
  over = true;
  hog.join();
}

/// Held and let go by the test.
class TestControl : public JobControl {
 public:
  void hold(bool held) { held_ = held; }
};

TEST(ThreadPool, WorkersPassOverHeldJobsAndComeBack) {
  ThreadPool pool(1);
  TestControl control;
  control.hold(true);
  std::atomic<int> helped{0}, run{0};
  const Piece piece = [&](int, int slot) {
    helped += slot != 0;
    if (++run == 10) {
      EXPECT_EQ(helped, 0);
      control.hold(false);
    }
    if (run > 10) soon([&] { return helped > 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  pool.parallel_for(20, piece, &control);
  EXPECT_GT(helped, 0);
}

TEST(ThreadPool, WhatAPieceThrowsComesOutBehindTheOthers) {
  for (int workers : {0, 1, 3}) {
    ThreadPool pool(workers);
    std::atomic<int> inside{0}, begun{0};
    const auto fn = [&](int i, int) {
      ++inside;
      ++begun;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --inside;
      if (i == 5) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.parallel_for(100'000, fn), std::bad_alloc) << workers;
    EXPECT_EQ(inside, 0);
    EXPECT_LT(begun, 100'000);  // the rest is left out
    std::atomic<int> ran{0};
    pool.parallel_for(100, [&](int, int) { ++ran; });
    EXPECT_EQ(ran, 100);
  }
}

// A job may be held and go on without any of its threads at a checkpoint or a new piece.
TEST(ThreadPool, WorkersSeeByThemselvesThatAJobGoesOn) {
  struct Held : JobControl {
    void hold(bool held) { held_ = held; }
  } control;
  ThreadPool pool(1);
  control.hold(true);
  std::atomic<int> inside{0};
  const auto piece = [&](int, int slot) {
    ++inside;
    if (slot == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the worker passes the job over
      control.hold(false);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(inside, 2);
  };
  pool.parallel_for(2, piece, &control);
}

// A worker that waits in a piece is stood in for, also by a thread that looks for the next job just then.
TEST(ThreadPool, WhoLooksForTheNextJobStandsInForAWorkerThatWaits) {
  ThreadPool pool(1);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> waiting{0};
    std::atomic<bool> over{false};
    std::thread other([&] {
      const Piece piece = [&](int, int slot) {
        ++waiting;
        const ThreadPool::Away away;  // nothing on the caller's thread
        EXPECT_TRUE(soon([&] { return over.load(); })) << slot;
      };
      pool.parallel_for(2, piece);
    });
    EXPECT_TRUE(soon([&] { return waiting == 2; }));
    meet(pool);
    over = true;
    other.join();
  }
}

// Whether a worker still looks for the next job or sleeps, it comes.
TEST(ThreadPool, WorkersComeAfterAnyPause) {
  ThreadPool pool(1);
  for (const int pause_us : {0, 20, 100, 280, 290, 300, 310, 320, 1000, 3000, 300, 100, 0}) {
    for (int round = 0; round < 10; ++round) {
      meet(pool);
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
  }
}

}  // namespace
}  // namespace v3d
