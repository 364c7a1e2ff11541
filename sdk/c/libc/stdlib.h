/* What a rule has of the C library: memory. There is no file, clock or environment. */
#ifndef WATCHFIRE_STDLIB_H
#define WATCHFIRE_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *block);
_Noreturn void abort(void);

#endif
