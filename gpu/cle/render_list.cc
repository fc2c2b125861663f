#include "gpu/cle/render_list.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "absl/strings/str_format.h"
#include "gpu/cle/packet_table.h"

namespace v3d::cle {
namespace {

using tlb::Clamp;
using tlb::ColorType;

/// Largest frame that a chip renders (Mesa main, v3d_limits.h, V3D_MAX_FRAMEBUFFER_SIZE).
constexpr uint32_t max_frame(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return 2048;
    case chip::Generation::k42:
      return 4096;
    case chip::Generation::k71:
      return 7680;
  }
  chip::no_such_generation();
}
constexpr uint32_t max_targets(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return 1;
    case chip::Generation::k42:
      return 4;
    case chip::Generation::k71:
      return 8;
  }
  chip::no_such_generation();
}
/// The numbers of image formats that it has are lower.
constexpr uint32_t image_formats_end(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:  // what it renders to is no image of a packet
      return 0;
    case chip::Generation::k42:
      return 46;
    case chip::Generation::k71:
      return 256;  // all
  }
  chip::no_such_generation();
}
/// Highest number that MULTICORE_RENDERING_TILE_LIST_SET_BASE can give a base.
constexpr uint32_t kLastListSet = 15;
/// Packets and commands of a generic list; Mesa's longest has eight loads and nine stores.
constexpr uint32_t kMaxListPackets = 4096, kMaxCommands = 256;
constexpr size_t kMaxCalls = 4;

/// RENDER_TARGET_PART1, "Internal Type and Clamping"; numbers missing here do not exist.
struct TypeClamp {
  uint8_t value;
  ColorType type;
  Clamp clamp;
};
constexpr TypeClamp kTypeClamps[] = {
    {0, ColorType::k8I, Clamp::kNone},   {1, ColorType::k16I, Clamp::kNone},
    {2, ColorType::k32I, Clamp::kNone},  {4, ColorType::k8Ui, Clamp::kNone},
    {5, ColorType::k16Ui, Clamp::kNone}, {6, ColorType::k32Ui, Clamp::kNone},
    {8, ColorType::k8, Clamp::kNone},    {9, ColorType::k16F, Clamp::kNone},
    {10, ColorType::k32F, Clamp::kNone}, {16, ColorType::k8I, Clamp::kInt},
    {17, ColorType::k16I, Clamp::kInt},  {18, ColorType::k32I, Clamp::kInt},
    {20, ColorType::k8Ui, Clamp::kInt},  {21, ColorType::k16Ui, Clamp::kInt},
    {22, ColorType::k32Ui, Clamp::kInt}, {24, ColorType::k16F, Clamp::kNorm},
    {25, ColorType::k16F, Clamp::kPos},  {26, ColorType::k16F, Clamp::kPq},
    {27, ColorType::k16F, Clamp::kHlg},
};

/// "Internal Type" of 4.2.
struct InternalType {
  uint8_t value;
  ColorType type;
};
constexpr InternalType kInternalTypes[] = {
    {0, ColorType::k8I},  {1, ColorType::k8Ui},  {2, ColorType::k8},
    {4, ColorType::k16I}, {5, ColorType::k16Ui}, {6, ColorType::k16F},
    {8, ColorType::k32I}, {9, ColorType::k32Ui}, {10, ColorType::k32F},
};
constexpr Clamp kClamps42[] = {Clamp::kNone, Clamp::kNorm, Clamp::kPos, Clamp::kInt};

template <typename Row, size_t kCount>
const Row* find(const Row (&rows)[kCount], uint32_t value) {
  for (const Row& row : rows)
    if (row.value == value) return &row;
  return nullptr;
}

/// Replaces bits [start, start + width) of a 128-bit value.
void put_bits(std::array<uint32_t, 4>& words, uint32_t start, uint32_t width, uint64_t value) {
  for (uint32_t i = 0; i < width; ++i) {
    uint32_t& word = words[(start + i) / 32];
    const uint32_t bit = 1u << ((start + i) % 32);
    word = (value >> i) & 1 ? word | bit : word & ~bit;
  }
}

/// Forms by sub-id.
enum Form71 : int8_t { kCommon71, kClearValues71, kPart1, kPart2, kPart3 };
enum Form42 : int8_t { kCommon42, kColor42, kClearValues42, kColors1, kColors2, kColors3 };

template <chip::Generation kGeneration>
consteval Field common_field(std::string_view name) {
  return field("Tile Rendering Mode Cfg (Common)", name, set_of(kGeneration));
}

bool fail(std::string* error, std::string message) {
  *error = std::move(message);
  return false;
}

}  // namespace

bool FrameConfig::apply(const Packet& packet, std::string* error) {
  switch (generation_) {
    case chip::Generation::k21:
      return fail(error, "V3D 2.1 has no rendering lists");
    case chip::Generation::k42:
      return apply_42(packet, error);
    case chip::Generation::k71:
      return apply_71(packet, error);
  }
  chip::no_such_generation();
}

bool FrameConfig::apply_71(const Packet& packet, std::string* error) {
  switch (packet.info->sub_id) {
    case kCommon71:
      set_tile_size({8u << packet.get(common_field<chip::Generation::k71>("Log2 Tile Width")),
                     8u << packet.get(common_field<chip::Generation::k71>("Log2 Tile Height"))});
      config_.auto_clear_zs = true;
      return common<chip::Generation::k71>(packet, error);
    case kClearValues71:
      clear_values(packet);
      return true;
    default:
      return target_71(packet, error);
  }
}

bool FrameConfig::apply_42(const Packet& packet, std::string* error) {
  switch (packet.info->sub_id) {
    case kCommon42:
      config_.auto_clear_zs = packet.flag(common_field<chip::Generation::k42>("Early Depth/Stencil Clear"));
      if (!common<chip::Generation::k42>(packet, error)) return false;
      set_tile_size(
          tile_size_42(config_.num_render_targets,
                       packet.get(common_field<chip::Generation::k42>("Maximum BPP of all render targets")),
                       config_.multisample,
                       packet.flag(common_field<chip::Generation::k42>("Double-buffer in non-ms mode"))));
      return true;
    case kClearValues42:
      clear_values(packet);
      return true;
    default:
      return colors_42(packet, error);
  }
}

void FrameConfig::set_tile_size(TileSize size) {
  config_.tile_width = size.width;
  config_.tile_height = size.height;
}

template <chip::Generation kGeneration>
bool FrameConfig::common(const Packet& packet, std::string* error) {
  complete_ = false;
  config_.width = packet.get(common_field<kGeneration>("Image Width (pixels)"));
  config_.height = packet.get(common_field<kGeneration>("Image Height (pixels)"));
  config_.multisample = packet.flag(common_field<kGeneration>("Multisample Mode (4x)"));
  const uint32_t targets = packet.get(common_field<kGeneration>("Number of Render Targets"));
  constexpr uint32_t kMaxTargets = max_targets(kGeneration);
  constexpr uint32_t kMaxFrame = max_frame(kGeneration);
  if (targets > kMaxTargets)
    return fail(error,
                absl::StrFormat("Number of Render Targets %d, at most %d exist", targets, kMaxTargets));
  config_.num_render_targets = static_cast<uint8_t>(targets);
  if (config_.width > kMaxFrame || config_.height > kMaxFrame)
    return fail(error, absl::StrFormat("frame of %d x %d pixels, the limit is %d", config_.width,
                                       config_.height, kMaxFrame));
  const uint32_t depth = packet.get(common_field<kGeneration>("Internal Depth Type"));
  if (depth > static_cast<uint32_t>(tlb::DepthType::k16))
    return fail(error, absl::StrFormat("Internal Depth Type %d", depth));
  config_.depth_type = static_cast<tlb::DepthType>(depth);
  return true;
}

void FrameConfig::clear_values(const Packet& packet) {
  constexpr std::string_view kOwner = "Tile Rendering Mode Cfg (ZS Clear Values)";
  // Both generations have the same layout.
  config_.clear_stencil = static_cast<uint8_t>(packet.get(field(kOwner, "Stencil Clear Value", k71)));
  config_.clear_z = packet.get_float(field(kOwner, "Z Clear Value", k71));
  complete_ = true;
}

bool FrameConfig::target_71(const Packet& packet, std::string* error) {
  constexpr std::string_view kPart = "Tile Rendering Mode Cfg (Render Target Part1)";
  tlb::RenderTarget& target = config_.targets[packet.get(field(kPart, "Render Target number", k71))];
  switch (packet.info->sub_id) {
    case kPart1: {
      const uint32_t value = packet.get(field(kPart, "Internal Type and Clamping", k71));
      const uint32_t bpp = packet.get(field(kPart, "Internal BPP", k71));
      const TypeClamp* row = find(kTypeClamps, value);
      if (row == nullptr) return fail(error, absl::StrFormat("Internal Type and Clamping %d", value));
      if (bpp > 2) return fail(error, absl::StrFormat("Internal BPP %d", bpp));
      target.used = packet.get(field(kPart, "Stride", k71)) != 1;  // as the driver marks unused ones
      target.type = row->type;
      target.clamp = row->clamp;
      target.bpp = static_cast<uint8_t>(bpp);
      put_bits(target.clear, 0, 32, packet.get(field(kPart, "Clear Color low bits", k71)));
      return true;
    }
    case kPart2:
      put_bits(target.clear, 32, 40,
               packet.get_wide(
                   field("Tile Rendering Mode Cfg (Render Target Part2)", "Clear Color mid bits", k71)));
      return true;
    case kPart3:
      put_bits(target.clear, 72, 56,
               packet.get_wide(
                   field("Tile Rendering Mode Cfg (Render Target Part3)", "Clear Color top bits", k71)));
      return true;
    default:
      return fail(error, absl::StrFormat("sub-id %d", packet.info->sub_id));
  }
}

bool FrameConfig::colors_42(const Packet& packet, std::string* error) {
  if (packet.info->sub_id == kColor42) {
    for (uint32_t i = 0; i < 4; ++i) {
      const auto get = [&](uint16_t start, uint8_t width) {
        return static_cast<uint32_t>(
            packet.get_wide({nullptr, static_cast<uint16_t>(start + 8 * i), width, FieldType::kUint}));
      };
      constexpr std::string_view kOwner = "Tile Rendering Mode Cfg (Color)";
      constexpr Field kBpp = field(kOwner, "Render Target 0 Internal BPP", k42);
      constexpr Field kType = field(kOwner, "Render Target 0 Internal Type", k42);
      constexpr Field kClamp = field(kOwner, "Render Target 0 Clamp", k42);
      tlb::RenderTarget& target = config_.targets[i];
      target.used = i < config_.num_render_targets;
      const InternalType* type = find(kInternalTypes, get(kType.start, kType.width));
      const uint32_t bpp = get(kBpp.start, kBpp.width);
      if (target.used && (type == nullptr || bpp > 2))
        return fail(error, absl::StrFormat("render target %d: Internal Type %d, Internal BPP %d", i,
                                           get(kType.start, kType.width), bpp));
      if (!target.used) continue;
      target.type = type->type;
      target.bpp = static_cast<uint8_t>(bpp);
      target.clamp = kClamps42[get(kClamp.start, kClamp.width)];
    }
    return true;
  }
  constexpr std::string_view kPart1Name = "Tile Rendering Mode Cfg (Clear Colors Part1)";
  constexpr std::string_view kPart2Name = "Tile Rendering Mode Cfg (Clear Colors Part2)";
  constexpr std::string_view kPart3Name = "Tile Rendering Mode Cfg (Clear Colors Part3)";
  const uint32_t number = packet.get(field(kPart1Name, "Render Target number", k42));
  if (number >= 4) return fail(error, absl::StrFormat("Render Target number %d", number));
  std::array<uint32_t, 4>& clear = config_.targets[number].clear;
  switch (packet.info->sub_id) {
    case kColors1:
      put_bits(clear, 0, 32, packet.get(field(kPart1Name, "Clear Color low 32 bits", k42)));
      put_bits(clear, 32, 24, packet.get(field(kPart1Name, "Clear Color next 24 bits", k42)));
      return true;
    case kColors2:
      put_bits(clear, 56, 32, packet.get(field(kPart2Name, "Clear Color mid-low 32 bits", k42)));
      put_bits(clear, 88, 24, packet.get(field(kPart2Name, "Clear Color mid-high 24 bits", k42)));
      return true;
    case kColors3:
      put_bits(clear, 112, 16, packet.get(field(kPart3Name, "Clear Color high 16 bits", k42)));
      return true;
    default:
      return fail(error, absl::StrFormat("sub-id %d", packet.info->sub_id));
  }
}

SupertileConfig decode_supertile_config(const Packet& packet) {
  constexpr std::string_view kOwner = "Multicore Rendering Supertile Cfg";
  return {.width = packet.get(field(kOwner, "Supertile Width in Tiles")),
          .height = packet.get(field(kOwner, "Supertile Height in Tiles")),
          .frame_columns = packet.get(field(kOwner, "Total Frame Width in Tiles")),
          .frame_rows = packet.get(field(kOwner, "Total Frame Height in Tiles"))};
}

namespace {

constexpr uint8_t kNoBuffer = 8, kLastBuffer = 11;

/// Fields that loads and stores have in common stand at the same bits.
tlb::LoadStore decode_transfer(const Packet& p) {
  constexpr std::string_view kOwner = "Store Tile Buffer General";
  return {.buffer = static_cast<uint8_t>(p.get(field(kOwner, "Buffer to Store"))),
          .memory_format = static_cast<uint8_t>(p.get(field(kOwner, "Memory Format"))),
          .flip_y = p.flag(field(kOwner, "Flip Y")),
          .height = static_cast<uint16_t>(p.get(field(kOwner, "Height"))),
          .decimate = static_cast<uint8_t>(p.get(field(kOwner, "Decimate mode"))),
          .format = static_cast<uint8_t>(p.get(field(kOwner, "Output Image Format"))),
          .channel_reverse = p.flag(field(kOwner, "Channel Reverse")),
          .rb_swap = p.flag(field(kOwner, "R/B swap")),
          .stride_or_height = p.get(field(kOwner, "Height in UB or Stride")),
          .address = p.get(field(kOwner, "Address"))};
}

TilePacket decode_load_store(const Packet& p, chip::Generation generation, TileCommand* command,
                             std::string* error) {
  const bool store = p.opcode == Opcode::kStoreTileBufferGeneral;
  command->kind = store ? TileCommand::Kind::kStore : TileCommand::Kind::kLoad;
  command->transfer = decode_transfer(p);
  if (command->transfer.buffer > kLastBuffer) {
    *error = absl::StrFormat("buffer %d in %s", command->transfer.buffer, describe(p));
    return TilePacket::kBad;
  }
  if (command->transfer.format >= image_formats_end(generation)) {
    *error = absl::StrFormat("image format %d in %s, which %s does not have", command->transfer.format,
                             describe(p), chip::version_text(generation));
    return TilePacket::kBad;
  }
  if (store) {
    command->transfer.dither = static_cast<uint8_t>(p.get(field("Store Tile Buffer General", "Dither Mode")));
    command->transfer.clear_after = p.flag(field("Store Tile Buffer General", "Clear buffer being stored"));
  } else {
    command->transfer.force_alpha_1 = p.flag(field("Load Tile Buffer General", "Force alpha 1"));
  }
  return command->transfer.buffer == kNoBuffer ? TilePacket::kNothing : TilePacket::kCommand;
}

void decode_clear(const Packet& p, chip::Generation generation, TileCommand* command) {
  command->kind = TileCommand::Kind::kClear;
  switch (generation) {
    case chip::Generation::k21:  // has no packet of this form
      break;
    case chip::Generation::k42:
      command->clear_colors = p.flag(field("Clear Tile Buffers", "Clear all Render Targets", k42));
      command->clear_depth_stencil = p.flag(field("Clear Tile Buffers", "Clear Z/Stencil Buffer", k42));
      break;
    case chip::Generation::k71:
      command->clear_colors = true;
      command->clear_depth_stencil = false;
  }
}

}  // namespace

TilePacket decode_tile_packet(const Packet& p, chip::Generation generation, TileCommand* command,
                              std::string* error) {
  *command = {};
  switch (p.opcode) {
    case Opcode::kLoadTileBufferGeneral:
    case Opcode::kStoreTileBufferGeneral:
      return decode_load_store(p, generation, command, error);
    case Opcode::kClearRenderTargets:
      static_assert(Opcode::kClearRenderTargets == Opcode::kClearTileBuffers);
      decode_clear(p, generation, command);
      return TilePacket::kCommand;
    case Opcode::kBranchToImplicitTileList: {
      const uint32_t set = p.get(field("Branch to Implicit Tile List", "tile list set number"));
      command->kind = TileCommand::Kind::kDrawList;
      command->list_set = static_cast<uint8_t>(set);
      if (set <= kLastListSet) return TilePacket::kCommand;
      *error = absl::StrFormat("tile list set number %d in %s, the last one is %d", set, describe(p),
                               kLastListSet);
      return TilePacket::kBad;
    }
    // Our lists carry ids and the kind of primitive themselves.
    case Opcode::kSetInstanceId:
    case Opcode::kSetPrimitiveId:
    case Opcode::kPrimListFormat:
    case Opcode::kTileCoordinatesImplicit:
    case Opcode::kEndOfLoads:
    case Opcode::kNop:
    case Opcode::kFlushVcdCache:
      return TilePacket::kNothing;
    default:
      return TilePacket::kOther;
  }
}

namespace {

/// Drops clears after the last command that could see them.
void drop_final_clears(TileProgram& program) {
  std::vector<TileCommand>& commands = program.commands;
  while (!commands.empty() && commands.back().kind == TileCommand::Kind::kClear) commands.pop_back();
  for (auto it = commands.rbegin(); it != commands.rend() && it->kind == TileCommand::Kind::kStore; ++it) {
    // A store sees the clear of an earlier one only if both name the same buffer.
    const bool seen = std::any_of(commands.rbegin(), it, [&](const TileCommand& later) {
      return later.transfer.buffer == it->transfer.buffer;
    });
    if (!seen) it->transfer.clear_after = false;
  }
}

/// Whether two stores take the same samples of the same buffer.
bool stores_twice(const std::vector<TileCommand>& commands) {
  for (size_t i = 0; i < commands.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (commands[i].kind == TileCommand::Kind::kStore && commands[k].kind == TileCommand::Kind::kStore &&
          commands[i].transfer.buffer == commands[k].transfer.buffer &&
          commands[i].transfer.decimate == commands[k].transfer.decimate)
        return true;
  return false;
}

}  // namespace

bool parse_generic_list(Memory memory, chip::Generation generation, GpuAddr start, GpuAddr end,
                        TileProgram* program, std::string* error) {
  *program = {};
  GpuAddr pc = start;
  std::vector<GpuAddr> calls;
  for (uint32_t count = 0; pc != end || !calls.empty(); ++count) {
    Packet p;
    if (!decode(memory, pc, generation, &p))
      return fail(error, absl::StrFormat("generic tile list: %s", describe(p)));
    if (count == kMaxListPackets || program->commands.size() == kMaxCommands)
      return fail(error, absl::StrFormat("generic tile list at 0x%08x runs away", start));
    pc += p.length;
    if (p.opcode == Opcode::kReturnFromSubList) {
      if (calls.empty()) break;
      pc = calls.back();
      calls.pop_back();
      continue;
    }
    if (p.opcode == Opcode::kBranch || p.opcode == Opcode::kBranchToSubList) {
      if (p.opcode == Opcode::kBranchToSubList) {
        if (calls.size() == kMaxCalls)
          return fail(error, absl::StrFormat("generic tile list: calls nest too deep, %s", describe(p)));
        calls.push_back(pc);
      }
      pc = p.get(field("Branch", "address"));
      continue;
    }
    TileCommand command;
    switch (decode_tile_packet(p, generation, &command, error)) {
      case TilePacket::kCommand:
        program->commands.push_back(command);
        break;
      case TilePacket::kNothing:
        break;
      case TilePacket::kBad:
        return false;
      case TilePacket::kOther:
        if (p.opcode == Opcode::kEndOfTileMarker) break;
        return fail(error, absl::StrFormat("generic tile list: %s has no place there", describe(p)));
    }
  }
  drop_final_clears(*program);
  for (const TileCommand& c : program->commands) {
    program->draws |= c.kind == TileCommand::Kind::kDrawList;
    program->transfers |= c.kind == TileCommand::Kind::kLoad || c.kind == TileCommand::Kind::kStore;
    program->writes |=
        c.kind == TileCommand::Kind::kLoad || c.kind == TileCommand::Kind::kClear || c.transfer.clear_after;
  }
  program->in_order = program->draws && stores_twice(program->commands);
  return true;
}

std::string describe(const Packet& p) {
  if (p.info == nullptr) return absl::StrFormat("unknown packet, opcode %d at 0x%08x", p.number, p.address);
  return absl::StrFormat("%s (opcode %d) at 0x%08x", p.info->name, p.number, p.address);
}

}  // namespace v3d::cle
