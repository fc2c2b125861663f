/// These are the tables of VideoCore IV's packets and records (vc4-graphics.md 1.1, 1.5), and their use at
/// compile time. Included by the files that read these packets or records. Names are those of Mesa's
/// vc4_packet.xml.
///
/// The binning list is the client's. Packets of the rendering list are here for dumps alone: the kernel
/// writes that list, and this model renders without one (gpu/cle/surfaces.h).
#pragma once

#include <string_view>

#include "gpu/cle/packet.h"

namespace v3d::cle {

namespace vc4_table {

using T = FieldType;

/// Of the generations that the other table is for.
inline constexpr uint8_t kNone = 0;

/// Numbers are not those that V3D has for packets of the same meaning.
struct Row {
  uint8_t number;
  PacketInfo info;
};

inline constexpr Row kPackets[] = {
    {0, {Opcode::kHalt, "Halt", kNone, 1}},
    {1, {Opcode::kNop, "NOP", kNone, 1}},
    {4, {Opcode::kFlush, "Flush", kNone, 1}},
    {5, {Opcode::kFlushAllState, "Flush All State", kNone, 1}},
    {6, {Opcode::kStartTileBinning, "Start Tile Binning", kNone, 1}},
    {7, {Opcode::kIncrementSemaphore, "Increment Semaphore", kNone, 1}},
    {8, {Opcode::kWaitOnSemaphore, "Wait on Semaphore", kNone, 1}},
    {16, {Opcode::kBranch, "Branch", kNone, 5, {{"Address", 0, 32, T::kAddress}}}},
    {17, {Opcode::kBranchToSubList, "Branch to sub-list", kNone, 5, {{"Address", 0, 32, T::kAddress}}}},
    {18, {Opcode::kReturnFromSubList, "Return from sub-list", kNone, 1}},
    {24, {Opcode::kStoreResolvedColor, "Store Multi-sample Resolved Tile Color Buffer", kNone, 1}},
    {25,
     {Opcode::kStoreResolvedColorAndEof, "Store Multi-sample Resolved Tile Color Buffer and EOF", kNone, 1}},
    {26,
     {Opcode::kStoreFullResolution,
      "Store Full Resolution Tile Buffer",
      kNone,
      5,
      {{"Disable Color Buffer write", 0, 1, T::kBool},
       {"Disable Z/Stencil Buffer write", 1, 1, T::kBool},
       {"Disable Clear on Write", 2, 1, T::kBool},
       {"Last Tile", 3, 1, T::kBool},
       {"Address", 4, 28, T::kAddress}}}},
    {27,
     {Opcode::kReloadFullResolution,
      "Re-load Full Resolution Tile Buffer",
      kNone,
      5,
      {{"Disable Color Buffer read", 0, 1, T::kBool},
       {"Disable Z/Stencil Buffer read", 1, 1, T::kBool},
       {"Address", 4, 28, T::kAddress}}}},
    {28,
     {Opcode::kStoreTileBufferGeneral,
      "Store Tile Buffer General",
      kNone,
      7,
      {{"Buffer to Store", 0, 3, T::kVc4Buffer},
       {"Format", 4, 2, T::kVc4MemoryFormat},
       {"Mode", 6, 2, T::kVc4Decimate},
       {"Pixel Color Format", 8, 2, T::kVc4TransferFormat},
       {"Disable Color buffer clear on store/dump", 13, 1, T::kBool},
       {"Disable Z/Stencil buffer clear on store/dump", 14, 1, T::kBool},
       {"Disable VG-Mask buffer clear on store/dump", 15, 1, T::kBool},
       {"Disable Color buffer dump", 16, 1, T::kBool},
       {"Disable Z/Stencil buffer dump", 17, 1, T::kBool},
       {"Disable VG-Mask buffer dump", 18, 1, T::kBool},
       {"Last Tile of Frame", 19, 1, T::kBool},
       {"Memory base address of frame/tile dump buffer", 20, 28, T::kAddress}}}},
    {29,
     {Opcode::kLoadTileBufferGeneral,
      "Load Tile Buffer General",
      kNone,
      7,
      {{"Buffer to Store", 0, 3, T::kVc4Buffer},
       {"Format", 4, 2, T::kVc4MemoryFormat},
       {"Mode", 6, 2, T::kVc4Decimate},
       {"Pixel Color Format", 8, 2, T::kVc4TransferFormat},
       {"Disable Color buffer load", 16, 1, T::kBool},
       {"Disable Z/Stencil buffer load", 17, 1, T::kBool},
       {"Disable VG-Mask buffer load", 18, 1, T::kBool},
       {"Memory base address of frame/tile dump buffer", 20, 28, T::kAddress}}}},
    {32,
     {Opcode::kIndexedPrimList,
      "Indexed Primitive List",
      kNone,
      14,
      {{"Primitive mode", 0, 4, T::kPrimitive},
       {"Index type", 4, 4, T::kIndexType},
       {"Length", 8, 32},
       {"Address of Indices List", 40, 32},
       {"Maximum Index", 72, 32}}}},
    {33,
     {Opcode::kVertexArrayPrims,
      "Vertex Array Primitives",
      kNone,
      10,
      {{"Primitive mode", 0, 4, T::kPrimitive}, {"Length", 8, 32}, {"Index of First Vertex", 40, 32}}}},
    {56,
     {Opcode::kPrimListFormat,
      "Primitive List Format",
      kNone,
      2,
      {{"Primitive Type", 0, 4, T::kVc4ListPrimitive}, {"Data Type", 4, 4, T::kVc4ListData}}}},
    {64,
     {Opcode::kGlShaderState,
      "GL Shader State",
      kNone,
      5,
      {{"Number of attribute arrays", 0, 3},
       {"Extended shader record", 3, 1, T::kBool},
       {"Address", 4, 28, T::kAddress}}}},
    {96,
     {Opcode::kCfgBits,
      "Configuration Bits",
      kNone,
      4,
      {{"Enable Forward Facing Primitive", 0, 1, T::kBool},
       {"Enable Reverse Facing Primitive", 1, 1, T::kBool},
       {"Clockwise Primitives", 2, 1, T::kBool},
       {"Enable Depth Offset", 3, 1, T::kBool},
       {"Antialiased Points and Lines", 4, 1, T::kBool},
       {"Coverage Read Type", 5, 1},
       {"Rasteriser Oversample Mode", 6, 2},
       {"Coverage Pipe Select", 8, 1, T::kBool},
       {"Coverage Read Mode", 11, 1},
       {"Depth-Test Function", 12, 3, T::kCompare},
       {"Z updates enable", 15, 1, T::kBool},
       {"Early Z enable", 16, 1, T::kBool},
       {"Early Z updates enable", 17, 1, T::kBool}}}},
    {97, {Opcode::kFlatShadeFlags, "Flat Shade Flags", kNone, 5, {{"Flat-shading Flags", 0, 32}}}},
    {98, {Opcode::kPointSize, "Point size", kNone, 5, {{"Point Size", 0, 32, T::kFloat}}}},
    {99, {Opcode::kLineWidth, "Line width", kNone, 5, {{"Line width", 0, 32, T::kFloat}}}},
    {100,
     {Opcode::kRhtXBoundary, "RHT X boundary", kNone, 3, {{"RHT primitive X boundary", 0, 16, T::kInt}}}},
    {101,
     {Opcode::kDepthOffset,
      "Depth Offset",
      kNone,
      5,
      {{"Depth Offset Factor", 0, 16, T::kBf16}, {"Depth Offset Units", 16, 16, T::kBf16}}}},
    {102,
     {Opcode::kClipWindow,
      "Clip Window",
      kNone,
      9,
      {{"Clip Window Left Pixel Coordinate", 0, 16},
       {"Clip Window Bottom Pixel Coordinate", 16, 16},
       {"Clip Window Width in pixels", 32, 16},
       {"Clip Window Height in pixels", 48, 16}}}},
    {103,
     {Opcode::kViewportOffset,
      "Viewport Offset",
      kNone,
      5,
      {{"Viewport Centre X-coordinate", 0, 16, T::kSigned4},
       {"Viewport Centre Y-coordinate", 16, 16, T::kSigned4}}}},
    {104,
     {Opcode::kClipperZMinMaxClippingPlanes,
      "Z min and max clipping planes",
      kNone,
      9,
      {{"Minimum Zw", 0, 32, T::kFloat}, {"Maximum Zw", 32, 32, T::kFloat}}}},
    {105,
     {Opcode::kClipperXyScaling,
      "Clipper XY Scaling",
      kNone,
      9,
      {{"Viewport Half-Width in 1/16th of pixel", 0, 32, T::kFloat},
       {"Viewport Half-Height in 1/16th of pixel", 32, 32, T::kFloat}}}},
    {106,
     {Opcode::kClipperZScaleAndOffset,
      "Clipper Z Scale and Offset",
      kNone,
      9,
      {{"Viewport Z Scale (Zc to Zs)", 0, 32, T::kFloat},
       {"Viewport Z Offset (Zc to Zs)", 32, 32, T::kFloat}}}},
    {112,
     {Opcode::kTileBinningModeCfg,
      "Tile Binning Mode Configuration",
      kNone,
      16,
      {{"Tile Allocation memory address", 0, 32},
       {"Tile Allocation memory size", 32, 32},
       {"Tile State Data Array Address", 64, 32},
       {"Width (in tiles)", 96, 8},
       {"Height (in tiles)", 104, 8},
       {"Multisample Mode (4x)", 112, 1, T::kBool},
       {"Tile Buffer 64-bit Color Depth", 113, 1, T::kBool},
       {"Auto-initialise Tile State Data Array", 114, 1, T::kBool},
       {"Tile Allocation Initial Block Size", 115, 2, T::kVc4BlockSize},
       {"Tile Allocation Block Size", 117, 2, T::kVc4BlockSize},
       {"Double-buffer in non-ms mode", 119, 1, T::kBool}}}},
    {113,
     {Opcode::kTileRenderingModeCfg,
      "Tile Rendering Mode Configuration",
      kNone,
      11,
      {{"Memory Address", 0, 32, T::kAddress},
       {"Width (pixels)", 32, 16},
       {"Height (pixels)", 48, 16},
       {"Multisample Mode (4x)", 64, 1, T::kBool},
       {"Tile Buffer 64-bit Color Depth", 65, 1, T::kBool},
       {"Non-HDR Frame Buffer Color Format", 66, 2, T::kVc4FrameFormat},
       {"Decimate Mode", 68, 2, T::kVc4Decimate},
       {"Memory Format", 70, 2, T::kVc4MemoryFormat},
       {"Enable VG Mask Buffer", 72, 1, T::kBool},
       {"Select Coverage Mode", 73, 1, T::kBool},
       {"Early-Z Update Direction GT/GE", 74, 1, T::kBool},
       {"Early-Z/Early-Cov disable", 75, 1, T::kBool},
       {"Double-buffer in non-ms mode", 76, 1, T::kBool}}}},
    {114,
     {Opcode::kClearColors,
      "Clear Colors",
      kNone,
      14,
      {{"Clear Color", 0, 64}, {"Clear ZS", 64, 24}, {"Clear VG Mask", 88, 8}, {"Clear Stencil", 96, 8}}}},
    {115,
     {Opcode::kTileCoordinates,
      "Tile Coordinates",
      kNone,
      3,
      {{"Tile Column Number", 0, 8}, {"Tile Row Number", 8, 8}}}},
    // The kernel takes it out of the list.
    {254,
     {Opcode::kGemRelocations, "Gem Relocations", kNone, 9, {{"buffer 0", 0, 32}, {"buffer 1", 32, 32}}}},
};

inline constexpr RecordInfo kRecords[] = {
    {"Shader Record",
     kNone,
     36,
     {{"Fragment Shader is single threaded", 0, 1, T::kBool},
      {"Point Size included in shaded vertex data", 1, 1, T::kBool},
      {"Enable Clipping", 2, 1, T::kBool},
      {"Fragment Shader Number of Uniforms (not used currently)", 16, 8},
      {"Fragment Shader Number of Varyings", 24, 8},
      {"Fragment Shader Code Address", 32, 32, T::kAddress},
      {"Fragment Shader Uniforms Address", 64, 32},
      {"Vertex Shader Number of Uniforms (not used currently)", 96, 16},
      {"Vertex Shader Attribute Array select bits", 112, 8},
      {"Vertex Shader Total Attributes Size", 120, 8},
      {"Vertex Shader Code Address", 128, 32, T::kAddress},
      {"Vertex Shader Uniforms Address", 160, 32},
      {"Coordinate Shader Number of Uniforms (not used currently)", 192, 16},
      {"Coordinate Shader Attribute Array select bits", 208, 8},
      {"Coordinate Shader Total Attributes Size", 216, 8},
      {"Coordinate Shader Code Address", 224, 32, T::kAddress},
      {"Coordinate Shader Uniforms Address", 256, 32}}},
    {"Attribute Record",
     kNone,
     8,
     {{"Address", 0, 32, T::kAddress},
      {"Number of Bytes minus 1", 32, 8},
      {"Stride", 40, 8},
      {"Vertex Shader VPM offset", 48, 8},
      {"Coordinate Shader VPM offset", 56, 8}}},
};

}  // namespace vc4_table

/// The field of a packet or record, looked up at compile time: a name that is not in the table does not
/// compile.
consteval Field vc4_field(std::string_view owner, std::string_view name) {
  for (const vc4_table::Row& row : vc4_table::kPackets) {
    if (owner != row.info.name) continue;
    for (const Field& f : row.info.fields)
      if (f.name != nullptr && name == f.name) return f;
  }
  for (const RecordInfo& r : vc4_table::kRecords) {
    if (owner != r.name) continue;
    for (const Field& f : r.fields)
      if (f.name != nullptr && name == f.name) return f;
  }
  throw "no such field";
}

consteval const RecordInfo& vc4_record(std::string_view name) {
  for (const RecordInfo& r : vc4_table::kRecords)
    if (name == r.name) return r;
  throw "no such record";
}

}  // namespace v3d::cle
