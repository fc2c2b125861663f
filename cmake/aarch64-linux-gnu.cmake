# Toolchain: Debian's cross compiler for arm64. Libraries and headers of programs come from V3DEMU_ARM64_ROOT, the folder
# that packaging/debian-root makes; the C library is the compiler's own, not newer than that of any root. Tests run by qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES V3DEMU_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${V3DEMU_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Headers of one architecture alone, as OpenSSL's: behind those of the compiler.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-idirafter ${V3DEMU_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
endforeach()
# Where libraries of the root find those that they need themselves.
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -Wl,-rpath-link,${V3DEMU_ARM64_ROOT}/usr/lib/aarch64-linux-gnu)
endforeach()
find_program(V3DEMU_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(V3DEMU_QEMU_AARCH64 AND V3DEMU_ARM64_ROOT)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${V3DEMU_QEMU_AARCH64} -L ${V3DEMU_ARM64_ROOT})
endif()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${V3DEMU_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${V3DEMU_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${V3DEMU_ARM64_ROOT}/usr/share/pkgconfig)
