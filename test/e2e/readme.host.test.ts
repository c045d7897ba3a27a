import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shellBlocks } from '../support/readme.ts';
import { type Service, startService } from '../support/service.ts';

/* The requests of README.md and docs/walk-through.md are run as they are written; comments say what is printed. */
let service: Service;

beforeAll(async () => {
  // As `npm start` without settings: no service tokens. The walk-through says that Watch needs its setting.
  service = await startService({
    postgres: 'shared',
    env: { GATEWAY_SERVICE_AUTH_TOKENS: '', GATEWAY_WATCH_STREAMS: '8' },
  });
}, 120_000);
afterAll(async () => {
  await service.stop();
});

test.each([
  ['README.md', 'Run it', 2],
  ['docs/walk-through.md', 'Workspaces, groups and seats', 6],
  ['docs/walk-through.md', 'Queries beyond Check', 7],
])(
  'the commands of %s under "%s" print what they say',
  async (path, heading, prints) => {
    const blocks = shellBlocks(heading, path).filter((block) => !block.startsWith('npm '));
    const script = blocks.join('');
    const expected = script
      .split('\n')
      .filter((line) => line.startsWith('# '))
      .map((line) => line.slice(2));
    expect(expected.length).toBeGreaterThanOrEqual(prints);
    // Bash takes a socket for its input as a remote login where SHLVL is unset, and would read its startup file.
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', script.replaceAll('localhost:8080', service.address)],
      { timeout: 120_000, env: { ...process.env, XDG_CONFIG_HOME: '/nowhere' } },
    );
    // A watch says whom it follows.
    expect(stderr.replace(/^following http:.*\n/, '')).toBe('');
    // A token differs each time, and is shown as an ellipsis.
    const printed = stdout.trim().replaceAll(/(?<="consistency_token":")[^"]+/g, '…');
    expect(printed.split(/\n|(?<=\})(?=\{)/)).toEqual(expected);
  },
  90_000,
);
