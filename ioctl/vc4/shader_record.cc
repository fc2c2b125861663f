#include "ioctl/vc4/shader_record.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_format.h"
#include "ioctl/vc4/texture.h"

namespace v3d::ioctl::vc4 {
namespace {

struct Stage {
  const char* name;
  uint32_t code;  ///< byte of the record where the address of the code is; after it that of the uniforms
};
/// In the order of the list of BOs and of the uniforms.
constexpr std::array<Stage, 3> kStages = {{{"fragment", 4}, {"vertex", 16}, {"coordinate", 28}}};
constexpr size_t kFragment = 0, kCoordinate = 2;

constexpr uint8_t kSingleThread = 1;  // flag of a record
constexpr uint32_t kFirstAttribute = 36, kFirstStride = 100;

absl::Status refuse(const char* rule) {
  return absl::InvalidArgumentError(absl::StrFormat("shader record: %s", rule));
}

/// The record's BOs: three programs, then attributes.
std::vector<uint32_t> read_indices(std::span<const uint8_t> bytes) {
  std::vector<uint32_t> indices(bytes.size() / sizeof(uint32_t));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = get<uint32_t>(bytes, i * sizeof(uint32_t));
  return indices;
}

absl::Status check_threads(std::span<const uint8_t> record, const std::array<const JobBo*, 3>& code) {
  const bool threaded = !(get<uint8_t>(record, 0) & kSingleThread);
  if (threaded != code[kFragment]->program->threaded)
    return refuse("its flag and its fragment shader do not agree about threads");
  for (size_t stage = kFragment + 1; stage < kStages.size(); ++stage)
    if (code[stage]->program->threaded) return refuse("a threaded vertex or coordinate shader");
  return absl::OkStatus();
}

/// The uniforms of one program. @param reads  null: none of its textures is read by binning
absl::Status relocate_uniforms(const Program& program, JobBos bos, CopyCursor* uniforms,
                               std::set<uint32_t>* reads) {
  if (program.source_bytes() > uniforms->source.size()) return refuse("its uniforms are not all there");
  const auto textures = uniforms->take(program.source_bytes() - program.uniform_bytes);
  const auto stream = uniforms->take(program.uniform_bytes);
  const uint32_t address = uniforms->address;
  const auto copy = uniforms->place(program.uniform_bytes);
  std::copy(stream.begin(), stream.end(), copy.begin());
  for (size_t i = 0; i < program.samples.size(); ++i) {
    const auto index = get<uint32_t>(textures, i * sizeof(uint32_t));
    const auto bo = use_bo(bos, index);
    if (!bo.ok()) return bo.status();
    const TextureSample& sample = program.samples[i];
    const auto base = relocate_texture(sample, stream, **bo);
    if (!base.ok()) return base.status();
    put(copy, sample.parameters[0], *base);
    if (reads) reads->insert(index);
  }
  for (const uint32_t at : program.stream_addresses) put(copy, at, address);
  return absl::OkStatus();
}

absl::Status relocate_attribute(const ShaderState& state, uint32_t attribute, const JobBo& bo,
                                std::span<const uint8_t> record, std::span<uint8_t> copy) {
  const uint32_t at = kFirstAttribute + attribute * 8;
  const auto offset = get<uint32_t>(record, at);
  const uint32_t bytes = get<uint8_t>(record, at + 4) + 1u;
  uint32_t stride = get<uint8_t>(record, at + 5);
  if (state.extended()) stride |= get<uint32_t>(record, kFirstStride + attribute * 4) & ~0xffu;
  if (uint64_t{offset} + bytes > bo.size)
    return absl::InvalidArgumentError(absl::StrFormat("attribute %d reaches beyond its BO", attribute));
  if (stride != 0 && state.max_index > (bo.size - offset - bytes) / stride)
    return absl::InvalidArgumentError(
        absl::StrFormat("attribute %d has no value for index %d", attribute, state.max_index));
  put(copy, at, bo.address + offset);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const JobBo*> use_bo(JobBos bos, uint32_t index) {
  if (index >= bos.size())
    return absl::InvalidArgumentError(absl::StrFormat("BO %d of a list of %d", index, bos.size()));
  if (bos[index].program)
    return absl::InvalidArgumentError(
        absl::StrFormat("BO %d is a program, and used as something else", index));
  return &bos[index];
}

absl::Status relocate_shader_record(const ShaderState& state, JobBos bos, CopyCursor* records,
                                    CopyCursor* uniforms, std::set<uint32_t>* reads) {
  const uint32_t num_bos = static_cast<uint32_t>(kStages.size()) + state.num_attributes();
  if (num_bos * sizeof(uint32_t) > records->source.size()) return refuse("its list of BOs is not all there");
  const auto indices = read_indices(records->take(num_bos * sizeof(uint32_t)));
  if (state.record_bytes() > records->source.size()) return refuse("it is not all there");
  const auto record = records->take(state.record_bytes());
  const auto copy = records->place(state.placed_bytes());
  std::copy(record.begin(), record.end(), copy.begin());

  std::array<const JobBo*, kStages.size()> code;
  for (size_t stage = 0; stage < kStages.size(); ++stage) {
    if (indices[stage] >= bos.size()) return refuse("a program that is not in the list of BOs");
    code[stage] = &bos[indices[stage]];
  }
  std::vector<const JobBo*> attributes;
  for (size_t i = kStages.size(); i < indices.size(); ++i) {
    const auto bo = use_bo(bos, indices[i]);
    if (!bo.ok()) return bo.status();
    attributes.push_back(*bo);
    reads->insert(indices[i]);
  }
  for (const JobBo* bo : code)
    if (!bo->program) return refuse("a program that is no shader BO");
  if (auto status = check_threads(record, code); !status.ok()) return status;

  for (size_t stage = 0; stage < kStages.size(); ++stage) {
    if (get<uint32_t>(record, kStages[stage].code) != 0)
      return refuse("a program that does not begin where its BO does");
    put(copy, kStages[stage].code, code[stage]->address);
    put(copy, kStages[stage].code + 4, uniforms->address);
    if (auto status =
            relocate_uniforms(*code[stage]->program, bos, uniforms, stage == kCoordinate ? reads : nullptr);
        !status.ok())
      return absl::InvalidArgumentError(
          absl::StrFormat("%s shader: %s", kStages[stage].name, status.message()));
  }
  for (uint32_t i = 0; i < attributes.size(); ++i)
    if (auto status = relocate_attribute(state, i, *attributes[i], record, copy); !status.ok()) return status;
  return absl::OkStatus();
}

}  // namespace v3d::ioctl::vc4
