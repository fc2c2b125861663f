#include <gtest/gtest.h>

#include "gpu/perf/counter_table.h"

#ifdef V3DEMU_MESA_COUNTERS
#define V3D_VERSION 42
#include "v3d_performance_counters.h"

namespace v3d::perf {
namespace {

TEST(CounterTable42, AgreesWithMesa) {
  ASSERT_EQ(std::size(v3d_performance_counters), counter_table(chip::Generation::k42).size());
  for (size_t i = 0; i < counter_table(chip::Generation::k42).size(); ++i) {
    EXPECT_STREQ(counter_table(chip::Generation::k42)[i].name, v3d_performance_counters[i][V3D_PERFCNT_NAME]);
    EXPECT_STREQ(counter_table(chip::Generation::k42)[i].category,
                 v3d_performance_counters[i][V3D_PERFCNT_CATEGORY]);
    EXPECT_STREQ(counter_table(chip::Generation::k42)[i].description,
                 v3d_performance_counters[i][V3D_PERFCNT_DESCRIPTION]);
  }
}

}  // namespace
}  // namespace v3d::perf
#endif
