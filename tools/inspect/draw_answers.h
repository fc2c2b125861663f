/// Answers to what the page asks of draws, of their vertices and of textures.
#pragma once

#include <cstdint>

#include "tools/inspect/answer_parts.h"
#include "tools/inspect/inspector.h"

namespace v3d::inspect {

/// The draws of a job, up to a limit.
Answer draws_answer(Inspector& inspector, uint32_t job);
Answer vertices_answer(Inspector& inspector, uint32_t job, Numbers& numbers);
Answer textures_answer(Inspector& inspector, uint32_t job, Numbers& numbers);
/// One level of a texture.
Answer texture_answer(Inspector& inspector, uint32_t job, Numbers& numbers);

}  // namespace v3d::inspect
