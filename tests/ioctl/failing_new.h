/// This allocator fails on demand.
#pragma once

namespace v3d::ioctl::test {

/// The n-th allocation of this thread from now on fails, counted from 0.
void fail_allocation(int n);
/// @return whether it has failed
bool fail_no_allocation();

}  // namespace v3d::ioctl::test
