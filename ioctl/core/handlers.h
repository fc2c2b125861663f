/// These are the handlers of the ioctls that all drivers have and that set no mode. All return 0 or a
/// positive errno.
#pragma once

#include "ioctl/abi/core.h"
#include "ioctl/core/call.h"

namespace v3d::ioctl {

// generic.cc
int version(Call& call, drm::Version& args);
int get_unique(Call& call, drm::Unique& args);
int get_magic(Call& call, drm::Auth& args);
int get_client(Call& call, drm::Client& args);
int get_stats(Call& call, drm::Stats& args);
int set_version(Call& call, drm::SetVersion& args);
int get_cap(Call& call, drm::GetCap& args);
int set_client_cap(Call& call, drm::SetClientCap& args);
int set_client_name(Call& call, drm::SetClientName& args);
int auth_magic(Call& call, drm::Auth& args);
int set_master(Call& call, drm::None& args);
int drop_master(Call& call, drm::None& args);

// gem.cc
int gem_close(Call& call, drm::GemClose& args);
int gem_flink(Call& call, drm::GemFlink& args);
int gem_open(Call& call, drm::GemOpen& args);

// prime.cc
int prime_handle_to_fd(Call& call, drm::PrimeHandle& args);
int prime_fd_to_handle(Call& call, drm::PrimeHandle& args);
/// Before others can get at an object's memory: gives it memory of its own. 0, ENOMEM or EINTR.
int make_shareable(Call& call, Bo& bo);

// syncobj.cc
int syncobj_create(Call& call, drm::SyncobjCreate& args);
int syncobj_destroy(Call& call, drm::SyncobjDestroy& args);
int syncobj_handle_to_fd(Call& call, drm::SyncobjHandle& args);
int syncobj_fd_to_handle(Call& call, drm::SyncobjHandle& args);
int syncobj_wait(Call& call, drm::SyncobjWait& args);
int syncobj_reset(Call& call, drm::SyncobjArray& args);
int syncobj_signal(Call& call, drm::SyncobjArray& args);

}  // namespace v3d::ioctl
