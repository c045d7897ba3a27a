import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { onStopSignals } from './stop-signals.ts';

test('stops at the first signal, and ends at once at one that is no echo of it', () => {
  const source = new EventEmitter();
  const calls: string[] = [];
  let nowMs = 5_000;
  onStopSignals(
    {
      stop: (signal) => void calls.push(`stop ${signal}`),
      force: (signal) => void calls.push(`force ${signal}`),
    },
    source,
    () => nowMs,
  );
  const send = (signal: NodeJS.Signals): boolean => source.emit(signal, signal);
  send('SIGINT');
  send('SIGINT');
  nowMs += 1_000;
  send('SIGTERM');
  expect(calls).toEqual(['stop SIGINT']);
  nowMs += 1;
  send('SIGTERM');
  expect(calls).toEqual(['stop SIGINT', 'force SIGTERM']);
});
