#include "mesa_vc4.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mesa prints to stderr and aborts, and validates in builds for debugging alone. Here its sources, where they
 * lie, print to memory, and what aborts comes back. */
static FILE* text_stream;
static char text_buffer[512];
static jmp_buf failed;

#undef stderr
#define stderr text_stream
#define abort() longjmp(failed, 1)
#undef MESA_DEBUG
#define MESA_DEBUG 1

#include "vc4_qpu.c"
#include "vc4_qpu_disasm.c"
#include "vc4_qpu_validate.c"

/* Of libmesa_util; who allocates by it is not called. */
void* reralloc_array_size(const void* context, void* pointer, size_t size, unsigned count) {
  (void)context;
  (void)pointer;
  (void)size;
  (void)count;
  return NULL;
}

static void begin_text(void) {
  if (!text_stream) text_stream = fmemopen(text_buffer, sizeof(text_buffer), "w");
  rewind(text_stream);
}

const char* mesa_vc4_disassemble(uint64_t word) {
  begin_text();
  vc4_qpu_disasm(&word, 1);
  fputc(0, text_stream);
  fflush(text_stream);
  return text_buffer;
}

const char* mesa_vc4_validate(const uint64_t* words, uint32_t count, uint64_t* wrong) {
  static const char prefix[] = "vc4_qpu_validate: ";
  uint64_t copy[260];
  if (count + 2 > sizeof(copy) / sizeof(copy[0])) return "too long for this test";
  memcpy(copy, words, count * sizeof(uint64_t));
  copy[count] = copy[count + 1] = 0x100009e7009e7000ull; /* NOP */
  *wrong = 0;
  begin_text();
  if (!setjmp(failed)) {
    vc4_qpu_validate(copy, count);
    return NULL;
  }
  fputc(0, text_stream);
  fflush(text_stream);
  return text_buffer + sizeof(prefix) - 1;
}
