// Write Watchfire rules in JavaScript: an object with settings, declared inputs, and one `evaluate` over rows.

/** The version of the contract that this SDK speaks. */
export const CONTRACT = 'watchfire:rule@0.1.0';

const LEVELS = { none: 0, info: 1, warning: 2, critical: 3, emergency: 4 };
const CAUSES = {
  unknown: 0, hardware: 1, thermal: 2, power: 3, hang: 4, idle: 5, supply: 6, communication: 7, software: 8, capacity: 9,
  telemetry: 10,
};
const SCOPES = { host: 'host', filesystem: 'device', disk: 'device', nic: 'device', job: 'job', rank: 'rank' };

/** The newest value of a metric, required, of the scope that its name tells (`gpu_…`, `host_…`). */
export function last(metric, more) {
  return window(metric, 'last', 0, more);
}

/**
 * An aggregate of a metric over the last `seconds`: last, min, max, mean, sum, count, stddev, increase, rate, slope, or
 * ['quantile', 0.99] and ['histogram-quantile', 0.99]. `more` may hold scope and required.
 */
export function window(metric, aggregate, seconds, more = {}) {
  const [tag, val] = Array.isArray(aggregate) ? aggregate : [aggregate];
  const by = val === undefined ? { tag } : { tag, val };
  const scope = more.scope ?? SCOPES[metric.split('_')[0]] ?? 'gpu';
  const reads = { tag: 'metric', val: { name: metric, aggregate: by } };
  return { reads, scope, windowMs: seconds * 1000, required: more.required ?? true };
}

/** Events of a kind on a GPU (no codes = all): count, age, last-code or distinct-jobs of the last `seconds`. */
export function events(kind, codes, stat, seconds, more = {}) {
  const reads = { tag: 'event', val: { kind, codes, stat } };
  return { reads, scope: more.scope ?? 'gpu', windowMs: seconds * 1000, required: more.required ?? true };
}

/** All rows of a rule at one tick. */
export class Rows {
  // Plain fields: each private one costs an interpreter a check.
  constructor(batch) {
    /** How many rows. */
    this.length = batch.rows;
    /** Milliseconds since the Unix epoch. */
    this.nowMs = batch.nowMs;
    /** Milliseconds between ticks. */
    this.intervalMs = batch.intervalMs;
    this._columns = batch.columns;
    this._quality = batch.quality;
    this._state = batch.state;
    this._groups = batch.groups;
  }

  /** The value of an input, or undefined where it is not there or not to be trusted. */
  get(input, row) {
    const cell = input * this.length + row;
    return row < this.length && this._quality[cell] === 0 ? this._columns[cell] : undefined;
  }

  /** 0 ok, 1 missing, 2 stale, 3 invalid. */
  quality(input, row) {
    return (row < this.length ? this._quality[input * this.length + row] : undefined) ?? 1;
  }

  /** What the last good tick left in a state slot; 0 at first. */
  state(slot, row) {
    return (row < this.length ? this._state[slot * this.length + row] : undefined) ?? 0;
  }

  /** The number of the row's group; 0 where the rule asked for none. */
  group(row) {
    return this._groups[row] ?? 0;
  }
}

/** What a rule answers at one tick. */
export class Report {
  constructor(batch, outputs) {
    this._rows = batch.rows;
    this._state = batch.state;
    this._kept = null;
    this._outputs = outputs;
    this._outcome = { hits: [], notes: [], state: null, derived: [] };
  }

  /**
   * Says of a row that `raise` is met now and that `hold` keeps an alert alive (lifted to `raise` where it is below).
   * `value` is the number to show; `note` is a number that `note` gave.
   */
  hit(row, raise, hold, value, cause = 'unknown', note = null) {
    const raised = LEVELS[raise] ?? unknown(LEVELS, raise);
    const held = LEVELS[hold] ?? unknown(LEVELS, hold);
    if (CAUSES[cause] === undefined) unknown(CAUSES, cause);
    this._outcome.hits.push({ row, raise, hold: held < raised ? raise : hold, value, cause, note });
  }

  /** Adds a text that hits can point to; its number. */
  note(text) {
    return this._outcome.notes.push(text) - 1;
  }

  /** Keeps a number for a row until the next tick. What is not set stays as it was. */
  setState(slot, row, value) {
    if (this._kept === null) this._kept = Array.from(this._state);
    const cell = slot * this._rows + row;
    if (row < this._rows && cell < this._kept.length) this._kept[cell] = value;
  }

  /** Gives a derived metric its value for a row. */
  derive(output, row, value) {
    const rows = this._rows;
    if (row >= rows || output >= this._outputs) return;
    if (this._outcome.derived.length === 0) this._outcome.derived = new Array(this._outputs * rows).fill(NaN);
    this._outcome.derived[output * rows + row] = value;
  }

  /** The answer in the contract's form. */
  outcome() {
    this._outcome.state = this._kept;
    return this._outcome;
  }
}

function unknown(names, name) {
  throw new Error(`there is no ${JSON.stringify(name)}; expected one of ${Object.keys(names).join(', ')}`);
}

/** What is wrong with settings: keys that there are not, values of another kind, and what the rule itself finds. */
function read(rule, json) {
  const given = JSON.parse(json || '{}');
  const defaults = rule.settings ?? {};
  const problems = [];
  for (const [path, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaults, path)) {
      problems.push({ path, message: `unknown field \`${path}\`` });
    } else if (typeof value !== typeof defaults[path]) {
      problems.push({ path, message: `expected a ${typeof defaults[path]}` });
    }
  }
  const settings = { ...defaults, ...given };
  if (problems.length === 0 && rule.check) {
    rule.check(settings, (path, message) => problems.push({ path, message }));
  }
  return { settings, problems };
}

/**
 * The contract's functions for a rule: `export const rule = define({...})`.
 *
 * It has name, version, scope, inputs (a list, or a function of the settings, which are undefined while there are none),
 * evaluate(rows, report, settings), and may have outputs, settings (the defaults), schema, state: {slots, version},
 * labels, groupBy, check(settings, problem), onTargets(targets, settings) and explain(rows, row, settings).
 * Problems are thrown: what an error says is for people; the rule is then tried again later.
 */
export function define(rule) {
  let settings;
  let batch;
  const all = (part) => (typeof part === 'function' ? part(settings) : part) ?? [];
  return {
    describe() {
      return {
        contract: CONTRACT,
        name: rule.name,
        version: rule.version,
        scope: rule.scope ?? 'gpu',
        inputs: all(rule.inputs),
        outputs: all(rule.outputs),
        settingsSchema: rule.schema ?? '',
        stateSlots: rule.state?.slots ?? 0,
        stateVersion: rule.state?.version ?? 0,
        needsLabels: rule.labels ?? false,
        groupBy: rule.groupBy ?? null,
      };
    },
    validateSettings(json) {
      const { problems } = read(rule, json);
      if (problems.length > 0) throw problems;
    },
    configure(json) {
      const found = read(rule, json);
      if (found.problems.length > 0) {
        throw found.problems.map(({ path, message }) => `${path}: ${message}`).join('; ');
      }
      settings = found.settings;
    },
    onTargets(targets) {
      words(() => rule.onTargets?.(targets, settings));
    },
    evaluate(given) {
      batch = given;
      const report = new Report(batch, all(rule.outputs).length);
      words(() => rule.evaluate(new Rows(batch), report, settings));
      return report.outcome();
    },
    explain(row) {
      if (batch === undefined || row >= batch.rows) return null;
      return words(() => rule.explain?.(new Rows(batch), row, settings)) ?? null;
    },
  };
}

/** An error's words alone cross to the host. */
function words(call) {
  try {
    return call();
  } catch (error) {
    throw error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}
