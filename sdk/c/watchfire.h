/* Write Watchfire rules in C: settings in variables, declared inputs, and one function over rows.

   There is no C library but <string.h> and malloc, realloc and free; no file, clock, network or randomness. */
#ifndef WATCHFIRE_H
#define WATCHFIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How bad a condition is. */
typedef enum { WF_NONE, WF_INFO, WF_WARNING, WF_CRITICAL, WF_EMERGENCY } wf_level;

/* What likely causes it. */
typedef enum {
  WF_UNKNOWN, WF_HARDWARE, WF_THERMAL, WF_POWER, WF_HANG, WF_IDLE, WF_SUPPLY, WF_COMMUNICATION, WF_SOFTWARE,
  WF_CAPACITY, WF_TELEMETRY,
} wf_cause;

/* Whose value a column holds, and what a row stands for. */
typedef enum { WF_HOST, WF_GPU, WF_DEVICE, WF_JOB, WF_RANK } wf_scope;

/* How the samples of a window become one number. The last two take a share from 0 to 1. */
typedef enum {
  WF_LAST, WF_MIN, WF_MAX, WF_MEAN, WF_SUM, WF_COUNT, WF_STDDEV, WF_INCREASE, WF_RATE, WF_SLOPE, WF_QUANTILE,
  WF_HISTOGRAM_QUANTILE,
} wf_aggregate;

/* What is asked of the events of a window. */
typedef enum { WF_EVENT_COUNT, WF_EVENT_AGE, WF_EVENT_LAST_CODE, WF_EVENT_DISTINCT_JOBS } wf_event_stat;

/* A text that need not end with a 0. */
typedef struct { const char *ptr; size_t len; } wf_string;

/* What is being gathered for the host; only the functions below look into it. */
typedef struct wf_shape wf_shape;
typedef struct wf_report wf_report;
typedef struct wf_problems wf_problems;
typedef struct wf_words wf_words;
typedef struct wf_targets wf_targets;

/* ---- what it reads, writes and keeps ---- */

/* An input of a metric, required, of the scope that its name tells (`gpu_...`, `host_...`); its number is how many
   were added before. All texts must stay where they are: literals do. */
void wf_last(wf_shape *shape, const char *metric);
/* An aggregate over the last `seconds`; `share` is for quantiles and 0 otherwise. */
void wf_window(wf_shape *shape, const char *metric, wf_aggregate aggregate, double share, uint64_t seconds);
/* Events of a kind on a GPU; no codes = all of them. */
void wf_events(
  wf_shape *shape, const char *kind, const uint32_t *codes, size_t n_codes, wf_event_stat stat, uint64_t seconds
);
/* The input added last is of another scope. */
void wf_of(wf_shape *shape, wf_scope scope);
/* A row can be judged without the input added last. */
void wf_optional(wf_shape *shape);
/* A derived metric; its number is how many were added before. */
void wf_output(wf_shape *shape, const char *metric);
/* So many numbers are kept for each row; another version starts clean. */
void wf_state(wf_shape *shape, uint32_t slots, uint32_t version);
/* The rows' labels are wanted. */
void wf_labels(wf_shape *shape);
/* Rows with the same value of a label form a group. */
void wf_group_by(wf_shape *shape, const char *label);

/* ---- settings ---- */

typedef enum { WF_IS_NUMBER, WF_IS_FLAG, WF_IS_TEXT } wf_kind;

/* One setting, kept in a variable of the rule. */
typedef struct {
  const char *name;
  wf_kind kind;
  void *variable;
  double number;
  const char *text;
} wf_setting;

/* A number in a double, a true/false in a bool, a text in a wf_string; each with what holds where none is given. */
#define WF_NUMBER(name, variable, otherwise) {name, WF_IS_NUMBER, &(variable), otherwise, 0}
#define WF_FLAG(name, variable, otherwise) {name, WF_IS_FLAG, &(variable), otherwise, 0}
#define WF_TEXT(name, variable, otherwise) {name, WF_IS_TEXT, &(variable), 0, otherwise}

/* Says what is wrong with a setting. */
void wf_problem(wf_problems *problems, const char *path, const char *message);

/* ---- rows ---- */

/* All rows at one tick. `values` and `quality` are inputs x rows, `state` is slots x rows, column after column. */
typedef struct {
  size_t len;
  size_t inputs;
  size_t slots;
  int64_t now_ms;
  uint64_t interval_ms;
  const double *values;
  const uint8_t *quality;
  const double *state;
  const uint32_t *groups;
  size_t n_groups;
} wf_rows;

/* Whether a value is there and can be trusted; it is put into `value`. */
static inline bool wf_get(const wf_rows *rows, size_t input, size_t row, double *value) {
  if (input >= rows->inputs || row >= rows->len || rows->quality[input * rows->len + row] != 0) return false;
  *value = rows->values[input * rows->len + row];
  return true;
}

/* 0 ok, 1 missing, 2 stale, 3 invalid. */
static inline uint8_t wf_quality(const wf_rows *rows, size_t input, size_t row) {
  return input < rows->inputs && row < rows->len ? rows->quality[input * rows->len + row] : 1;
}

/* What the last good tick left; 0 at first. */
static inline double wf_kept(const wf_rows *rows, size_t slot, size_t row) {
  return slot < rows->slots && row < rows->len ? rows->state[slot * rows->len + row] : 0;
}

/* The number of the row's group; 0 where the rule asked for none. */
static inline uint32_t wf_group(const wf_rows *rows, size_t row) {
  return row < rows->n_groups ? rows->groups[row] : 0;
}

/* ---- what it answers ---- */

/* No note. */
#define WF_NO_NOTE (-1)

/* Says of a row that `raise` is met now and that `hold` keeps an alert alive (lifted to `raise` where it is below).
   `value` is the number to show; `note` is one of wf_note, or WF_NO_NOTE. */
void wf_hit(wf_report *report, size_t row, wf_level raise, wf_level hold, double value, wf_cause cause, int32_t note);
/* Adds a text that hits can point to; its number. */
int32_t wf_note(wf_report *report, const char *text);
/* Keeps a number for a row until the next tick. What is not set stays as it was. */
void wf_set_state(wf_report *report, size_t slot, size_t row, double value);
/* Gives a derived metric its value for a row. */
void wf_derive(wf_report *report, size_t output, size_t row, double value);

/* ---- labels, evidence, log ---- */

/* How many rows there are. */
size_t wf_targets_len(const wf_targets *targets);
/* A label of a row; its `ptr` is NULL where it has none. It stays until the rows change. */
wf_string wf_label(const wf_targets *targets, size_t row, const char *name);

/* Adds to the evidence. */
void wf_say(wf_words *words, const char *text);
/* Adds a number with so many decimals, at most 9. */
void wf_say_number(wf_words *words, double value, int decimals);

/* A line for the host's log. */
void wf_log(const char *line);

/* ---- the rule ---- */

/* All that a rule is. Functions that are not needed are left out. Those that answer a text answer NULL where all is
   well, or a sentence for people: the rule is then tried again later, and its alerts stay as they are. */
typedef struct {
  const char *name;
  const char *version;
  wf_scope scope;
  /* JSON Schema of the settings. */
  const char *schema;
  const wf_setting *settings;
  size_t n_settings;
  /* Checks the settings, which are in their variables. */
  void (*check)(wf_problems *problems);
  /* Says what it reads, writes and keeps. */
  void (*shape)(wf_shape *shape);
  /* Called when the rows change, where the shape asks for labels or groups. */
  const char *(*on_targets)(const wf_targets *targets);
  /* Judges all rows. */
  const char *(*evaluate)(const wf_rows *rows, wf_report *report);
  /* The evidence for a row of the rows last judged; false for none. */
  bool (*explain)(const wf_rows *rows, size_t row, wf_words *words);
} wf_rule;

/* The rule itself, which its author writes. */
extern const wf_rule WATCHFIRE_RULE;

#endif
