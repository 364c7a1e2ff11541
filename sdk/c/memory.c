/* Memory: blocks of powers of two, given back to a list for each size. A rule asks for the same sizes at every tick,
   so that nothing is wasted for long and nothing has to be joined again. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The size class of a block, before it; 8 bytes, so that a double behind it is aligned. */
typedef struct block {
  size_t class;
  struct block *next;
} block;

#define HEADER 8
#define SMALLEST 16
#define CLASSES 28
#define PAGE 65536

extern unsigned char __heap_base;
static block *unused[CLASSES];
static uintptr_t top;

static size_t class_of(size_t size) {
  size_t class = 0;
  while (class < CLASSES && ((size_t)SMALLEST << class) - HEADER < size) class++;
  return class;
}

/* New memory from the host, which bounds it; where there is no more the rule ends. */
static block *fresh(size_t bytes) {
  if (top == 0) top = ((uintptr_t)&__heap_base + 15) & ~(uintptr_t)15;
  uintptr_t end = top + bytes;
  uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
  if (end < top) abort();
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (size_t)-1) abort();
  block *made = (block *)top;
  top = end;
  return made;
}

void *malloc(size_t size) {
  size_t class = class_of(size);
  if (class == CLASSES) abort();
  block *got = unused[class];
  if (got != NULL) {
    unused[class] = got->next;
  } else {
    got = fresh((size_t)SMALLEST << class);
    got->class = class;
  }
  return (unsigned char *)got + HEADER;
}

void *calloc(size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size) abort();
  void *block = malloc(count * size);
  return memset(block, 0, count * size);
}

void free(void *address) {
  if (address == NULL) return;
  block *given = (block *)((unsigned char *)address - HEADER);
  given->next = unused[given->class];
  unused[given->class] = given;
}

void *realloc(void *old, size_t size) {
  if (old == NULL) return malloc(size);
  size_t room = ((size_t)SMALLEST << ((block *)((unsigned char *)old - HEADER))->class) - HEADER;
  if (size <= room) return old;
  void *grown = malloc(size);
  memcpy(grown, old, room);
  free(old);
  return grown;
}

_Noreturn void abort(void) {
  __builtin_trap();
}

/* Each of the three is one instruction of WebAssembly (-mbulk-memory). */
void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  return __builtin_memcpy(to, from, size);
}

void *memmove(void *to, const void *from, size_t size) {
  return __builtin_memmove(to, from, size);
}

void *memset(void *to, int byte, size_t size) {
  return __builtin_memset(to, byte, size);
}

int memcmp(const void *left, const void *right, size_t size) {
  const unsigned char *a = left, *b = right;
  for (; size > 0; size--, a++, b++) {
    if (*a != *b) return *a - *b;
  }
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length++;
  return length;
}

int strcmp(const char *left, const char *right) {
  for (; *left != 0 && *left == *right; left++, right++) {
  }
  return (unsigned char)*left - (unsigned char)*right;
}
