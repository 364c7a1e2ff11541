"""Between the contract's functions and a rule. An author needs nothing of it."""

import watchfire


def exported(rule):
    """The class that componentize-py looks for."""
    running = _Running(rule)

    class Exported:
        describe = staticmethod(running.describe)
        validate_settings = staticmethod(running.validate_settings)
        configure = staticmethod(running.configure)
        on_targets = staticmethod(running.on_targets)
        evaluate = staticmethod(running.evaluate)
        explain = staticmethod(running.explain)

    return Exported


def _failed(value):
    """How a result's failure is told: its class is there only in a built rule."""
    from componentize_py_types import Err

    return Err(value)


def _words(call):
    """An exception's words alone cross to the host."""
    try:
        return call()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    raise _failed(why)


class _Running:
    """A rule with its settings and the batch that it judged last."""

    def __init__(self, rule):
        self.rule = rule
        self.settings = dict(rule.settings)
        self.batch = None

    def describe(self):
        from wit_world.imports import types

        rule = self.rule
        inputs = [_input(one, types) for one in rule.inputs(self.settings)]
        slots, version = rule.state
        return types.Descriptor(
            watchfire.CONTRACT, rule.name, rule.version, types.Scope(rule.scope.value), inputs, list(rule.outputs),
            rule.schema, slots, version, rule.labels, rule.group_by,
        )

    def validate_settings(self, text):
        from wit_world.imports import types

        _, problems = watchfire.read_settings(self.rule, text)
        if problems:
            raise _failed([types.SettingError(path, message) for path, message in problems])

    def configure(self, text):
        settings, problems = watchfire.read_settings(self.rule, text)
        if problems:
            raise _failed("; ".join(f"{path}: {message}" for path, message in problems))
        self.settings = settings

    def on_targets(self, targets):
        _words(lambda: self.rule.on_targets(targets, self.settings))

    def evaluate(self, batch):
        self.batch = batch
        report = watchfire.Report(batch, len(self.rule.outputs))
        _words(lambda: self.rule.evaluate(watchfire.Rows(batch), report, self.settings))
        return report.outcome

    def explain(self, row):
        if self.batch is None or row >= self.batch.rows:
            return None
        return _words(lambda: self.rule.explain(watchfire.Rows(self.batch), row, self.settings))


def _input(one, types):
    scope = types.Scope(one.scope.value)
    if one.kind:
        reads = types.Reads_Event(types.EventInput(one.kind, one.codes, types.EventStat(one.stat.value)))
        return types.Input(reads, scope, one.window_ms, one.required)
    words = "".join(word.capitalize() for word in one.aggregate.replace("-", "_").split("_"))
    by = getattr(types, f"Aggregate_{words}")
    aggregate = by(one.quantile) if words in ("Quantile", "HistogramQuantile") else by()
    return types.Input(types.Reads_Metric(types.MetricInput(one.metric, aggregate)), scope, one.window_ms, one.required)
