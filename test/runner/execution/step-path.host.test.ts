/** The environment of steps of a runner that was started through npm, npx, node, or by a service manager. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { byLength, inShort } from '../../support/test-length.ts';
import { put } from '../support/git-project.ts';

const MAIN = resolve(import.meta.dirname, '../../../src/runner/cli-main.ts');
const SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin'];

let base = '';
let project = '';

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'step-path-')));
  project = join(base, 'project');
  const tool = join(base, 'app', 'node_modules', '.bin', 'tool-of-ours');
  put(base, {
    // As the runner's own package has vitest and node.
    'app/node_modules/.bin/tool-of-ours': '#!/bin/sh\necho ours\n',
    'app/package.json': JSON.stringify({
      name: 'app',
      version: '1.0.0',
      bin: { app: 'app.sh' },
      scripts: { runner: `exec '${process.execPath}' '${MAIN}'` },
    }),
    'app/start.sh': `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`,
    'project/.github/workflows/w.yml': `on: workflow_dispatch
jobs:
  j:
    runs-on: x
    steps: [{ run: 'echo "path=$PATH"; command -v tool-of-ours || echo "not found"; echo "npm=\${npm_lifecycle_event-unset}"' }]
`,
  });
  for (const path of [tool, join(base, 'app', 'start.sh')]) chmodSync(path, 0o755);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

async function stepLines(
  program: string,
  args: readonly string[],
  path: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(program, [...args], {
    cwd: join(base, 'app'),
    env: {
      PATH: path.join(delimiter),
      HOME: base,
      RUNNER_DISK_FLOOR_BYTES: '0',
      npm_config_update_notifier: 'false',
      npm_config_offline: 'true',
      ...more,
    },
  });
  const lines = stdout.split('\n').flatMap((line) => / │ (.*)$/.exec(line)?.[1] ?? []);
  return lines.filter((line) => /^(?:path|npm)=|^not found$|tool-of-ours/.test(line));
}

const RUN = ['run', 'w', '-w'];
/** npm of the machine, which has node beside it. */
const NODE_DIR = dirname(process.execPath);
const PATH = [...SYSTEM, NODE_DIR];

const PROGRAMS: readonly (readonly [string, string, readonly string[]])[] = [
  ['npm', 'npm', ['run', '--silent', 'runner', '--', ...RUN]],
  ['npx', 'npx', ['--no', '-c', './start.sh run w -w "$PROJECT"']],
  [
    'npm within npm',
    'npm',
    ['exec', '--no', '-c', 'npm run --silent runner -- run w -w "$PROJECT"'],
  ],
  ['node', process.execPath, [MAIN, ...RUN]],
];

test.each(byLength(PROGRAMS.slice(0, 1), PROGRAMS.slice(1)))(
  'through %s, PATH is what it was before',
  { timeout: 120_000 },
  async (name, program, args) => {
    const own = args.includes('-c') ? args : [...args, project];
    const lines = await stepLines(program, own, PATH, { PROJECT: project });
    expect(lines, name).toEqual([`path=${PATH.join(delimiter)}`, 'not found', 'npm=unset']);
  },
);

inShort(test)("a service manager's bare PATH stays", { timeout: 120_000 }, async () => {
  const bare = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
  const lines = await stepLines(process.execPath, [MAIN, ...RUN, project], bare);
  expect(lines).toEqual([`path=${bare.join(delimiter)}`, 'not found', 'npm=unset']);
});

inShort(test)(
  'RUNNER_PATH counts instead, RUNNER_PASS_ENV adds',
  { timeout: 120_000 },
  async () => {
    const own = [join(base, 'app', 'node_modules', '.bin'), ...SYSTEM].join(delimiter);
    const lines = await stepLines(process.execPath, [MAIN, ...RUN, project], PATH, {
      RUNNER_PATH: own,
      RUNNER_PASS_ENV: 'npm_lifecycle_event',
      npm_lifecycle_event: 'passed',
    });
    expect(lines).toEqual([
      `path=${own}`,
      join(base, 'app', 'node_modules', '.bin', 'tool-of-ours'),
      'npm=passed',
    ]);
  },
);
