/// A process leaves limits, niceness, processors and the like to the processes that it starts; a daemon,
/// which serves others than the one that started it, takes its own.
#pragma once

namespace v3d::daemon {

/// Takes what this process got from its starter back to what a fresh login has, as far as the kernel lets it:
/// soft limits become the hard ones, and these unlimited for whoever may do that. What stays as it is:
/// docs/running.md. Before other threads are started.
void shed_surroundings();

/// Of threads that are started from now on. The limit of the starter's stack, when this process began, is no
/// measure: each thread would map that much.
void fix_thread_stacks();

}  // namespace v3d::daemon
