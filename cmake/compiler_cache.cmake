# Objects that were compiled before, in this clone or another, come from ccache where that is installed. Its store lies beside
# Mesa's build (packaging/common.sh names the same folder), so that it outlives clones.
option(V3DEMU_CCACHE "take objects that were compiled before from ccache, where it is installed" ON)
find_program(V3DEMU_CCACHE_PROGRAM ccache)
mark_as_advanced(V3DEMU_CCACHE_PROGRAM)
if(NOT V3DEMU_CCACHE OR NOT V3DEMU_CCACHE_PROGRAM OR CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_C_COMPILER_LAUNCHER)
  return()
endif()

if(DEFINED ENV{V3DEMU_CACHE})
  set(v3d_cache_folder "$ENV{V3DEMU_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(v3d_cache_folder "$ENV{XDG_CACHE_HOME}/v3demu")
else()
  set(v3d_cache_folder "$ENV{HOME}/.cache/v3demu")
endif()

# ccache does not know what -march=native means, which may be another thing where a store was brought from elsewhere.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -E -dM -x c++ /dev/null OUTPUT_VARIABLE v3d_native ERROR_QUIET)
string(MD5 v3d_native "${v3d_native}")

# Compiled headers need the two kinds of sloppiness; sources use neither __DATE__ nor __TIME__.
set(v3d_launcher env "CCACHE_DIR=${v3d_cache_folder}/ccache" "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_MAXSIZE=5G
  "CCACHE_NAMESPACE=${v3d_native}" ${V3DEMU_CCACHE_PROGRAM})
set(CMAKE_C_COMPILER_LAUNCHER ${v3d_launcher})
set(CMAKE_CXX_COMPILER_LAUNCHER ${v3d_launcher})
