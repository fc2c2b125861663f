#include "mesa_qpu.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "broadcom/common/v3d_device_info.h"
#include "broadcom/qpu/qpu_disasm.h"
#include "broadcom/qpu/qpu_instr.h"

/* The disassembler builds its text, blank by blank, with these three functions of libmesa_util. Here they
 * work on one buffer, which makes a million words affordable. */
static char text_buffer[512];

void* rzalloc_size(const void* context, size_t size) {
  (void)context;
  (void)size;
  text_buffer[0] = 0;
  return text_buffer;
}

void ralloc_free(void* pointer) { (void)pointer; }

bool ralloc_vasprintf_rewrite_tail(char** string, size_t* start, const char* format, va_list arguments) {
  const size_t room = sizeof(text_buffer) - *start;
  if (room < 2) return false;
  if (!strchr(format, '%')) {
    const size_t length = strlen(format);
    if (length >= room) return false;
    memcpy(*string + *start, format, length + 1);
    *start += length;
    return true;
  }
  const int length = vsnprintf(*string + *start, room, format, arguments);
  if (length < 0 || (size_t)length >= room) return false;
  *start += (size_t)length;
  return true;
}

int mesa_qpu_disassemble(int version, uint64_t word, char* text, size_t size) {
  const struct v3d_device_info device = {.ver = (uint8_t)version, .rev = 7};
  struct v3d_qpu_instr instruction = {0};
  if (!v3d_qpu_instr_unpack(&device, word, &instruction)) return 0;
  if (text) snprintf(text, size, "%s", v3d_qpu_decode(&device, &instruction));
  return 1;
}
