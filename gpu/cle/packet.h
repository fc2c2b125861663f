/// Control lists consist of packets, and of the records that they point to: here is what stands where, how to
/// take a packet from a list, and how to read its fields (cle-and-tiles.md 1; names as in Mesa's
/// v3d_packet.xml).
///
///     Packet packet;
///     while (decode(memory, pc, generation, &packet)) {
///       switch (packet.opcode) {
///         case Opcode::kBranch: pc = packet.get(field("Branch", "address")); continue;
///         ...
///       }
///       pc += packet.length;
///     }
///
/// Fields are found by name at compile time; the table that holds them is in packet_table.h.
#pragma once

#include <cstdint>

#include "gpu/base/memory.h"
#include "gpu/chip/generation.h"

namespace v3d::cle {

enum class Opcode : uint8_t {
  kHalt = 0,
  kNop = 1,
  kFlush = 4,
  kFlushAllState = 5,
  kStartTileBinning = 6,
  kIncrementSemaphore = 7,
  kWaitOnSemaphore = 8,
  kWaitForPreviousFrame = 9,
  kEnableZOnlyRendering = 10,
  kDisableZOnlyRendering = 11,
  kEndOfZOnlyRenderingInFrame = 12,
  kEndOfRendering = 13,
  kWaitForTransformFeedback = 14,
  kBranchToAutoChainedSubList = 15,
  kBranch = 16,
  kBranchToSubList = 17,
  kReturnFromSubList = 18,
  kFlushVcdCache = 19,
  kStartAddressOfGenericTileList = 20,
  kBranchToImplicitTileList = 21,
  kBranchToExplicitSupertile = 22,
  kSupertileCoordinates = 23,
  kClearTileBuffers = 25,    ///< 4.2
  kClearRenderTargets = 25,  ///< 7.1
  kEndOfLoads = 26,
  kEndOfTileMarker = 27,
  kStoreTileBufferGeneral = 29,
  kLoadTileBufferGeneral = 30,
  kTransformFeedbackFlushAndCount = 31,
  kIndexedPrimList = 32,
  kIndirectIndexedInstancedPrimList = 33,
  kIndexedInstancedPrimList = 34,
  kVertexArrayPrims = 36,
  kIndirectVertexArrayInstancedPrims = 37,
  kVertexArrayInstancedPrims = 38,
  kVertexArraySingleInstancePrims = 39,
  kBaseVertexBaseInstance = 43,
  kIndexBufferSetup = 44,
  kSetInstanceId = 54,
  kSetPrimitiveId = 55,
  kPrimListFormat = 56,
  kSerialNumberListStart = 57,
  kGlShaderState = 64,
  kGlShaderStateIncludingTs = 65,
  kGlShaderStateIncludingGs = 66,
  kGlShaderStateIncludingTsGs = 67,
  kVcmCacheSize = 71,
  kPrimitiveCountsFeedback = 72,
  kTransformFeedbackBuffer = 73,
  kTransformFeedbackSpecs = 74,
  kFlushTransformFeedbackData = 75,
  kL1CacheFlushControl = 76,
  kL2TCacheFlushControl = 77,
  kStencilCfg = 80,
  kBlendEnables = 83,
  kBlendCfg = 84,
  kBlendConstantColor = 86,
  kColorWriteMasks = 87,
  kZeroAllCentroidFlags = 88,
  kCentroidFlags = 89,
  kSampleState = 91,
  kOcclusionQueryCounter = 92,
  kDepthBoundsTestLimits = 93,
  kCfgBits = 96,
  kZeroAllFlatShadeFlags = 97,
  kFlatShadeFlags = 98,
  kZeroAllNonPerspectiveFlags = 99,
  kNonPerspectiveFlags = 100,
  kPointSize = 104,
  kLineWidth = 105,
  kDepthOffset = 106,
  kClipWindow = 107,
  kViewportOffset = 108,
  kClipperZMinMaxClippingPlanes = 109,
  kClipperXyScaling = 110,
  kClipperZScaleAndOffset = 111,
  kClipperZScaleAndOffsetNoGuardband = 112,
  kNumberOfLayers = 119,
  kTileBinningModeCfg = 120,
  kTileRenderingModeCfg = 121,
  kMulticoreRenderingSupertileCfg = 122,
  kMulticoreRenderingTileListSetBase = 123,
  kTileCoordinates = 124,
  kTileCoordinatesImplicit = 125,
  kTileListInitialBlockSize = 126,
  // Of VideoCore IV alone. Its packets have other numbers (vc4_packet_table.h), also those that mean the
  // same.
  kFirstOfVc4 = 128,
  kStoreResolvedColor = kFirstOfVc4,
  kStoreResolvedColorAndEof,
  kStoreFullResolution,
  kReloadFullResolution,
  kRhtXBoundary,
  kClearColors,
  kGemRelocations,
};

/// How the bits of a field are read and printed.
enum class FieldType : uint8_t {
  kUint,
  kMinusOne,  ///< stored value is the real one minus 1
  kInt,
  kBool,
  kAddress,  ///< sits in place in its dword: the bits below the field are 0
  kFloat,
  kBf16,     ///< upper half of a float
  kFixed8,   ///< unsigned, 8 fraction bits
  kSigned4,  ///< signed, 4 fraction bits
  // Enumerations
  kPrimitive,
  kIndexType,
  kListPrimitive,
  kCompare,
  kBlendFactor,
  kBlendMode,
  kStencilOp,
  kVaryingAction,
  kMemoryFormat,
  kImageFormat,
  kBuffer,
  kDecimate,
  kDither,
  kInternalType,
  kInternalBpp,
  kInternalDepthType,
  kRtClamp,
  kTypeClamp,
  kL2tFlush,
  kLineRasterization,
  kZClip,
  kBlockSize,
  kTileSize,
  kAttributeType,
  kPackMode,
  kTcsFlush,
  // Of VideoCore IV:
  kVc4Buffer,
  kVc4MemoryFormat,
  kVc4Decimate,
  kVc4TransferFormat,  ///< of loads and stores
  kVc4FrameFormat,     ///< of the rendering mode, which numbers the same ones in another way
  kVc4ListPrimitive,
  kVc4ListData,
  kVc4BlockSize,
};

/// Bits [start, start + width) of a packet body (after the opcode) or a record; width <= 56.
struct Field {
  const char* name = nullptr;
  uint16_t start = 0;
  uint8_t width = 0;
  FieldType type = FieldType::kUint;
};

// Sets of generations, as stored in the tables.
using chip::k21;
using chip::k42;
using chip::k71;
using chip::kBoth;
using chip::set_of;

struct PacketInfo {
  Opcode opcode;
  const char* name;
  chip::Generations generations;
  uint8_t length;         ///< bytes, opcode included
  Field fields[17] = {};  ///< ascending; unused ones have no name
  int8_t sub_id = -1;     ///< TILE_RENDERING_MODE_CFG: value of field "sub-id" that selects this form
};

struct RecordInfo {
  const char* name;
  chip::Generations generations;
  uint8_t length;  ///< bytes
  Field fields[48] = {};
};

/// Raw bits of a field. @param body  readable for 8 bytes from the byte in which the field starts
uint64_t read_bits(const uint8_t* body, const Field& field);
/// Value of a field of up to 32 bits: minus-one fields corrected, addresses in place, signed ones (kInt,
/// kSigned4) extended, floats as their bits, kBf16 as the bits of the float it stands for.
uint32_t read_value(const uint8_t* body, const Field& field);
/// Value of a kFloat, kBf16, kFixed8 or kSigned4 field.
float read_float(const uint8_t* body, const Field& field);

struct Packet {
  const PacketInfo* info =
      nullptr;  ///< null: the generation has no such opcode or TILE_RENDERING_MODE_CFG form
  GpuAddr address = 0;
  Opcode opcode{};      ///< what it means; of unknown packets nothing
  uint8_t number = 0;   ///< its first byte
  uint32_t length = 0;  ///< bytes to the next packet; includes the records that follow opcode 74
  uint8_t body[24] = {};

  uint32_t get(const Field& field) const { return read_value(body, field); }
  bool flag(const Field& field) const { return get(field) != 0; }
  uint64_t get_wide(const Field& field) const { return read_bits(body, field); }
  float get_float(const Field& field) const { return read_float(body, field); }
};

/// Takes the packet at an address; reads its bytes only, none beyond.
/// @return  false if the packet is unknown: info is null, opcode and address say which
bool decode(Memory memory, GpuAddr address, chip::Generation generation, Packet* packet);
/// The same on VideoCore IV.
bool decode_vc4(Memory memory, GpuAddr address, Packet* packet);

/// A record of GPU memory, read whole.
struct Record {
  GpuAddr address = 0;
  uint8_t body[48] = {};  ///< 36 bytes at most, and room for read_bits

  void load(Memory memory, GpuAddr from, const RecordInfo& info);
  uint32_t get(const Field& field) const { return read_value(body, field); }
  bool flag(const Field& field) const { return get(field) != 0; }
};

/// Name of an enumeration's value, or nullptr.
const char* value_name(FieldType type, uint32_t value);

}  // namespace v3d::cle
