/* Between the contract's functions and the rule. */

#include "watchfire.h"
#include "internal.h"
#include <stdlib.h>
#include <string.h>

typedef watchfire_rule_types_input_t input;
typedef exports_watchfire_rule_rule_batch_t batch;
typedef exports_watchfire_rule_rule_outcome_t outcome;
typedef exports_watchfire_rule_rule_list_target_t target_list;

static const char CONTRACT[] = "watchfire:rule@0.1.0";

struct wf_shape { exports_watchfire_rule_rule_descriptor_t said; };
struct wf_report { outcome out; size_t outputs; const batch *from; };
struct wf_words { char *ptr; size_t len; };
struct wf_targets { target_list list; };

static batch last;
static struct wf_targets targets;
static size_t n_outputs;

/* ---- what it reads, writes and keeps ---- */

static bool starts(const char *text, const char *with) {
  for (; *with != 0; text++, with++) {
    if (*text != *with) return false;
  }
  return true;
}

/* The scope that a metric's name tells; a GPU's where it tells none. */
static wf_scope scope_of(const char *metric) {
  if (starts(metric, "host_")) return WF_HOST;
  if (starts(metric, "filesystem_") || starts(metric, "disk_") || starts(metric, "nic_")) return WF_DEVICE;
  if (starts(metric, "job_")) return WF_JOB;
  return starts(metric, "rank_") ? WF_RANK : WF_GPU;
}

static input *add_input(wf_shape *shape, wf_scope scope, uint64_t seconds) {
  input *added = wf_push((void **)&shape->said.inputs.ptr, &shape->said.inputs.len, sizeof *added);
  memset(added, 0, sizeof *added);
  added->scope = (uint8_t)scope;
  added->window_ms = seconds * 1000;
  added->required = true;
  return added;
}

void wf_last(wf_shape *shape, const char *metric) {
  wf_window(shape, metric, WF_LAST, 0, 0);
}

void wf_window(wf_shape *shape, const char *metric, wf_aggregate aggregate, double share, uint64_t seconds) {
  input *added = add_input(shape, scope_of(metric), seconds);
  added->reads.tag = WATCHFIRE_RULE_TYPES_READS_METRIC;
  added->reads.val.metric.name = wf_copy(metric);
  added->reads.val.metric.aggregate.tag = (uint8_t)aggregate;
  added->reads.val.metric.aggregate.val.quantile = share;
}

void wf_events(
  wf_shape *shape, const char *kind, const uint32_t *codes, size_t n_codes, wf_event_stat stat, uint64_t seconds
) {
  input *added = add_input(shape, WF_GPU, seconds);
  added->reads.tag = WATCHFIRE_RULE_TYPES_READS_EVENT;
  added->reads.val.event.kind = wf_copy(kind);
  added->reads.val.event.stat = (uint8_t)stat;
  added->reads.val.event.codes.len = n_codes;
  added->reads.val.event.codes.ptr = n_codes == 0 ? NULL : memcpy(malloc(n_codes * 4), codes, n_codes * 4);
}

static input *last_input(wf_shape *shape) {
  if (shape->said.inputs.len == 0) abort();
  return &shape->said.inputs.ptr[shape->said.inputs.len - 1];
}

void wf_of(wf_shape *shape, wf_scope scope) {
  last_input(shape)->scope = (uint8_t)scope;
}

void wf_optional(wf_shape *shape) {
  last_input(shape)->required = false;
}

void wf_output(wf_shape *shape, const char *metric) {
  watchfire_rule_string_t *added =
    wf_push((void **)&shape->said.outputs.ptr, &shape->said.outputs.len, sizeof *added);
  *added = wf_copy(metric);
}

void wf_state(wf_shape *shape, uint32_t slots, uint32_t version) {
  shape->said.state_slots = slots;
  shape->said.state_version = version;
}

void wf_labels(wf_shape *shape) {
  shape->said.needs_labels = true;
}

void wf_group_by(wf_shape *shape, const char *label) {
  shape->said.group_by.is_some = true;
  shape->said.group_by.val = wf_copy(label);
}

void exports_watchfire_rule_rule_describe(exports_watchfire_rule_rule_descriptor_t *ret) {
  struct wf_shape shape;
  memset(&shape, 0, sizeof shape);
  WATCHFIRE_RULE.shape(&shape);
  *ret = shape.said;
  ret->contract = wf_copy(CONTRACT);
  ret->name = wf_copy(WATCHFIRE_RULE.name);
  ret->version = wf_copy(WATCHFIRE_RULE.version);
  ret->settings_schema = wf_copy(WATCHFIRE_RULE.schema == NULL ? "" : WATCHFIRE_RULE.schema);
  ret->scope = (uint8_t)WATCHFIRE_RULE.scope;
}

/* ---- settings ---- */

bool exports_watchfire_rule_rule_validate_settings(watchfire_rule_string_t *json, error_list *err) {
  wf_problems problems = {{NULL, 0}};
  bool good = wf_read_settings(json->ptr, json->len, false, &problems);
  watchfire_rule_string_free(json);
  *err = problems.list;
  return good;
}

static void join(watchfire_rule_string_t *into, const error_list *errors) {
  struct wf_words words = {NULL, 0};
  for (size_t at = 0; at < errors->len; at++) {
    const watchfire_rule_types_setting_error_t *error = &errors->ptr[at];
    if (at > 0) wf_say(&words, "; ");
    words.ptr = realloc(words.ptr, words.len + error->path.len + error->message.len + 3);
    memcpy(words.ptr + words.len, error->path.ptr, error->path.len);
    words.len += error->path.len;
    wf_say(&words, ": ");
    memcpy(words.ptr + words.len, error->message.ptr, error->message.len);
    words.len += error->message.len;
  }
  *into = (watchfire_rule_string_t){(uint8_t *)words.ptr, words.len};
}

bool exports_watchfire_rule_rule_configure(watchfire_rule_string_t *json, watchfire_rule_string_t *err) {
  wf_problems problems = {{NULL, 0}};
  bool good = wf_read_settings(json->ptr, json->len, true, &problems);
  watchfire_rule_string_free(json);
  if (good) {
    exports_watchfire_rule_rule_descriptor_t said;
    exports_watchfire_rule_rule_describe(&said);
    n_outputs = said.outputs.len;
    exports_watchfire_rule_rule_descriptor_free(&said);
    return true;
  }
  join(err, &problems.list);
  exports_watchfire_rule_rule_list_setting_error_free(&problems.list);
  return false;
}

/* ---- labels ---- */

bool exports_watchfire_rule_rule_on_targets(target_list *list, watchfire_rule_string_t *err) {
  exports_watchfire_rule_rule_list_target_free(&targets.list);
  targets.list = *list;
  const char *why = WATCHFIRE_RULE.on_targets == NULL ? NULL : WATCHFIRE_RULE.on_targets(&targets);
  if (why != NULL) *err = wf_copy(why);
  return why == NULL;
}

size_t wf_targets_len(const wf_targets *all) {
  return all->list.len;
}

wf_string wf_label(const wf_targets *all, size_t row, const char *name) {
  if (row >= all->list.len) return (wf_string){NULL, 0};
  const watchfire_rule_list_tuple2_string_string_t *labels = &all->list.ptr[row].labels;
  size_t len = strlen(name);
  for (size_t at = 0; at < labels->len; at++) {
    const watchfire_rule_tuple2_string_string_t *label = &labels->ptr[at];
    if (label->f0.len == len && memcmp(label->f0.ptr, name, len) == 0) {
      return (wf_string){(const char *)label->f1.ptr, label->f1.len};
    }
  }
  return (wf_string){NULL, 0};
}

/* ---- rows ---- */

static wf_rows rows_of(const batch *from) {
  size_t len = from->rows;
  return (wf_rows){
    .len = len,
    .inputs = len == 0 ? 0 : from->quality.len / len,
    .slots = len == 0 ? 0 : from->state.len / len,
    .now_ms = from->now_ms,
    .interval_ms = from->interval_ms,
    .values = from->columns.ptr,
    .quality = from->quality.ptr,
    .state = from->state.ptr,
    .groups = from->groups.ptr,
    .n_groups = from->groups.len,
  };
}

/* ---- what it answers ---- */

void wf_hit(wf_report *report, size_t row, wf_level raise, wf_level hold, double value, wf_cause cause, int32_t note) {
  watchfire_rule_types_hit_t *hit =
    wf_push((void **)&report->out.hits.ptr, &report->out.hits.len, sizeof *hit);
  memset(hit, 0, sizeof *hit);
  hit->row = (uint32_t)row;
  hit->raise = (uint8_t)raise;
  hit->hold = (uint8_t)(hold < raise ? raise : hold);
  hit->value = value;
  hit->cause = (uint8_t)cause;
  hit->note.is_some = note >= 0;
  hit->note.val = note >= 0 ? (uint32_t)note : 0;
}

int32_t wf_note(wf_report *report, const char *text) {
  watchfire_rule_string_t *note =
    wf_push((void **)&report->out.notes.ptr, &report->out.notes.len, sizeof *note);
  *note = wf_copy(text);
  return (int32_t)report->out.notes.len - 1;
}

void wf_set_state(wf_report *report, size_t slot, size_t row, double value) {
  const batch *from = report->from;
  watchfire_rule_list_f64_t *state = &report->out.state.val;
  if (!report->out.state.is_some) {
    report->out.state.is_some = true;
    state->len = from->state.len;
    state->ptr = memcpy(malloc(state->len * 8), from->state.ptr, state->len * 8);
  }
  if (row < from->rows && slot * from->rows + row < state->len) state->ptr[slot * from->rows + row] = value;
}

void wf_derive(wf_report *report, size_t output, size_t row, double value) {
  size_t rows = report->from->rows;
  watchfire_rule_list_f64_t *derived = &report->out.derived;
  if (row >= rows || output >= report->outputs) return;
  if (derived->len == 0) {
    derived->len = report->outputs * rows;
    derived->ptr = malloc(derived->len * 8);
    for (size_t at = 0; at < derived->len; at++) derived->ptr[at] = __builtin_nan("");
  }
  derived->ptr[output * rows + row] = value;
}

bool exports_watchfire_rule_rule_evaluate(batch *given, outcome *ret, watchfire_rule_string_t *err) {
  exports_watchfire_rule_rule_batch_free(&last);
  last = *given;
  struct wf_report report = {.outputs = n_outputs, .from = &last};
  wf_rows rows = rows_of(&last);
  const char *why = WATCHFIRE_RULE.evaluate(&rows, &report);
  *ret = report.out;
  if (why == NULL) return true;
  exports_watchfire_rule_rule_outcome_free(ret);
  *err = wf_copy(why);
  return false;
}

/* ---- evidence, log ---- */

void wf_say(wf_words *words, const char *text) {
  size_t len = strlen(text);
  words->ptr = realloc(words->ptr, words->len + len + 1);
  memcpy(words->ptr + words->len, text, len);
  words->len += len;
}

static void say_digits(wf_words *words, uint64_t number, int least) {
  char text[24];
  size_t at = sizeof text - 1;
  text[at] = 0;
  for (; number > 0 || least > 0; number /= 10, least--) text[--at] = (char)('0' + number % 10);
  wf_say(words, &text[at]);
}

void wf_say_number(wf_words *words, double value, int decimals) {
  uint64_t ten = 1;
  decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
  for (int left = decimals; left > 0; left--) ten *= 10;
  if (!(value < 9e9 && value > -9e9)) {
    wf_say(words, value != value ? "NaN" : value > 0 ? "more than 9e9" : "less than -9e9");
    return;
  }
  uint64_t scaled = (uint64_t)((value < 0 ? -value : value) * (double)ten + 0.5);
  if (value < 0 && scaled > 0) wf_say(words, "-");
  say_digits(words, scaled / ten, 1);
  if (decimals == 0) return;
  wf_say(words, ".");
  say_digits(words, scaled % ten, decimals);
}

bool exports_watchfire_rule_rule_explain(
  uint32_t row, watchfire_rule_option_string_t *ret, watchfire_rule_string_t *err
) {
  (void)err;
  struct wf_words words = {NULL, 0};
  wf_rows rows = rows_of(&last);
  ret->is_some = row < rows.len && WATCHFIRE_RULE.explain != NULL && WATCHFIRE_RULE.explain(&rows, row, &words);
  ret->val = (watchfire_rule_string_t){(uint8_t *)words.ptr, words.len};
  return true;
}

void wf_log(const char *line) {
  watchfire_rule_string_t text = {(uint8_t *)line, strlen(line)};
  watchfire_rule_host_log(&text);
}

/* `watchfire build` puts the contract into the module; the bindings ask for an object file that would bring it. */
void __component_type_object_force_link_watchfire_rule(void) {
}
