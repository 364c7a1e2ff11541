"""Write Watchfire rules in Python: a class with settings, declared inputs, and one ``evaluate`` over rows."""

import json
from dataclasses import dataclass, field
from enum import Enum

CONTRACT = "watchfire:rule@0.1.0"
"""The version of the contract that this SDK speaks."""

Level = Enum("Level", ["NONE", "INFO", "WARNING", "CRITICAL", "EMERGENCY"], start=0)
"""How bad a condition is."""

Cause = Enum(
    "Cause",
    ["UNKNOWN", "HARDWARE", "THERMAL", "POWER", "HANG", "IDLE", "SUPPLY", "COMMUNICATION", "SOFTWARE", "CAPACITY",
     "TELEMETRY"],
    start=0,
)
"""What likely causes it."""

Scope = Enum("Scope", ["HOST", "GPU", "DEVICE", "JOB", "RANK"], start=0)
"""Whose value a column holds, and what a row stands for."""

EventStat = Enum("EventStat", ["COUNT", "AGE", "LAST_CODE", "DISTINCT_JOBS"], start=0)
"""What is asked of the events of a window."""

_SCOPES = {"host": Scope.HOST, "filesystem": Scope.DEVICE, "disk": Scope.DEVICE, "nic": Scope.DEVICE, "job": Scope.JOB,
           "rank": Scope.RANK}


@dataclass
class Input:
    """One column: a metric with how its window becomes one number, or events of a kind."""

    metric: str = ""
    aggregate: str = "last"
    quantile: float = 0.0
    kind: str = ""
    codes: list = field(default_factory=list)
    stat: Enum = EventStat.COUNT
    scope: Enum = Scope.GPU
    window_ms: int = 0
    required: bool = True


def last(metric, **more):
    """The newest value of a metric, required, of the scope that its name tells (``gpu_…``, ``host_…``)."""
    return window(metric, "last", 0, **more)


def window(metric, aggregate, seconds, quantile=0.0, scope=None, required=True):
    """An aggregate of a metric over the last ``seconds``: last, min, max, mean, sum, count, stddev, increase, rate,
    slope, quantile or histogram_quantile; the last two with ``quantile`` from 0 to 1."""
    scope = scope or _SCOPES.get(metric.split("_")[0], Scope.GPU)
    return Input(metric, aggregate, quantile, scope=scope, window_ms=seconds * 1000, required=required)


def events(kind, codes, stat, seconds, scope=Scope.GPU, required=True):
    """Events of a kind on a GPU (no codes = all) over the last ``seconds``."""
    return Input(kind=kind, codes=list(codes), stat=stat, scope=scope, window_ms=seconds * 1000, required=required)


class Rule:
    """A rule; what is not needed is left as it is here.

    An exception in ``on_targets`` or ``evaluate`` is told to people; the rule is then tried again later, and its alerts
    stay as they are.
    """

    name = ""
    version = ""
    scope = Scope.GPU
    settings = {}
    """What a template writes under ``with:``, each with what holds where it writes nothing."""
    schema = ""
    """JSON Schema of the settings."""
    state = (0, 0)
    """How many numbers are kept for each row, and the version of their meaning: another version starts clean."""
    outputs = ()
    """Derived metrics."""
    labels = False
    """Whether the rows' labels are wanted."""
    group_by = None
    """The label by which rows form groups."""

    def inputs(self, settings):
        """What it reads; before it is configured the settings are the defaults."""
        return []

    def check(self, settings, problem):
        """Checks settings: ``problem(path, message)`` says what is wrong."""

    def on_targets(self, targets, settings):
        """Called when the rows change, where labels or groups are wanted: each has ``labels`` (a list of pairs) and
        ``group``."""

    def evaluate(self, rows, report, settings):
        """Judges all rows."""
        raise NotImplementedError

    def explain(self, rows, row, settings):
        """The evidence for a row of the rows last judged, as a text."""
        return None


class Rows:
    """All rows of a rule at one tick."""

    def __init__(self, batch):
        self._batch = batch
        self._len = batch.rows
        self.now_ms = batch.now_ms
        """Milliseconds since the Unix epoch."""
        self.interval_ms = batch.interval_ms
        """Milliseconds between ticks."""

    def __len__(self):
        return self._len

    def _cell(self, column, row):
        if not 0 <= row < self._len:
            raise IndexError(f"there is no row {row}; there are {self._len}")
        return column * self._len + row

    def get(self, input, row):
        """The value of an input, or None where it is not there or not to be trusted."""
        cell = self._cell(input, row)
        return self._batch.columns[cell] if self._batch.quality[cell] == 0 else None

    def quality(self, input, row):
        """0 ok, 1 missing, 2 stale, 3 invalid."""
        return self._batch.quality[self._cell(input, row)]

    def values(self, input):
        """(row, value) of each row whose value of an input is there."""
        start, end = input * self._len, (input + 1) * self._len
        cells = zip(self._batch.columns[start:end], self._batch.quality[start:end])
        return [(row, value) for row, (value, quality) in enumerate(cells) if quality == 0]

    def state(self, slot, row):
        """What the last good tick left in a state slot; 0 at first."""
        return self._batch.state[self._cell(slot, row)]

    def group(self, row):
        """The number of the row's group; 0 where the rule asked for none."""
        return self._batch.groups[row] if row < len(self._batch.groups) else 0


@dataclass
class Hit:
    """What is said of one row."""

    row: int
    raise_: Enum
    hold: Enum
    value: float
    cause: Enum
    note: int | None


@dataclass
class Outcome:
    """The answer in the contract's form."""

    hits: list
    notes: list
    state: list | None
    derived: list


class Report:
    """What a rule answers at one tick."""

    def __init__(self, batch, outputs=0):
        self._batch = batch
        self._outputs = outputs
        self.outcome = Outcome([], [], None, [])

    def hit(self, row, raise_, hold, value, cause=Cause.UNKNOWN, note=None):
        """Says of a row that ``raise_`` is met now and that ``hold`` keeps an alert alive (lifted to ``raise_`` where it
        is below). ``value`` is the number to show."""
        hold = raise_ if hold.value < raise_.value else hold
        self.outcome.hits.append(Hit(row, raise_, hold, value, cause, note))

    def note(self, text):
        """Adds a text that hits can point to; its number."""
        self.outcome.notes.append(text)
        return len(self.outcome.notes) - 1

    def set_state(self, slot, row, value):
        """Keeps a number for a row until the next tick. What is not set stays as it was."""
        if self.outcome.state is None:
            self.outcome.state = list(self._batch.state)
        self.outcome.state[slot * self._batch.rows + row] = value

    def derive(self, output, row, value):
        """Gives a derived metric its value for a row."""
        rows = self._batch.rows
        if not self.outcome.derived:
            self.outcome.derived = [float("nan")] * (self._outputs * rows)
        self.outcome.derived[output * rows + row] = value


def read_settings(rule, text):
    """The settings in a JSON text, and what is wrong with them as (path, message)."""
    given = json.loads(text or "{}")
    settings, problems = dict(rule.settings), []
    for path, value in given.items():
        if path not in settings:
            problems.append((path, f"unknown field `{path}`"))
        elif _kind(value) is not _kind(settings[path]):
            problems.append((path, f"expected a {_kind(settings[path]).__name__}"))
        else:
            settings[path] = float(value) if _kind(value) is float else value
    if not problems:
        rule.check(settings, lambda path, message: problems.append((path, message)))
    return settings, problems


def _kind(value):
    """Whole numbers are numbers too, and true and false are none."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def log(line):
    """A line for the host's log; printed where the rule is not built."""
    try:
        from wit_world.imports import host
    except ImportError:
        print(line)
    else:
        host.log(line)


def export(rule):
    """The contract's functions for a rule: ``Rule = export(Mostly())`` in ``rule.py``."""
    from . import contract

    return contract.exported(rule)
