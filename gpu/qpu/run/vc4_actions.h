/// Most instructions of V3D 2.1 execute as actions: all but branches, semaphores, rotations and what seldom
/// occurs.
#pragma once

#include <vector>

#include "gpu/qpu/run/vc4_action.h"
#include "gpu/qpu/run/vc4_step.h"

namespace v3d::qpu::vc4 {

/// Whether the instruction reads or writes r4.
bool touches_r4(const Step& step);

/// Adds what the step does. Its last actions see and leave what the instruction would, but for the registers
/// that hold what came through ports.
/// @param sfu_at_once  what a special function gives may be in r4 after this instruction, as the next two do
/// not touch r4
/// @return  false: the step has no actions, and none is added
bool add_actions(const Step& step, bool sfu_at_once, std::vector<Action>& actions);

}  // namespace v3d::qpu::vc4
