/// A Profile is what `v3demu profile` knows of a capture: its jobs with the times that the board would take,
/// on a common timeline, and their shaders. All of it follows from the capture alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::tools::profiling {

inline constexpr int kKinds = 4;
using Kind = timing::JobKind;  ///< kind_of() of a CapturedJob
using timing::kind_name;

using timing::qpu_clocks;
using timing::Stalls;

struct Instruction {
  uint64_t word = 0;
  std::string text;
  uint64_t issued = 0;  ///< times, all batches of all jobs
  Stalls stalls{};
};

/// A program of one client at one address, as long as the words there stay the same.
struct Shader {
  std::string stage;
  std::string name;  ///< the stage and the address, as `v3demu decode` has them
  uint64_t jobs = 0, batches = 0, instructions = 0;
  Stalls stalls{};
  std::vector<Instruction> at;  ///< by number
};

/// A shader's part of a job.
struct ShaderUse {
  size_t shader = 0;  ///< in Profile::shaders
  uint64_t batches = 0, instructions = 0;
  Stalls stalls{};
};

struct Draw {
  uint32_t number = 0;  ///< in the job, from 0
  uint64_t vertices = 0, primitives = 0, quads = 0;
  uint64_t vertex_batches = 0, fragment_batches = 0;
  uint64_t clocks = 0;  ///< of QPUs
};

/// What a unit does in a job. Clocks count from its begin.
struct Span {
  std::string track, name;
  uint64_t begin = 0, end = 0;
};

/// Where a render job stores colours.
struct Target {
  uint32_t address = 0, width = 0, height = 0, format = 0, layout = 0;
};

struct Job {
  uint32_t number = 0;  ///< from 1, in the order of the capture
  Kind kind = Kind::kBin;
  uint32_t client = 0;
  uint32_t submission = 0;    ///< bin and render job of a draw have the same; 0: it stands alone
  uint32_t frame = 0;         ///< of Profile::frames, from 1; 0: none
  std::string end, message;   ///< "done", or how else it ended and why
  std::string no_prediction;  ///< why there is none
  bool predicted = false;
  timing::Prediction times;  ///< if predicted; without programs, draws and spans, which are below
  std::vector<ShaderUse> shaders;
  std::vector<Draw> draws;
  std::vector<Span> spans;
  std::vector<Target> targets;
  uint64_t begin_ns = 0, end_ns = 0;  ///< on the timeline; equal without a prediction

  uint64_t gpu_ns() const { return predicted ? times.ns() - times.submit_ns : 0; }
};

struct Frame {
  uint32_t number = 0, client = 0;
  uint32_t jobs = 0;
  uint64_t begin_ns = 0, end_ns = 0;
  std::array<uint64_t, kKinds> busy_ns{};
  uint64_t dram_bytes = 0;
};

struct Profile {
  std::string board, description;
  chip::Generation generation{};
  bool frames_are_submissions = false;
  std::vector<Job> jobs;
  std::vector<Frame> frames;
  std::vector<Shader> shaders;

  uint64_t end_ns() const;  ///< of the timeline
};

}  // namespace v3d::tools::profiling
