/* Settings: one JSON object of numbers, flags and texts. */

#include "internal.h"
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 256
#define DIGITS_MAX 19
#define EXPONENT_MAX 9999

typedef struct {
  const uint8_t *at, *end;
} cursor;

/* A message made of pieces. */
typedef struct {
  char text[MESSAGE_BYTES];
  size_t len;
} message;

static void add(message *to, const char *piece, size_t len) {
  for (size_t at = 0; at < len && to->len + 1 < MESSAGE_BYTES; at++) to->text[to->len++] = piece[at];
  to->text[to->len] = 0;
}

void *wf_push(void **list, size_t *len, size_t size) {
  *list = realloc(*list, (*len + 1) * size);
  return (unsigned char *)*list + size * (*len)++;
}

watchfire_rule_string_t wf_copy(const char *text) {
  watchfire_rule_string_t copy;
  watchfire_rule_string_dup(&copy, text);
  return copy;
}

void wf_problem(wf_problems *problems, const char *path, const char *words) {
  watchfire_rule_types_setting_error_t *error =
    wf_push((void **)&problems->list.ptr, &problems->list.len, sizeof *error);
  error->path = wf_copy(path);
  error->message = wf_copy(words);
}

static void problem3(wf_problems *problems, wf_string key, const char *before, const char *after) {
  message words = {.len = 0}, path = {.len = 0};
  add(&path, key.ptr, key.len);
  add(&words, before, strlen(before));
  add(&words, key.ptr, key.len);
  add(&words, after, strlen(after));
  wf_problem(problems, path.text, words.text);
}

static void skip_space(cursor *json) {
  while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r')) {
    json->at++;
  }
}

static bool take(cursor *json, const char *word) {
  skip_space(json);
  size_t len = strlen(word);
  if ((size_t)(json->end - json->at) < len || memcmp(json->at, word, len) != 0) return false;
  json->at += len;
  return true;
}

static bool peek(cursor *json, uint8_t byte) {
  skip_space(json);
  return json->at < json->end && *json->at == byte;
}

static int hex(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  digit |= 0x20;
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool take_hex4(cursor *json, uint32_t *code) {
  *code = 0;
  for (int left = 4; left > 0; left--) {
    int digit = json->at < json->end ? hex(*json->at++) : -1;
    if (digit < 0) return false;
    *code = *code << 4 | (uint32_t)digit;
  }
  return true;
}

static char *put_utf8(char *to, uint32_t code) {
  if (code < 0x80) {
    *to++ = (char)code;
    return to;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const int leads[] = {0, 0xC0, 0xE0, 0xF0};
  *to++ = (char)(leads[more] | code >> (6 * more));
  while (more-- > 0) *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
  return to;
}

static bool take_unicode(cursor *json, char **to) {
  uint32_t code, low;
  if (!take_hex4(json, &code)) return false;
  if (code >= 0xD800 && code < 0xDC00) {
    if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u') return false;
    json->at += 2;
    if (!take_hex4(json, &low) || low < 0xDC00 || low > 0xDFFF) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  *to = put_utf8(*to, code);
  return true;
}

static bool take_escape(cursor *json, char **to) {
  const char *const from = "\"\\/bfnrt", *const into = "\"\\/\b\f\n\r\t";
  if (json->at == json->end) return false;
  uint8_t kind = *json->at++;
  if (kind == 'u') return take_unicode(json, to);
  for (size_t at = 0; from[at] != 0; at++) {
    if ((uint8_t)from[at] == kind) {
      *(*to)++ = into[at];
      return true;
    }
  }
  return false;
}

/* A text of its own, never longer than as it is written. */
static bool take_text(cursor *json, wf_string *text) {
  if (!take(json, "\"")) return false;
  char *start = malloc((size_t)(json->end - json->at) + 4), *to = start;
  while (json->at < json->end && *json->at != '"') {
    uint8_t byte = *json->at++;
    if (byte != '\\') {
      *to++ = (char)byte;
    } else if (!take_escape(json, &to)) {
      return false;
    }
  }
  *text = (wf_string){start, (size_t)(to - start)};
  return json->at++ < json->end;
}

static double scaled(double value, int exponent) {
  /* Tens up to the 22nd are exact. */
  for (; exponent >= 22; exponent -= 22) value *= 1e22;
  for (; exponent <= -22; exponent += 22) value /= 1e22;
  double ten = 1;
  for (int left = exponent < 0 ? -exponent : exponent; left > 0; left--) ten *= 10;
  return exponent < 0 ? value / ten : value * ten;
}

static bool is_digit(const cursor *json) {
  return json->at < json->end && *json->at >= '0' && *json->at <= '9';
}

/* Digits beyond the 19th move the decimal point only; how many of them. */
static int take_digits(cursor *json, uint64_t *digits, int *count) {
  int beyond = 0;
  for (; is_digit(json); json->at++) {
    if (*count < DIGITS_MAX) {
      *digits = *digits * 10 + (*json->at - '0');
      *count += *digits != 0;
    } else {
      beyond++;
    }
  }
  return beyond;
}

static int take_exponent(cursor *json) {
  if (!take(json, "e") && !take(json, "E")) return 0;
  bool negative = take(json, "-");
  if (!negative) take(json, "+");
  int exponent = 0;
  for (; is_digit(json); json->at++) {
    if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (*json->at - '0');
  }
  return negative ? -exponent : exponent;
}

/* Exact where it has at most 15 digits and a power of ten of at most 22, as settings that people write have. */
static bool take_number(cursor *json, double *number) {
  bool negative = take(json, "-");
  if (!is_digit(json)) return false;
  uint64_t digits = 0;
  int count = 0;
  int exponent = take_digits(json, &digits, &count);
  if (json->at < json->end && *json->at == '.') {
    json->at++;
    const uint8_t *start = json->at;
    int beyond = take_digits(json, &digits, &count);
    exponent -= (int)(json->at - start) - beyond;
  }
  exponent += take_exponent(json);
  double value = digits == 0 ? 0 : scaled((double)digits, exponent > 400 ? 400 : exponent < -400 ? -400 : exponent);
  *number = negative ? -value : value;
  return true;
}

static bool take_value(cursor *json, const wf_setting *setting) {
  bool *flag = setting->variable;
  switch (setting->kind) {
    case WF_IS_NUMBER: return take_number(json, setting->variable);
    case WF_IS_TEXT: return take_text(json, setting->variable);
    case WF_IS_FLAG: *flag = peek(json, 't'); return take(json, *flag ? "true" : "false");
  }
  return false;
}

static void set_defaults(void) {
  for (size_t at = 0; at < WATCHFIRE_RULE.n_settings; at++) {
    const wf_setting *setting = &WATCHFIRE_RULE.settings[at];
    switch (setting->kind) {
      case WF_IS_NUMBER: *(double *)setting->variable = setting->number; break;
      case WF_IS_FLAG: *(bool *)setting->variable = setting->number != 0; break;
      case WF_IS_TEXT: *(wf_string *)setting->variable = (wf_string){setting->text, strlen(setting->text)}; break;
    }
  }
}

/* One key and its value; whether the next can be read. */
static bool take_setting(cursor *json, wf_problems *problems) {
  static const char *const EXPECTED[] = {": expected a number", ": expected true or false", ": expected a text"};
  wf_string key;
  if (!take_text(json, &key) || !take(json, ":")) {
    wf_problem(problems, "", "the settings are no JSON object");
    return false;
  }
  for (size_t at = 0; at < WATCHFIRE_RULE.n_settings; at++) {
    const wf_setting *setting = &WATCHFIRE_RULE.settings[at];
    if (strlen(setting->name) != key.len || memcmp(setting->name, key.ptr, key.len) != 0) continue;
    if (take_value(json, setting)) return true;
    problem3(problems, key, "", EXPECTED[setting->kind]);
    return false;
  }
  problem3(problems, key, "unknown field `", "`");
  return false;
}

static void take_settings(cursor *json, wf_problems *problems) {
  if (json->at == json->end) return;
  bool good = take(json, "{");
  if (good && take(json, "}")) return;
  if (!good) {
    wf_problem(problems, "", "the settings are no JSON object");
    return;
  }
  do {
    if (!take_setting(json, problems)) return;
  } while (take(json, ","));
  if (!take(json, "}")) wf_problem(problems, "", "the settings are no JSON object");
}

static size_t size_of(wf_kind kind) {
  return kind == WF_IS_NUMBER ? sizeof(double) : kind == WF_IS_FLAG ? sizeof(bool) : sizeof(wf_string);
}

/* Copies the variables out, or back. */
static void copy_variables(double *store, bool back) {
  for (size_t at = 0; at < WATCHFIRE_RULE.n_settings; at++) {
    const wf_setting *setting = &WATCHFIRE_RULE.settings[at];
    void *place = &store[at];
    memcpy(back ? setting->variable : place, back ? place : setting->variable, size_of(setting->kind));
  }
}

bool wf_read_settings(const uint8_t *json, size_t len, bool keep, wf_problems *problems) {
  double *before = malloc(WATCHFIRE_RULE.n_settings * sizeof(double));
  copy_variables(before, false);
  set_defaults();
  cursor start = {json, json + len};
  take_settings(&start, problems);
  if (problems->list.len == 0 && WATCHFIRE_RULE.check != NULL) WATCHFIRE_RULE.check(problems);
  bool good = problems->list.len == 0;
  if (!good || !keep) copy_variables(before, true);
  free(before);
  return good;
}
