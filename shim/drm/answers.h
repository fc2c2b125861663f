/// Answers that never change while a daemon lives are kept in the client: VERSION, GET_CAP, GET_PARAM and
/// PERFMON_GET_COUNTER, about a hundred calls at the start of every process that uses the GPU.
#pragma once

#include "ioctl/abi/core.h"
#include "ioctl/abi/v3d.h"
#include "shim/drm/local_call.h"

namespace v3d::shim {

int answer_version(LocalCall& call, ioctl::drm::Version& args);
int answer_get_cap(LocalCall& call, ioctl::drm::GetCap& args);
int answer_get_param(LocalCall& call, ioctl::drm::GetParam& args);
int answer_get_counter(LocalCall& call, ioctl::drm::PerfmonGetCounter& args);

/// What the daemon has just said.
void remember_get_cap(LocalCall& call, ioctl::drm::GetCap& args);
void remember_get_param(LocalCall& call, ioctl::drm::GetParam& args);
void remember_get_counter(LocalCall& call, ioctl::drm::PerfmonGetCounter& args);

}  // namespace v3d::shim
