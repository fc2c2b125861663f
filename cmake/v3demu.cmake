# Compiler settings and the few functions by which the folders declare what they build.

add_library(v3demu_settings INTERFACE)
target_compile_options(v3demu_settings INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wall -Wextra -Wshadow -Wimplicit-fallthrough -Wnon-virtual-dtor -Werror>
  $<$<CXX_COMPILER_ID:Clang>:-w>          # builds the fuzzers; warnings are GCC's and clang-tidy's business
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>   # 64-byte vectors never cross a library boundary
  -ffp-contract=off -fno-math-errno -fvisibility=hidden)
target_include_directories(v3demu_settings INTERFACE ${CMAKE_SOURCE_DIR})
if(V3DEMU_SANITIZE)
  target_compile_options(v3demu_settings INTERFACE
    -fsanitize=${V3DEMU_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(v3demu_settings INTERFACE -fsanitize=${V3DEMU_SANITIZE})
endif()

if(V3DEMU_FUZZ)
  target_compile_options(v3demu_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The GPU model and what links it: built for the machine at hand unless V3DEMU_ARCH says otherwise.
add_library(v3demu_arch INTERFACE)
target_compile_options(v3demu_arch INTERFACE -march=${V3DEMU_ARCH})

# v3d_block(NAME DEPS...): static library v3d_NAME from the *.cc files of the current folder.
function(v3d_block name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(v3d_${name} STATIC ${sources})
    target_link_libraries(v3d_${name} PUBLIC v3demu_settings v3demu_arch ${ARGN})
  else()
    add_library(v3d_${name} INTERFACE)
    target_link_libraries(v3d_${name} INTERFACE v3demu_settings v3demu_arch ${ARGN})
  endif()
endfunction()

# v3d_tests(NAME DEPS...): one GoogleTest program NAME_test from the *_test.cc files of the current folder.
function(v3d_tests name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE v3demu_settings v3demu_arch ${ARGN} GTest::gtest_main GTest::gmock)
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60)
endfunction()
