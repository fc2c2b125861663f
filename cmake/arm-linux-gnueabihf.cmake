# Toolchain: Debian's cross compiler for armhf, the 32-bit systems of the Raspberry Pi. What it builds here needs the C library
# alone, which is the compiler's own, older than that of any root of packaging/debian-root.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)
set(CMAKE_LIBRARY_ARCHITECTURE arm-linux-gnueabihf)
