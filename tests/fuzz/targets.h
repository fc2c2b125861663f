/// Each fuzz target takes bytes for what a client may hand to one parser, and must return whatever they are.
/// The `fuzz` preset makes a libFuzzer program of each; every other build feeds them corpus/
/// (corpus_test.cc).
#pragma once

#include <cstdint>
#include <span>

namespace v3d::fuzz {

using Bytes = std::span<const uint8_t>;

void wire(Bytes input);           ///< messages on the control socket of the daemon
void framing(Bytes input);        ///< requests in pieces, with descriptors, on the same socket
void segments(Bytes input);       ///< a client's memory as requests carry it
void ioctls(Bytes input);         ///< sequences of ioctls on a render node
void vc4_ioctls(Bytes input);     ///< the same on nodes of the driver vc4
void control_lists(Bytes input);  ///< bin and render lists with their records
void jobs(Bytes input);           ///< whole jobs with the memory that they read, as programs submit them
void qpu(Bytes input);            ///< instruction words: decoder, disassembler, bounded execution
void csd(Bytes input);            ///< CFG0..CFG6 of a dispatch
void texture(Bytes input);        ///< texture and sampler state, lookups of the TMU
void tfu(Bytes input);            ///< registers of the TFU
void text(Bytes input);           ///< assembly, and the texts of V3DEMU_DEBUG and V3DEMU_TRACE_QPU
void vc4_programs(Bytes input);   ///< programs of VideoCore IV, through the checks of their shader BO
void vc4_code(Bytes input);       ///< the same words, interpreted and compiled: both do the same
void vc4_jobs(Bytes input);  ///< lists, records, uniforms and surfaces of VideoCore IV, through their checks
void x_requests(Bytes input);  ///< what a client of v3demu-x11 sends
void capture(Bytes input);     ///< files for `v3demu replay` and `v3demu decode`
void debugger(Bytes input);    ///< what an editor sends to `v3demu debug`, and kernels under it
void arrays(Bytes input);      ///< buffers and uniforms of `v3demu exec`, expressions of the debugger

}  // namespace v3d::fuzz
