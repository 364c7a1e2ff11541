#include "watchfire.h"

/* A GPU that was over its limit most of the time. `watchfire test` builds it and runs scenarios/. */

/* What a template writes under `with:`. */
static double limit; /* a GPU above this is too hot */
static double ticks; /* the number of ticks that are looked back on, fading */
static double share; /* the share of time that is too much */

static const wf_setting SETTINGS[] = {
  WF_NUMBER("limit", limit, 85.0),
  WF_NUMBER("ticks", ticks, 24.0),
  WF_NUMBER("share", share, 0.8),
};

static void check(wf_problems *problems) {
  if (!(ticks >= 1)) wf_problem(problems, "ticks", "must be at least 1");
  if (!(share > 0 && share <= 1)) wf_problem(problems, "share", "must be above 0 and at most 1");
}

static void shape(wf_shape *shape) {
  wf_last(shape, "gpu_temperature_celsius");
  wf_state(shape, 1, 1);
}

static const char *evaluate(const wf_rows *rows, wf_report *report) {
  int32_t note = WF_NO_NOTE;
  for (size_t row = 0; row < rows->len; row++) {
    double value;
    /* Such a row keeps its state, and nothing is said of it. */
    if (!wf_get(rows, 0, row, &value)) continue;
    double before = wf_kept(rows, 0, row);
    double over = value > limit ? 1 : 0;
    double now = before + (over - before) / ticks;
    wf_set_state(report, 0, row, now);
    /* Between the two limits it is not bad enough to begin an alert, but bad enough to keep one. */
    if (now > share * 0.5) {
      if (note == WF_NO_NOTE) note = wf_note(report, "over the limit most of the time");
      wf_hit(report, row, now > share ? WF_WARNING : WF_NONE, WF_WARNING, now, WF_THERMAL, note);
    }
  }
  return NULL;
}

const wf_rule WATCHFIRE_RULE = {
  .name = "__NAME__",
  .version = "0.1.0",
  .scope = WF_GPU,
  .settings = SETTINGS,
  .n_settings = sizeof SETTINGS / sizeof SETTINGS[0],
  .check = check,
  .shape = shape,
  .evaluate = evaluate,
};
