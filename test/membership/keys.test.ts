import { expect, test } from 'vitest';
import { type Bounds, firstWorld, keyOf, stepsOf, type World } from './model.ts';

const BOUNDS: Bounds = {
  start: 'alone',
  instances: 2,
  writes: 1,
  ids: 1,
  crashes: 1,
  losses: 1,
  leaves: 1,
  queries: 2,
};
const WORLDS = 3_000;

// An exploration that took two worlds for one would pass over what only one of them leads to.
test.each(['alone', 'shared', 'two', 'late'] as const)(
  '%s: equal keys are equal worlds',
  (start) => {
    const bounds = { ...BOUNDS, start };
    const keyByText = new Map<string, string>();
    const texts = new Map<string, string>();
    const waiting: World[] = [firstWorld(bounds)];
    for (let at = 0; at < waiting.length && keyByText.size < WORLDS; at++) {
      for (const { world } of stepsOf(waiting[at] as World, bounds, new Set())) {
        const text = JSON.stringify(world);
        const key = keyOf(world);
        if ((keyByText.get(text) ?? key) !== key) expect.fail(`two keys of ${text}`);
        if ((texts.get(key) ?? text) !== text)
          expect.fail(`one key of ${text} and ${texts.get(key)}`);
        if (!keyByText.has(text)) waiting.push(world);
        keyByText.set(text, key);
        texts.set(key, text);
      }
    }
    expect(keyByText.size).toBeGreaterThanOrEqual(WORLDS);
  },
);
