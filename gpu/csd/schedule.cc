#include "gpu/csd/schedule.h"

#include "gpu/csd/batch_scheduler.h"
#include "gpu/csd/supergroup_runner.h"

namespace v3d::csd {

Outcome schedule(const JobContext& job, const Configuration& configuration, bool serial,
                 const Engine& engine) {
  if (configuration.batches == 0) return {true, 0};
  if (serial || !SupergroupRunner::suits(job, configuration)) {
    BatchScheduler scheduler(job, configuration, serial, engine);
    const bool complete = scheduler.run();
    return {complete, scheduler.instructions()};
  }
  SupergroupRunner runner(job, configuration, engine);
  if (runner.run()) return {runner.complete(), runner.instructions()};
  BatchScheduler rest(job, configuration, engine, runner.leftover());
  const bool complete = rest.run();
  return {complete, runner.instructions() + rest.instructions()};
}

}  // namespace v3d::csd
