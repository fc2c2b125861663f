// The log's categories, and its lines on behalf of clients.
#include "gpu/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "gpu/base/thread_pool.h"

namespace v3d {
namespace {

using testing::HasSubstr;

TEST(Debug, ReadsLists) {
  EXPECT_EQ(parse_debug("")->mask, 0u);
  EXPECT_EQ(debug_names(parse_debug("qpu,cl")->mask), "cl,qpu");
  EXPECT_EQ(parse_debug("all")->mask, ~0u);
  EXPECT_TRUE(parse_debug("cl,help")->help);
  EXPECT_EQ(debug_names(0), "nothing");
}

TEST(Debug, AnUnknownCategoryIsAnErrorThatNamesThose) {
  const absl::Status status = parse_debug("cl,nonsense").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no category \"nonsense\"; there are mmu,cl,qpu,"));
  g_debug_mask = 0;
  EXPECT_FALSE(set_debug("cl,nonsense").ok());
  EXPECT_EQ(g_debug_mask, 0u);
}

TEST(Debug, HelpNamesEveryCategory) {
  for (const char* name : {"mmu", "cl", "hazard", "daemon", "all"})
    EXPECT_THAT(debug_help(), HasSubstr(std::string("\n  ") + name));
}

/// Lines that fn writes to the log.
template <typename Fn>
std::string logged(Fn&& fn) {
  testing::internal::CaptureStderr();
  fn();
  return testing::internal::GetCapturedStderr();
}
long count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(LogLimit, IsPerClient) {
  const LogClient one{101, "one"}, two{102, "two"};
  const std::string log = logged([&] {
    for (int i = 0; i < 100; ++i)
      for (const LogClient* client : {&one, &two}) {
        const LogScope scope(client);
        log_error("fault %d of %s", i, client->name);
      }
  });
  EXPECT_EQ(count_lines(log), 2 * LogLimiter::kLines) << log;
  EXPECT_THAT(log, HasSubstr("error: fault 9 of two"));
}

TEST(LogLimit, ALeavingClientsCountIsWritten) {
  const LogClient client{103, "prog (pid 103)"};
  logged([&] {
    const LogScope scope(&client);
    for (int i = 0; i < 15; ++i) log_warning("refusal %d", i);
  });
  EXPECT_THAT(logged([&] { report_left_out(client); }),
              HasSubstr("limit: 5 more of this kind of prog (pid 103) were left out: refusal %d\n"));
  EXPECT_EQ(logged([&] { report_left_out(client); }), "");
}

TEST(LogLimit, WorkersWriteOnBehalfOfTheCaller) {
  ThreadPool pool(2);
  const LogClient client{104, "busy"};
  const std::string log = logged([&] {
    const LogScope scope(&client);
    pool.parallel_for(200, [](int i, int) { log_error("piece %d", i); });
  });
  EXPECT_EQ(count_lines(log), LogLimiter::kLines) << log;
}

TEST(LogLimit, LeavesNobodysLinesAlone) {
  EXPECT_EQ(count_lines(logged([] {
              for (int i = 0; i < 50; ++i) log_error("own %d", i);
            })),
            50);
}

TEST(LogLimit, LeavesDebugLinesAlone) {
  const LogClient client{105, "watched"};
  g_debug_mask = static_cast<uint32_t>(Debug::kCl);
  EXPECT_EQ(count_lines(logged([&] {
              const LogScope scope(&client);
              for (int i = 0; i < 50; ++i) log_debug(Debug::kCl, "packet %d", i);
            })),
            50);
  g_debug_mask = 0;
}

}  // namespace
}  // namespace v3d
