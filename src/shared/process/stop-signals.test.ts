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
    undefined,
    { signals: source, nowMs: () => nowMs, onParentGone: () => undefined },
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

test('stops when npm has ended, which is no insisting where a signal came before', () => {
  for (const isSignalled of [true, false]) {
    const source = new EventEmitter();
    const calls: string[] = [];
    let gone: (what: string) => void = () => undefined;
    onStopSignals(
      {
        stop: (cause) => void calls.push(`stop ${cause}`),
        force: (signal) => void calls.push(`force ${signal}`),
      },
      undefined,
      { signals: source, nowMs: () => 5_000, onParentGone: (call) => (gone = call) },
    );
    if (isSignalled) source.emit('SIGHUP', 'SIGHUP');
    gone('end of npm');
    expect(calls).toEqual([isSignalled ? 'stop SIGHUP' : 'stop end of npm']);
  }
});

test('SIGHUP is left to who means something else by it', () => {
  const source = new EventEmitter();
  const calls: string[] = [];
  onStopSignals(
    { stop: (cause) => void calls.push(cause), force: (signal) => void calls.push(signal) },
    ['SIGTERM', 'SIGINT'],
    { signals: source, nowMs: () => 5_000, onParentGone: () => undefined },
  );
  expect(source.emit('SIGHUP', 'SIGHUP')).toBe(false);
  source.emit('SIGTERM', 'SIGTERM');
  expect(calls).toEqual(['SIGTERM']);
});
