# Compiler settings and the few functions by which the folders declare what they build.

# GCC 12 sees overruns and overlaps in libstdc++'s strings and vectors that are not there (GCC bugs 105329 and 105651), and
# with compiled headers it places them in sources of ours.
set(v3d_false_warnings -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)

add_library(v3demu_settings INTERFACE)
target_compile_options(v3demu_settings INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wall -Wextra -Wshadow -Wimplicit-fallthrough -Wnon-virtual-dtor -Werror>
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:${v3d_false_warnings}>"
  $<$<CXX_COMPILER_ID:Clang>:-w>          # builds the fuzzers; warnings are GCC's and clang-tidy's business
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>   # 64-byte vectors never cross a library boundary
  -ffp-contract=off -fno-math-errno -fvisibility=hidden)
target_include_directories(v3demu_settings INTERFACE ${CMAKE_SOURCE_DIR})
# Of product code alone, whose folders ask for it: there a value loses bits only where a cast says so.
set(v3demu_product_warnings)
if(NOT V3DEMU_SANITIZE) # whose checks hide from GCC that a value fits
  set(v3demu_product_warnings $<$<CXX_COMPILER_ID:GNU>:-Wconversion>)
endif()
if(V3DEMU_SANITIZE)
  target_compile_options(v3demu_settings INTERFACE
    -fsanitize=${V3DEMU_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(v3demu_settings INTERFACE -fsanitize=${V3DEMU_SANITIZE})
endif()

if(V3DEMU_FUZZ)
  target_compile_options(v3demu_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The GPU model and what links it are built for the machine at hand unless V3DEMU_ARCH says otherwise, or once for each
# of V3DEMU_LEVELS. Then the targets of a level end in "-v2", "-v3" or "-v4" and its tests begin with "v2.", "v3." or
# "v4."; inside its folders the variables `level` and `level_tests` are these, else empty.
include(CheckCSourceRuns)
include(CheckCXXSourceCompiles)
# -march= of a target. The 16 lanes are two vectors of hosts that have AVX2 and no more, and are copied as such.
function(v3d_arch target arch)
  target_compile_options(${target} INTERFACE -march=${arch})
  set(CMAKE_REQUIRED_FLAGS "-march=${arch} -mmove-max=256 -mstore-max=256")
  check_cxx_source_compiles("
    #if !defined(__AVX2__) || defined(__AVX512F__)
    #error
    #endif
    int main() {}" V3DEMU_MOVES_256_${arch})
  if(V3DEMU_MOVES_256_${arch})
    target_compile_options(${target} INTERFACE -mmove-max=256 -mstore-max=256)
  endif()
endfunction()
set(level)
set(level_tests)
if(NOT V3DEMU_LEVELS)
  add_library(v3demu_arch INTERFACE)
  v3d_arch(v3demu_arch ${V3DEMU_ARCH})
endif()
foreach(name IN LISTS V3DEMU_LEVELS)
  if(NOT name MATCHES "^v[234]$")
    message(FATAL_ERROR "V3DEMU_LEVELS is a list of v2, v3 and v4: '${name}'")
  endif()
  add_library(v3demu_arch-${name} INTERFACE)
  v3d_arch(v3demu_arch-${name} x86-64-${name})
  check_c_source_runs("int main(void) { return !__builtin_cpu_supports(\"x86-64-${name}\"); }" V3DEMU_HOST_RUNS-${name})
endforeach()

# v3d_precompile(TARGET KIND [LIBRARY HEADER...]): TARGET's sources find what most of them include compiled already, and these
# headers of LIBRARY: once for all targets of the KIND at this level. They include what they use all the same, for clang builds do without.
set(v3d_common_headers <algorithm> <array> <functional> <map> <memory> <mutex> <optional> <span> <string> <vector>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>)
function(v3d_precompile target kind)
  list(POP_FRONT ARGN library)
  if(NOT V3DEMU_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(headers v3d_headers_of_${kind}${level})
  if(NOT TARGET ${headers})
    file(WRITE ${CMAKE_BINARY_DIR}/headers/${headers}.cc "")
    add_library(${headers} OBJECT ${CMAKE_BINARY_DIR}/headers/${headers}.cc)
    target_link_libraries(${headers} PRIVATE v3demu_settings v3demu_arch${level} ${library})
    target_precompile_headers(${headers} PRIVATE ${v3d_common_headers} ${ARGN})
    if(CMAKE_CXX_COMPILER_LAUNCHER)
      set_target_properties(${headers} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile_header;${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
    # GCC takes compiled headers of the same kind of code alone.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${headers} PRIVATE -fPIE)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# v3d_folders(FOLDER...): adds folders of the model, or of what links it, once for each level.
function(v3d_folders)
  if(NOT V3DEMU_LEVELS)
    foreach(folder ${ARGN})
      add_subdirectory(${folder})
    endforeach()
  endif()
  foreach(name IN LISTS V3DEMU_LEVELS)
    set(level -${name})
    set(level_tests ${name}.)
    foreach(folder ${ARGN})
      add_subdirectory(${folder} levels/${name}/${folder})
    endforeach()
  endforeach()
endfunction()

# v3d_link_statically(NAMESPACE): takes the static library beside each shared one that find_package named NAMESPACE::...,
# so that programs run where another version of it is installed. Call it in the folder of find_package.
function(v3d_link_statically namespace)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX "^${namespace}::")
  foreach(target IN LISTS targets)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      get_target_property(shared ${target} IMPORTED_LOCATION_${configuration})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" static "${shared}")
      if(EXISTS "${static}")
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${static})
      endif()
    endforeach()
  endforeach()
endfunction()

# v3d_block(NAME DEPS...): static library v3d_NAME from the *.cc files of the current folder but those of `v3d_left_out`. Its compiled
# headers are those of `v3d_headers`, a kind and what it adds, if the folder or one around it sets that.
function(v3d_block name)
  list(TRANSFORM ARGN REPLACE "^v3d_.*" "\\0${level}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(v3d_left_out)
    list(REMOVE_ITEM sources ${v3d_left_out})
  endif()
  if(sources)
    add_library(v3d_${name}${level} STATIC ${sources})
    target_link_libraries(v3d_${name}${level} PUBLIC v3demu_settings v3demu_arch${level} ${ARGN})
    if(v3d_headers)
      v3d_precompile(v3d_${name}${level} ${v3d_headers})
    else()
      v3d_precompile(v3d_${name}${level} model)
    endif()
  else()
    add_library(v3d_${name}${level} INTERFACE)
    target_link_libraries(v3d_${name}${level} INTERFACE v3demu_settings v3demu_arch${level} ${ARGN})
  endif()
endfunction()

# v3d_program(NAME SOURCES...): a program that links the model. Those of levels lie in libexec/v3demu, and a launcher in
# bin has their name (tools/launcher). They are started often, and finding the symbols of libstdc++ takes half as long as all else of a start.
function(v3d_program name)
  add_executable(${name}${level} ${ARGN})
  if(NOT V3DEMU_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${name}${level} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  if(level)
    set_target_properties(${name}${level} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/v3demu)
    set_property(GLOBAL APPEND PROPERTY v3demu_programs_of_${name} ${name}${level})
  endif()
endfunction()

# v3d_test(NAME COMMAND...): a test by a program of the current level, skipped where the machine does not run it.
function(v3d_test name)
  if(level AND NOT V3DEMU_HOST_RUNS${level})
    add_test(NAME ${level_tests}${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: this processor is not x86-64${level}")
    set_tests_properties(${level_tests}${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
  else()
    add_test(NAME ${level_tests}${name} COMMAND ${ARGN})
  endif()
endfunction()

# v3d_tests(NAME DEPS...): one GoogleTest program NAME_test from the *_test.cc files of the current folder, whose tests'
# names begin with NAME. Where sanitizers make a process dear to start, the program is one test, NAME.
function(v3d_tests name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "^v3d_.*" "\\0${level}")
  add_executable(${name}_test${level} ${sources})
  target_link_libraries(${name}_test${level} PRIVATE v3demu_settings v3demu_arch${level} ${ARGN} v3demu_testing)
  v3d_precompile(${name}_test${level} tests v3demu_testing <gmock/gmock.h> <gtest/gtest.h>)
  if(level AND NOT V3DEMU_HOST_RUNS${level})
    v3d_test(${name} ${name}_test${level})
  elseif(V3DEMU_SANITIZE)
    v3d_test(${name} ${name}_test${level} --gtest_brief=1)
  else()
    gtest_discover_tests(${name}_test${level} TEST_PREFIX ${level_tests}${name}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
