# What cmake --install puts into a prefix. The prefix may be moved afterwards: everything is found by paths that are
# relative to the programs, the library and the files for pkg-config and CMake.
include(CMakePackageConfigHelpers)

# Where the shim looks for the programs and the command for the shim (shim/link/launch.cc, tools/cli/files/files.cc, tools/launcher).
set(libexec libexec/v3demu)
set(private lib/v3demu)
set(share ${CMAKE_INSTALL_DATADIR})

install(TARGETS v3demud v3demu RUNTIME DESTINATION bin)
get_property(inspectors GLOBAL PROPERTY v3demu_inspectors)
install(TARGETS v3demu_box v3demu_x11 ${inspectors} RUNTIME DESTINATION ${libexec})
foreach(program v3demud v3demu)
  get_property(programs GLOBAL PROPERTY v3demu_programs_of_${program})
  if(programs)
    install(TARGETS ${programs} RUNTIME DESTINATION ${libexec})
  endif()
endforeach()
# What v3demu ci, profile, shader and shader-db run, and tools/conformance, of whose parts the first is made.
install(PROGRAMS tools/mesa_ci tools/profile_gate tools/shader tools/shader_db tools/conformance DESTINATION ${libexec})
install(DIRECTORY tools/scripts/conformance_parts tools/scripts/mesa_ci_parts tools/scripts/shader_parts DESTINATION ${libexec}/scripts PATTERN __pycache__ EXCLUDE)
install(FILES tools/scripts/new_file.py DESTINATION ${libexec}/scripts)
install(FILES tools/scripts/gallery_parts/__init__.py tools/scripts/gallery_parts/windows.py DESTINATION ${libexec}/scripts/gallery_parts)
# Where tools/cli/files/files.cc looks for the page of v3demu inspect; there is none without npm.
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/v3demu/inspect DESTINATION ${share}/v3demu OPTIONAL)
install(TARGETS v3demu_shim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# What needs NumPy is not imported before it is asked for.
install(DIRECTORY python/v3demu DESTINATION lib/python3/dist-packages PATTERN __pycache__ EXCLUDE)
# For editors, and what packs it for one of them.
install(PROGRAMS tools/editors/make_vsix DESTINATION ${share}/v3demu/editors)
install(DIRECTORY tools/editors/vscode DESTINATION ${share}/v3demu/editors USE_SOURCE_PERMISSIONS)
# For boards: the library of this machine, and the two files of which gcc makes it on another.
install(TARGETS v3demu_recorder LIBRARY DESTINATION ${private})
install(FILES recorder/v3drec.c recorder/v3drec.h DESTINATION ${share}/v3demu/recorder)
# The same for the program that asks boards.
install(DIRECTORY bench/measure/ DESTINATION ${share}/v3demu/probe FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN questions EXCLUDE)
foreach(foreign arm64:aarch64-linux-gnu armhf:arm-linux-gnueabihf)
  string(REPLACE ":" ";" foreign ${foreign})
  list(GET foreign 0 name)
  list(GET foreign 1 triplet)
  if(TARGET v3demu_shim_${name})
    install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/${triplet} DESTINATION ${private} OPTIONAL)
  endif()
endforeach()

# To preload or to start it from other projects: pkg-config --variable=preload v3demu, or find_package(v3demu) and the
# targets v3demu::preload and v3demu::v3demu.
file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up "${up}")
configure_file(cmake/v3demu.pc.in ${CMAKE_BINARY_DIR}/v3demu.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/v3demu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/v3demuConfig.cmake.in ${CMAKE_BINARY_DIR}/v3demuConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/v3demu PATH_VARS CMAKE_INSTALL_LIBDIR private)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/v3demuConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/v3demuConfig.cmake ${CMAKE_BINARY_DIR}/v3demuConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/v3demu)

foreach(section 1 7 8)
  file(GLOB pages CONFIGURE_DEPENDS packaging/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES packaging/completion/v3demu DESTINATION ${share}/bash-completion/completions OPTIONAL)
file(GLOB pages CONFIGURE_DEPENDS docs/*.md)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
