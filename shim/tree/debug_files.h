/// The files of /sys/kernel/debug/dri, which are root's, the daemon writes for whoever opens them.
#pragma once

#include "shim/process/text.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_sink.h"

namespace v3d::shim {

inline constexpr char kDebugFolder[] = "/sys/kernel/debug/dri";

/// Whether this process sees them, as far as rights and settings go.
bool sees_debug_files();

/// Tells the sink the files of the tree's devices, which are empty, and the links to their folders.
void emit_debug_files(const Tree& tree, TreeSink* sink);

/// The daemon's command for the text of such a file, by its path, virtual or in a tree. False: it is none.
bool find_debug_file(const char* path, Text<64>* command);

}  // namespace v3d::shim
