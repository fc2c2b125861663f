/// Of libbcm_host (raspberrypi/userland) what programs for the QPUs of a Raspberry Pi 0 to 3 ask it: GPU_FFT,
/// vc4asm's hello_fft, VC4CL. Where peripherals and memory are, the device tree says.
///
///     cc -shared -fPIC -o libbcm_host.so samples/qpu/bcm_host.c
///     LD_LIBRARY_PATH=. v3demu run --device rpi3 -- ./hello_fft 8

#include <stdio.h>

/// A big-endian number of a property; `otherwise` where there is none.
static unsigned cell(const char* property, long number, unsigned otherwise) {
  unsigned char bytes[4];
  FILE* file = fopen(property, "rb");
  if (!file) return otherwise;
  const int found = fseek(file, 4 * number, SEEK_SET) == 0 && fread(bytes, sizeof bytes, 1, file) == 1;
  fclose(file);
  return found ? (unsigned)bytes[0] << 24 | (unsigned)bytes[1] << 16 | (unsigned)bytes[2] << 8 | bytes[3]
               : otherwise;
}

void bcm_host_init(void) {}
void bcm_host_deinit(void) {}
unsigned bcm_host_get_peripheral_address(void) { return cell("/proc/device-tree/soc/ranges", 1, 0x20000000); }
unsigned bcm_host_get_peripheral_size(void) { return cell("/proc/device-tree/soc/ranges", 2, 0x01000000); }
unsigned bcm_host_get_sdram_address(void) { return cell("/proc/device-tree/axi/vc_mem/reg", 2, 0x40000000); }
