/// Tests of what a driver may lack skip themselves by the name of what is missing.
#pragma once

#include <gtest/gtest.h>

/// Features: those that the Gpu was made with.
#define REQUIRE_FEATURES(gpu) \
  if (!(gpu).missing().empty()) GTEST_SKIP() << "the device lacks " << (gpu).missing()

#define REQUIRE_LIMIT(gpu, limit, least)         \
  if ((gpu).properties().limits.limit < (least)) \
  GTEST_SKIP() << #limit " of the device is " << (gpu).properties().limits.limit << ", this needs " << (least)

/// @param operation  ARITHMETIC, CLUSTERED ...
#define REQUIRE_SUBGROUP_OPERATION(gpu, operation)                                                \
  if (!((gpu).subgroup_properties().supportedOperations & VK_SUBGROUP_FEATURE_##operation##_BIT)) \
  GTEST_SKIP() << "the device lacks VK_SUBGROUP_FEATURE_" #operation "_BIT"
