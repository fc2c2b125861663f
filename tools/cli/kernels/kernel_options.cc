#include "tools/cli/kernels/kernel_options.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gpu/qpu/isa/assembler.h"
#include "tools/cli/files/files.h"

namespace v3d::tools {
namespace {

/// The number of times that workgroups run on each axis.
absl::Status set_workgroups(const KernelOptions& options, Kernel* kernel) {
  kernel->workgroup = options.workgroup;
  kernel->four_threads = options.four_threads;
  const uint32_t threads = options.threads ? options.threads : (options.workgroup + 15) / 16;
  const uint32_t each = (options.workgroup + 15) / 16;
  if (options.workgroups.empty()) {
    if (threads % each != 0 || threads / each > 65535)
      return absl::InvalidArgumentError(
          absl::StrFormat("%d threads are no whole number of workgroups, 1 to 65535, of %d", threads, each));
    kernel->workgroups = {threads / each, 1, 1};
    return absl::OkStatus();
  }
  const std::vector<std::string> parts = absl::StrSplit(options.workgroups, ',');
  uint64_t batches = each;
  bool good = parts.size() <= 3;
  for (size_t i = 0; good && i < parts.size(); ++i) {
    good = absl::SimpleAtoi(parts[i], &kernel->workgroups[i]) && kernel->workgroups[i] >= 1 &&
           kernel->workgroups[i] <= 65535;
    batches *= kernel->workgroups[i];
  }
  if (!good || batches > kMostBatches)
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no X, X,Y or X,Y,Z of 1 to 65535 workgroups each and %d threads in all",
                        options.workgroups, kMostBatches));
  return absl::OkStatus();
}

absl::StatusOr<KernelBuffer> read_buffer(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  KernelBuffer buffer{.name = parts.first, .array = {}};
  if (parts.first.empty() || parts.second.empty())
    return absl::InvalidArgumentError(
        absl::StrFormat("--buf %s is no NAME=FILE.npy or NAME=TYPE[SHAPE]", text));
  const size_t shaped = parts.second.find("]=");
  if (shaped != std::string::npos || parts.second.ends_with("]")) {
    auto array = parse_shape(parts.second.substr(0, shaped == std::string::npos ? shaped : shaped + 1));
    if (!array.ok()) return array.status();
    buffer.array = *std::move(array);
    if (shaped == std::string::npos) return buffer;
    const absl::Status filled = fill(parts.second.substr(shaped + 2), &buffer.array);
    if (!filled.ok()) return filled;
    return buffer;
  }
  // Twice that: the header may be long, and whose array is too large by little is told so below.
  const auto contents = read_file(parts.second, 2 * kMostKernelBytes);
  if (!contents)
    return absl::NotFoundError(absl::StrCat(
        parts.second, ": ", strerror(errno),
        parts.second.find('[') == std::string::npos ? "" : "; a new buffer is TYPE[SHAPE], as f32[1024]"));
  auto array = parse_npy(*contents);
  if (!array.ok())
    return absl::InvalidArgumentError(absl::StrCat(parts.second, ": ", array.status().message()));
  buffer.array = *std::move(array);
  return buffer;
}

/// Of a text that is wrong for a chip, for which one it is right.
std::string its_chip(const std::string& file, chip::Generation generation, std::string_view text) {
  std::string told;
  for (const chip::Generation other : chip::kGenerations)
    if (other != generation && qpu::assemble(other, text).errors.empty())
      absl::StrAppend(&told, "\n", file, " is a program for V3D ", chip::version_text(other), ", not ",
                      chip::version_text(generation));
  return told;
}

/// The program, by text or words. @param assembled  the uniforms of the text
absl::Status read_program(const KernelOptions& options, chip::Generation generation, Kernel* kernel,
                          std::vector<uint32_t>* assembled) {
  const auto contents = read_file(options.file, kMostProgramBytes);
  if (!contents) return absl::NotFoundError(absl::StrCat(options.file, ": ", strerror(errno)));
  if (options.file.ends_with(".bin")) {
    if (contents->empty() || contents->size() % 8)
      return absl::InvalidArgumentError(options.file + ": no whole number of words of 64 bits");
    kernel->words.resize(contents->size() / 8);
    std::memcpy(kernel->words.data(), contents->data(), contents->size());
    return absl::OkStatus();
  }
  qpu::Assembly assembly = qpu::assemble(generation, *contents);
  std::string errors;
  for (const qpu::AssemblyError& error : assembly.errors)
    absl::StrAppend(&errors, errors.empty() ? "" : "\n", options.file, ":", qpu::to_string(error));
  if (!errors.empty())
    return absl::InvalidArgumentError(errors + its_chip(options.file, generation, *contents));
  if (assembly.words.empty()) return absl::InvalidArgumentError(options.file + ": no program");
  kernel->words = std::move(assembly.words);
  kernel->lines = std::move(assembly.lines);
  *assembled = std::move(assembly.uniforms);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Kernel> read_kernel(const KernelOptions& options, chip::Generation generation) {
  Kernel kernel;
  std::vector<uint32_t> assembled;
  absl::Status status = read_program(options, generation, &kernel, &assembled);
  status.Update(set_workgroups(options, &kernel));
  if (!status.ok()) return status;
  if (options.buffers.size() > kMostKernelBuffers || options.uniforms.size() > kMostKernelUniforms)
    return absl::InvalidArgumentError(
        absl::StrFormat("more than %d buffers or %d uniforms", kMostKernelBuffers, kMostKernelUniforms));
  uint64_t bytes = 0;
  for (const std::string& text : options.buffers) {
    auto buffer = read_buffer(text);
    if (!buffer.ok()) return buffer.status();
    for (const KernelBuffer& other : kernel.buffers)
      if (other.name == buffer->name)
        return absl::InvalidArgumentError(absl::StrFormat("two buffers are called \"%s\"", other.name));
    bytes += buffer->array.data.size();
    if (bytes > kMostKernelBytes)
      return absl::InvalidArgumentError(
          absl::StrFormat("the buffers have more than %d MiB", kMostKernelBytes >> 20));
    kernel.buffers.push_back(*std::move(buffer));
  }
  place(&kernel);
  for (const std::string& text : options.uniforms) {
    const auto word = parse_uniform(text, kernel);
    if (!word.ok()) return word.status();
    kernel.uniforms.push_back(*word);
  }
  if (options.uniforms.empty()) kernel.uniforms = std::move(assembled);
  if (kernel.uniforms.empty())
    for (const KernelBuffer& buffer : kernel.buffers) kernel.uniforms.push_back(buffer.address);
  if (kernel.uniforms.size() > kMostKernelUniforms)
    return absl::InvalidArgumentError(absl::StrFormat("more than %d uniforms", kMostKernelUniforms));
  return kernel;
}

absl::StatusOr<std::map<size_t, std::string>> read_outputs(const KernelOptions& options,
                                                           const Kernel& kernel) {
  std::map<size_t, std::string> outputs;
  for (const std::string& text : options.outputs) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    size_t number = 0;
    while (number < kernel.buffers.size() && kernel.buffers[number].name != parts.first) ++number;
    if (number == kernel.buffers.size() || parts.second.empty())
      return absl::InvalidArgumentError(absl::StrFormat("--out %s is no NAME=FILE.npy of a buffer", text));
    outputs[number] = parts.second;
  }
  return outputs;
}

}  // namespace v3d::tools
