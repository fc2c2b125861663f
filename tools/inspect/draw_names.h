/// State of draws by the names that OpenGL and Vulkan have for it.
#pragma once

#include <nlohmann/json.hpp>

#include "gpu/base/compare.h"
#include "gpu/draw/state.h"

namespace v3d::inspect {

/// Of functions and factors: the words that GL_... and VK_... have in common, and GL's where these differ.
const char* api_name(Compare function);
const char* api_name(draw::BlendFactor factor);
const char* api_name(draw::BlendMode mode);
const char* api_name(draw::StencilOp op);

/// State that decides on fragments, line by line.
nlohmann::ordered_json state_of(const draw::DrawState& state);

}  // namespace v3d::inspect
