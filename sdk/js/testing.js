// Runs a rule as it is, without building it: for `node --test`.

/** A rule with settings, tick after tick. */
export class Bench {
  #rule;
  #slots;
  #state = [];
  #tick = 0;

  /** Settings as an object; what is wrong with them is thrown. */
  constructor(rule, settings = {}) {
    this.#rule = rule;
    rule.validateSettings(JSON.stringify(settings));
    rule.configure(JSON.stringify(settings));
    this.#slots = rule.describe().stateSlots;
  }

  /** Judges columns: for each input a list with a value for each row; undefined is a value that is missing. */
  tick(columns) {
    const rows = columns[0]?.length ?? 0;
    const cells = columns.flat();
    if (this.#state.length !== this.#slots * rows) this.#state = new Array(this.#slots * rows).fill(0);
    const outcome = this.#rule.evaluate({
      tick: this.#tick,
      nowMs: this.#tick * 5000,
      intervalMs: 5000,
      rows,
      columns: cells.map((value) => value ?? 0),
      quality: cells.map((value) => (value === undefined ? 1 : 0)),
      groups: [],
      state: this.#state,
    });
    this.#tick += 1;
    this.#state = outcome.state ?? this.#state;
    return outcome;
  }
}
