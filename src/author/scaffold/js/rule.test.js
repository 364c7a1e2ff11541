import assert from 'node:assert/strict';
import test from 'node:test';

import { rule } from './rule.js';
import { Bench } from './watchfire/testing.js';

const raised = (bench, value) => bench.tick([[value]]).hits.some((hit) => hit.raise === 'warning');

test('two minutes of heat are told and half the time is not', () => {
  const bench = new Bench(rule);
  for (let tick = 0; tick < 100; tick++) assert.ok(!raised(bench, tick % 2 === 0 ? 70 : 90));
  assert.ok(Array.from({ length: 48 }, () => raised(bench, 90)).some(Boolean));
});

test('settings that cannot be are refused', () => {
  assert.throws(() => new Bench(rule, { ticks: 0 }));
  assert.throws(() => new Bench(rule, { limits: 80 }));
});
