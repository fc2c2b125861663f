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

const char* mesa_vc4_validate(const uint64_t* words, uint32_t count) {
  static const char prefix[] = "vc4_qpu_validate: ";
  static const uint64_t nop = 0x100009e7009e7000ull;
  uint64_t copy[260];
  if (count + 3 > sizeof(copy) / sizeof(copy[0])) return "too long for this test";
  /* It looks at the word before the first and at two after the last. */
  copy[0] = copy[count + 1] = copy[count + 2] = nop;
  memcpy(copy + 1, words, count * sizeof(uint64_t));
  begin_text();
  if (!setjmp(failed)) {
    vc4_qpu_validate(copy + 1, count);
    return NULL;
  }
  fputc(0, text_stream);
  fflush(text_stream);
  return text_buffer + sizeof(prefix) - 1;
}
