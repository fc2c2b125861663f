/// What the page is told of an event in the history of a pixel.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "gpu/draw/bin_result.h"
#include "tools/inspect/pixel_history.h"

namespace v3d::inspect {

/// Values as the page shows them: colours and what programs write by the type of the target, depth from 0 to
/// 1. @param bin  of the job; may be null  @param sample  that the history follows
nlohmann::ordered_json history_json(const tlb::Config& config, const draw::BinResult* bin,
                                    const PixelEvent& event, uint32_t sample);

}  // namespace v3d::inspect
