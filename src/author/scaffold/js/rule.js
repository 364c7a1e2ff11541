// A GPU that was over its limit most of the time. `watchfire test` builds it and runs scenarios/.

import { define, last } from './watchfire/watchfire.js';

export const rule = define({
  name: '__NAME__',
  version: '0.1.0',
  scope: 'gpu',
  inputs: [last('gpu_temperature_celsius')],
  state: { slots: 1, version: 1 },
  // What a template writes under `with:`. A GPU above `limit` is too hot; `ticks` are looked back on, fading; more than
  // a `share` of the time is too much.
  settings: { limit: 85, ticks: 24, share: 0.8 },

  check(settings, problem) {
    if (!(settings.ticks >= 1)) problem('ticks', 'must be at least 1');
    if (!(settings.share > 0 && settings.share <= 1)) problem('share', 'must be above 0 and at most 1');
  },

  evaluate(rows, report, settings) {
    let note;
    for (let row = 0; row < rows.length; row++) {
      const value = rows.get(0, row);
      // Such a row keeps its state, and nothing is said of it.
      if (value === undefined) continue;
      const before = rows.state(0, row);
      const over = value > settings.limit ? 1 : 0;
      const share = before + (over - before) / settings.ticks;
      report.setState(0, row, share);
      // Between the two limits it is not bad enough to begin an alert, but bad enough to keep one.
      if (share > settings.share * 0.5) {
        note ??= report.note('over the limit most of the time');
        report.hit(row, share > settings.share ? 'warning' : 'none', 'warning', share, 'thermal', note);
      }
    }
  },
});
