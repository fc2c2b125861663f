/* Mesa's disassembler and validator of VideoCore IV are called through these functions, by one thread at a
 * time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a word. */
const char* mesa_vc4_disassemble(uint64_t word);

/* What Mesa finds wrong with a program, and the text of the word; NULL if nothing. */
const char* mesa_vc4_validate(const uint64_t* words, uint32_t count);

#ifdef __cplusplus
}
#endif
