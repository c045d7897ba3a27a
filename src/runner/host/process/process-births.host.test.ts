import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { forgetFirstBirth, leastPidOf, markFirstBirth, newestPid } from './process-births.ts';

test.skipIf(process.platform !== 'linux')(
  'processes of an id have numbers above its mark',
  async () => {
    // Numbers may start over while this runs: then the mark says that it knows nothing.
    expect(leastPidOf('never marked')).toBe(0);
    markFirstBirth('marked');
    const child = spawn('sleep', ['100']);
    try {
      await once(child, 'spawn');
      const least = leastPidOf('marked');
      expect(least === 0 || least < (child.pid ?? 0)).toBe(true);
      expect(newestPid()).toBeGreaterThan(1);
      spawnSync('true');
      markFirstBirth('marked');
      expect([0, least]).toContain(leastPidOf('marked'));
    } finally {
      child.kill('SIGKILL');
      forgetFirstBirth('marked');
    }
    expect(leastPidOf('marked')).toBe(0);
  },
);
