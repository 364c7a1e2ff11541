"""A GPU that was over its limit most of the time. `watchfire test` builds it and runs scenarios/."""

import watchfire
from watchfire import Cause, Level, Scope, export, last


class Mostly(watchfire.Rule):
    name = "__NAME__"
    version = "0.1.0"
    scope = Scope.GPU
    # A GPU above `limit` is too hot; `ticks` are looked back on, fading; more than a `share` of the time is too much.
    settings = {"limit": 85.0, "ticks": 24.0, "share": 0.8}
    state = (1, 1)

    def inputs(self, settings):
        return [last("gpu_temperature_celsius")]

    def check(self, settings, problem):
        if not settings["ticks"] >= 1:
            problem("ticks", "must be at least 1")
        if not 0 < settings["share"] <= 1:
            problem("share", "must be above 0 and at most 1")

    def evaluate(self, rows, report, settings):
        note = None
        # A row without a value keeps its state, and nothing is said of it.
        for row, value in rows.values(0):
            before = rows.state(0, row)
            over = 1.0 if value > settings["limit"] else 0.0
            share = before + (over - before) / settings["ticks"]
            report.set_state(0, row, share)
            # Between the two limits it is not bad enough to begin an alert, but bad enough to keep one.
            if share > settings["share"] * 0.5:
                if note is None:
                    note = report.note("over the limit most of the time")
                level = Level.WARNING if share > settings["share"] else Level.NONE
                report.hit(row, level, Level.WARNING, share, Cause.THERMAL, note)


Rule = export(Mostly())
