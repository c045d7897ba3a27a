import { expect, test } from 'vitest';
import { createIncidentLog } from './incident-log.ts';

test('a flood of one kind is a line a second that counts the rest; kinds do not hide each other', () => {
  const lines: unknown[] = [];
  let nowMs = 0;
  const incident = createIncidentLog((level, event, fields) => lines.push([level, event, fields]), {
    monotonicMs: () => nowMs,
  });
  for (let i = 0; i < 1_000; i++) incident('connection_limit', 'full');
  incident('http2_session', 'reset');
  nowMs = 1_000;
  incident('connection_limit', 'full');
  nowMs = 5_000;
  incident('connection_limit', 'full');
  expect(lines).toEqual([
    ['warn', 'connection_limit', { detail: 'full' }],
    ['warn', 'http2_session', { detail: 'reset' }],
    ['warn', 'connection_limit', { detail: 'full', suppressed: 999 }],
    ['warn', 'connection_limit', { detail: 'full' }],
  ]);
});
