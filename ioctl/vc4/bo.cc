/// @file Buffer objects of vc4 (vc4-abi.md 2.6, 2.8 to 2.10; Linux vc4_bo.c).
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "gpu/base/log.h"
#include "gpu/mmu/address_space.h"
#include "ioctl/kms/handlers.h"
#include "ioctl/vc4/device.h"
#include "ioctl/vc4/handlers.h"
#include "ioctl/vc4/program.h"

namespace v3d::ioctl::vc4 {
namespace {

/// Longer ones are more than the kernel's list of labels has room for on a line.
constexpr size_t kMaxShownLabel = 63;
/// Longest text that is read.
constexpr uint32_t kMaxLabel = 4096;

constexpr uint64_t whole_pages(uint64_t bytes) {
  return (bytes + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
}

/// A BO without a handle, with its part of the board's memory.
int allocate(Call& call, uint64_t bytes, KernelLabel label, std::shared_ptr<Bo>* bo) {
  Device& device = device_of(call);
  if (const int error = client_of(call).hold_binner_memory(device)) return error;
  const uint64_t size = whole_pages(bytes);
  ContiguousMemory::Piece piece;
  if (const int error = device.memory()->take(size, label, &piece)) return error;
  if (const int error = call.file.create_bo(call.account, size, false, bo)) return error;
  object_of(call, **bo).keep(std::move(piece));
  return 0;
}

/// As strndup_user does with len + 1.
int read_label(Call& call, const drm::vc4::LabelBo& args, std::string* label) {
  for (uint64_t i = 0; i <= args.len; ++i) {
    char c;
    if (!call.user.get(args.name + i, &c)) return EFAULT;
    if (!c) return 0;
    if (i >= kMaxLabel) return ENOMEM;
    if (label->size() < kMaxShownLabel) label->push_back(c);
  }
  return EINVAL;
}

}  // namespace

int create_bo(Call& call, drm::vc4::CreateBo& args) {
  if (const int error = client_of(call).hold_binner_memory(device_of(call))) return error;
  if (args.size == 0) return EINVAL;
  std::shared_ptr<Bo> bo;
  if (const int error = allocate(call, args.size, KernelLabel::kV3d, &bo)) return error;
  uint32_t handle = 0;
  if (const int error = call.file.add_handle(call.account, bo, &handle)) return error;
  args.handle = handle;
  return 0;
}

int create_dumb(Call& call, drm::CreateDumb& args) {
  // What it takes is known when the sizes have been checked.
  if (const int error = ioctl::create_dumb(call, args)) return error;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return 0;  // another thread has closed it
  ContiguousMemory::Piece piece;
  if (const int error = device_of(call).memory()->take(bo->size(), KernelLabel::kDumb, &piece)) {
    call.file.close_handle(args.handle);
    return error;
  }
  object_of(call, *bo).keep(std::move(piece));
  return 0;
}

int add_fb2(Call& call, drm::FbCmd2& args) {
  drm::FbCmd2 full = args;
  // Who names no modifier means what the BO has been set to (vc4_fb_create).
  if (!(args.flags & drm::kFbModifiers) && args.modifier[0] == 0) {
    const std::shared_ptr<Bo> bo = call.file.find_bo(args.handles[0]);
    if (bo && object_of(call, *bo).is_t_tiled()) {
      full.flags |= drm::kFbModifiers;
      full.modifier[0] = drm::vc4::kModifierTTiled;
    }
  }
  if (const int error = ioctl::add_fb2(call, full)) return error;
  args.fb_id = full.fb_id;
  return 0;
}

int add_fb(Call& call, drm::FbCmd& args) {
  drm::FbCmd2 full;
  if (!full_request(args, &full)) return EINVAL;
  if (const int error = vc4::add_fb2(call, full)) return error;
  args.fb_id = full.fb_id;
  return 0;
}

int mmap_bo(Call& call, drm::vc4::MmapBo& args) {
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return EINVAL;
  args.offset = bo->mmap_offset();
  return 0;
}

int create_shader_bo(Call& call, drm::vc4::CreateShaderBo& args) {
  if (args.size == 0 || args.size % sizeof(uint64_t) != 0 || args.flags != 0 || args.pad != 0) return EINVAL;
  if (args.size > kMaxProgramBytes) return ENOMEM;
  std::shared_ptr<Bo> bo;
  if (const int error = allocate(call, args.size, KernelLabel::kShader, &bo)) return error;
  std::vector<uint64_t> words(bo->size() / sizeof(uint64_t));
  if (!call.user.read(args.data, words.data(), args.size)) return EFAULT;
  auto program = analyse_program(words);
  if (!program.ok()) {
    if (client_of(call).says_refusal())
      log_warning("%s (pid %d): VC4_CREATE_SHADER_BO refuses a program: %s", call.file.client()->program,
                  call.file.client()->pid, std::string(program.status().message()));
    return EINVAL;
  }
  uint8_t* const memory = bo->host(0, bo->size());
  if (!memory) return ENOMEM;
  std::copy_n(reinterpret_cast<const uint8_t*>(words.data()), bo->size(), memory);
  auto facts = std::make_shared<const Program>(*std::move(program));
  Charge charge;
  if (const int error = call.account.charge(Resource::kBoBytes, facts->host_bytes(), &charge)) return error;
  object_of(call, *bo).become_shader(std::move(facts), std::move(charge));
  uint32_t handle = 0;
  if (const int error = call.file.add_handle(call.account, bo, &handle)) return error;
  args.handle = handle;
  return 0;
}

int set_tiling(Call& call, drm::vc4::Tiling& args) {
  if (args.flags != 0) return EINVAL;
  if (args.modifier != drm::vc4::kModifierLinear && args.modifier != drm::vc4::kModifierTTiled) return EINVAL;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  object_of(call, *bo).set_t_tiled(args.modifier == drm::vc4::kModifierTTiled);
  return 0;
}

int get_tiling(Call& call, drm::vc4::Tiling& args) {
  if (args.flags != 0 || args.modifier != 0) return EINVAL;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  args.modifier = object_of(call, *bo).is_t_tiled() ? drm::vc4::kModifierTTiled : drm::vc4::kModifierLinear;
  return 0;
}

int label_bo(Call& call, drm::vc4::LabelBo& args) {
  if (args.len == 0) return EINVAL;
  std::string label;
  if (const int error = read_label(call, args, &label)) return error;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  object_of(call, *bo).set_label(label);
  return 0;
}

int gem_madvise(Call& call, drm::vc4::GemMadvise& args) {
  if (args.madv > drm::vc4::kDontNeed || args.pad != 0) return EINVAL;
  const std::shared_ptr<Bo> bo = call.file.find_bo(args.handle);
  if (!bo) return ENOENT;
  args.retained = object_of(call, *bo).advise(args.madv == drm::vc4::kWillNeed);
  return 0;
}

}  // namespace v3d::ioctl::vc4
