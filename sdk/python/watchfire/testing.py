"""Runs a rule as it is, without building it: for ``python3 -m unittest``."""

import json
from types import SimpleNamespace

import watchfire


class Bench:
    """A rule with settings, tick after tick."""

    def __init__(self, rule, settings=None):
        self.rule = rule
        self.settings, problems = watchfire.read_settings(rule, json.dumps(settings or {}))
        if problems:
            raise ValueError("; ".join(f"{path}: {message}" for path, message in problems))
        self.state = []
        self.ticks = 0

    def tick(self, columns):
        """Judges columns: for each input a list with a value for each row; None is a value that is missing."""
        rows = len(columns[0]) if columns else 0
        cells = [value for column in columns for value in column]
        slots, _ = self.rule.state
        if len(self.state) != slots * rows:
            self.state = [0.0] * (slots * rows)
        batch = SimpleNamespace(
            tick=self.ticks, now_ms=self.ticks * 5000, interval_ms=5000, rows=rows,
            columns=[0.0 if value is None else float(value) for value in cells],
            quality=bytes(1 if value is None else 0 for value in cells), groups=[], state=self.state,
        )
        self.ticks += 1
        report = watchfire.Report(batch, len(self.rule.outputs))
        self.rule.evaluate(watchfire.Rows(batch), report, self.settings)
        self.state = self.state if report.outcome.state is None else report.outcome.state
        return report.outcome
