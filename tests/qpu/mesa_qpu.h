/* Mesa's QPU coder is called through this plain function. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Disassembles a word, or only decodes it if text is NULL. Returns 0 if Mesa does not decode it. */
int mesa_qpu_disassemble(int version, uint64_t word, char* text, size_t size);

#ifdef __cplusplus
}
#endif
