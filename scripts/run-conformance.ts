// Runs Connect's own conformance suite against the adapter and the listener of the product.
// The suite is a Go program: it is built once into a folder of its own under the system's temporary
// folder. Without Go the run is skipped, with a message and exit code 0.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Newer versions need a newer Go than common distributions have. */
const SUITE = 'connectrpc.com/conformance/cmd/connectconformance';
const SUITE_VERSION = 'v1.0.5';

const root = path.join(import.meta.dirname, '..');
const folder = path.join(root, 'test', 'conformance-connect');
const binFolder = path.join(tmpdir(), `connectconformance-${SUITE_VERSION}`);
const suite = process.env['CONNECTCONFORMANCE'] ?? path.join(binFolder, 'connectconformance');

if (!existsSync(suite)) {
  const go = ['go', '/usr/local/go/bin/go'].find(
    (command) => spawnSync(command, ['version'], { stdio: 'ignore' }).status === 0,
  );
  if (go === undefined) {
    process.stdout.write('conformance: skipped, it needs Go 1.22 or newer to build the suite\n');
    process.exit(0);
  }
  mkdirSync(binFolder, { recursive: true });
  process.stdout.write(`conformance: building ${SUITE}@${SUITE_VERSION}\n`);
  const env = { ...process.env, GOBIN: binFolder };
  const built = spawnSync(go, ['install', `${SUITE}@${SUITE_VERSION}`], { stdio: 'inherit', env });
  if (built.status !== 0) {
    process.stderr.write('conformance: the suite could not be built\n');
    process.exit(built.status ?? 1);
  }
}

const run = spawnSync(
  suite,
  [
    '--mode',
    'server',
    '--conf',
    path.join(folder, 'config.yaml'),
    '--known-failing',
    `@${path.join(folder, 'known-failing.txt')}`,
    ...process.argv.slice(2),
    '--',
    process.execPath,
    path.join(folder, 'server.ts'),
  ],
  { stdio: 'inherit' },
);
process.exit(run.status ?? 1);
