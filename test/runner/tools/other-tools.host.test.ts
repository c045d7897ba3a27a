/** setup-python, setup-go, setup-uv and pnpm/action-setup through the real executor. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rcompare } from 'semver';
import { describe, expect, test } from 'vitest';
import { ToolRegistry } from '../../../src/runner/host/tools/tool-registry.ts';
import { toolsHere } from '../../../src/runner/host/tools/tool-source.ts';
import { runJob, temporaryDir, temporaryHome } from '../../support/job-harness.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { type FakePackage, fakePackageBytes, startFakeRegistry } from './fake-registry.ts';
import { writeNpm } from './quick-npm.ts';

const GO = programOf('go');
const [PYTHON] = (await toolsHere(machineRegistry('/nowhere').python)).toSorted((a, b) =>
  rcompare(a.version, b.version),
);

/** With what is on this machine; it installs nothing. */
function machineRegistry(home: string): ToolRegistry {
  const root = join(home, 'tools');
  return new ToolRegistry({ environment: process.env, root, mayInstall: false });
}

function programOf(name: string): string | undefined {
  try {
    return realpathSync(execFileSync('which', [name], { encoding: 'utf8' }).trim());
  } catch {
    // It is not here.
    return undefined;
  }
}

/** Scripts that print a version each, in the folders that version managers have. */
function homeWith(programs: Readonly<Record<string, string>>): string {
  const home = temporaryHome();
  for (const [path, output] of Object.entries(programs)) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `#!/bin/sh\necho '${output}'\n`, { mode: 0o755 });
  }
  return home;
}

function registryIn(home: string, more: Readonly<Record<string, string>> = {}): ToolRegistry {
  const environment = { HOME: home, PATH: `${join(home, 'bin')}:/usr/bin:/bin`, ...more };
  return new ToolRegistry({
    environment,
    root: join(home, 'tools'),
    mayInstall: more['npm_config_registry'] !== undefined,
  });
}

/**
 * A Go that gets others, as the real one does: from a module cache whose folders are closed unless GOFLAGS has
 * -modcacherw, and which answers by what it got. Those before 1.14 refuse that flag, and 1.14 a flag
 * of the settings of the user, which GOFLAGS or GOENV hides; 1.15 does not run.
 */
const GETTING_GO = `#!/bin/sh
case "$1 $GOTOOLCHAIN" in
  'list '*)
    for v in 1.12.17 1.13.15 1.14.15 1.15.15; do echo "v0.0.1-go$v.$SYSTEM"; done ;;
  'version local') echo 'go version go1.22.0 linux/amd64' ;;
  'version '*)
    root="$GOMODCACHE/golang.org/toolchain@v0.0.1-$GOTOOLCHAIN.$SYSTEM"
    mkdir -p "$root/bin" "$root/src"
    {
      echo '#!/bin/sh'
      case "$GOTOOLCHAIN" in
        go1.14.*) echo '[ "$GOENV" = off ] || [ -n "$GOFLAGS" ] || { echo "unknown flag of the user" >&2; exit 1; }' ;;
        go1.12.*|go1.13.*) echo 'case "$GOFLAGS" in *-modcacherw*) echo "unknown flag -modcacherw" >&2; exit 1;; esac' ;;
        go1.15.*) echo 'echo "fatal: bad system" >&2; echo at 0x1 >&2; exit 3' ;;
      esac
      echo "echo go version $GOTOOLCHAIN linux/amd64 flags=\\$GOFLAGS"
    } > "$root/bin/go"
    chmod 755 "$root/bin/go"
    echo "$GOTOOLCHAIN got with [$GOFLAGS]" >> "$HOME/got"
    case "$GOFLAGS" in *-modcacherw*) ;; *) chmod a-w "$root/bin" "$root/src" "$root" ;; esac
    [ "$GOTOOLCHAIN" = go1.15.15 ] || exec "$root/bin/go" version ;;
esac
`;

function gettingGo(): { readonly home: string; readonly tools: ToolRegistry } {
  const home = temporaryHome();
  const system = `linux-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  // In front of any real one.
  const bin = join(home, 'sdk/go1.22.0/bin');
  mkdirSync(bin, { recursive: true });
  const text = GETTING_GO.replaceAll('$SYSTEM', system);
  writeFileSync(join(bin, 'go'), text, { mode: 0o755 });
  const environment = { HOME: home, PATH: '/usr/bin:/bin' };
  const root = join(home, 'tools');
  return { home, tools: new ToolRegistry({ environment, root, mayInstall: true }) };
}

inShort(describe)('getting a Go', () => {
  const step = (version: string): string =>
    `\n      - { uses: actions/setup-go@v5, with: { go-version: '${version}' }, continue-on-error: true }`;

  test('one before 1.14 is not given the flag that it refuses, and can be moved and removed all the same', async () => {
    const { home, tools } = gettingGo();
    const job = await runJob(`${step('1.12')}\n      - run: GOENV=off go version${step('1.14')}`, {
      tools,
    });
    expect(job.text).toContain('Go 1.12.17 (installed now), for 1.12 of go-version');
    expect(job.text).toContain('go version go1.12.17 linux/amd64');
    const got = readFileSync(join(home, 'got'), 'utf8').trim().split('\n');
    expect(got).toEqual(['go1.12.17 got with [-v]', 'go1.14.15 got with [-modcacherw]']);
    const closed = execFileSync('find', [tools.cache.root, '-type', 'd', '!', '-perm', '-u+w']);
    expect(closed.toString()).toBe('');
    expect(tools.cache.versionsOf('go').toSorted()).toEqual(['1.12.17', '1.14.15']);
  });

  test('why it does not run is said: how it ended, and its first words', async () => {
    const { home, tools } = gettingGo();
    const broken = join(home, 'sdk/go1.13/bin');
    mkdirSync(broken, { recursive: true });
    writeFileSync(join(broken, 'go'), '#!/bin/sh\nkill -SEGV $$\n', { mode: 0o755 });
    const job = await runJob(step('1.15'), { tools });
    const message = job.annotations.find(({ level }) => level === 'error')?.message ?? '';
    expect(message).toContain(`. What does not run: ${broken}/go (sdk): it was ended by SIGSEGV. `);
    expect(message).toContain(
      'what the registry has as 1.15.15 does not run: exit code 3: fatal: bad system; at 0x1',
    );
  });
});

inShort(test)('a Go that does not know the settings of this host is a warning', async () => {
  const { tools } = gettingGo();
  const use = "- { uses: actions/setup-go@v5, with: { go-version: '1.13' } }";
  const job = await runJob(use, { tools, environment: { GOFLAGS: '-modcacherw' } });
  expect(job.outcome.conclusion).toBe('success');
  expect(job.annotations.map(({ message }) => message)).toEqual([
    'Go 1.13.15 does not run with the settings of this host (GOFLAGS, go env -w), which steps have: exit code 1: unknown flag -modcacherw',
  ]);
});

describe('setup-go', () => {
  const home = (): string =>
    homeWith({
      'sdk/go1.20.3/bin/go': 'go version go1.20.3 linux/amd64',
      'sdk/go1.20.14/bin/go': 'go version go1.20.14 linux/amd64',
      '.goenv/versions/1.19/bin/go': 'go version go1.19 linux/amd64',
    });

  inShort(test)('by input and by files, each step its own', async () => {
    const asked = [
      ["go-version: '1.20'", '1.20.14'],
      ["go-version: '1.20.3'", '1.20.3'],
      ["go-version: '1.19.0'", '1.19.0'],
      ["go-version: '<1.20'", '1.19.0'],
      ['go-version-file: go.mod', '1.20.14'],
      ['go-version-file: .go-version', '1.20.3'],
    ] as const;
    const files = {
      'go.mod': 'module a/b\n\ngo 1.20\n',
      '.go-version': '1.20.3\n',
    };
    const steps = asked.map(
      ([input], n) => `
      - { id: go${n}, uses: actions/setup-go@v5, with: { ${input} } }
      - run: echo "${n} is $(go version), \${{ steps.go${n}.outputs.go-version }}"`,
    );
    const job = await runJob(steps.join(''), { tools: registryIn(home()), files });
    for (const [n, [, expected]] of asked.entries()) {
      const name = expected.replace(/\.0$/, '');
      expect(job.text).toContain(`${n} is go version go${name} linux/amd64, ${expected}`);
    }
    expect(job.outcome.conclusion).toBe('success');
  });

  inShort(test)(
    'the toolchain of a go.mod counts from version 6 on, and no other is got silently',
    async () => {
      const files = { 'go.mod': 'module a\ngo 1.19\ntoolchain go1.20.3\n' };
      const text = (version: number): string => `
      - { uses: actions/setup-go@v${version}, with: { go-version-file: go.mod } }
      - run: echo "it is $(go version) [$GOTOOLCHAIN]"`;
      const tools = registryIn(home());
      const old = await runJob(text(5), { tools, files });
      expect(old.text).toContain('it is go version go1.19 linux/amd64 []');
      const young = await runJob(text(6), { tools, files });
      expect(young.text).toContain('it is go version go1.20.3 linux/amd64 [local]');
    },
  );

  inShort(test)('what is not here fails', async () => {
    const job = await runJob('- { uses: actions/setup-go@v5, with: { go-version: 1.3 } }', {
      tools: registryIn(home()),
    });
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.text).toMatch(/Go '1\.3' is not to be had\. Here: .*1\.20\.14, 1\.20\.3/);
  });

  inLong(test).skipIf(GO === undefined)('Go of this machine builds', async () => {
    const tools = registryIn(temporaryHome(), { PATH: `${dirname(GO ?? '')}:/usr/bin:/bin` });
    const files = { 'main.go': 'package main\nfunc main() { println("built") }\n' };
    const job = await runJob(
      `
      - { uses: actions/setup-go@v5, with: { go-version: '>=1.20' } }
      - { run: go run main.go, env: { GOFLAGS: '', GO111MODULE: 'off' } }`,
      { tools, files },
    );
    expect(job.text).toContain('built');
  });
});

describe.skipIf(PYTHON === undefined)('setup-python', () => {
  const version = PYTHON?.version ?? '';
  const minor = version.split('.').slice(0, 2).join('.');
  const tools = (): ToolRegistry => machineRegistry(temporaryDir());
  const setup = `
      - { id: py, uses: actions/setup-python@v5, with: { python-version: '${minor}' } }`;

  test('a Python of the machine, which the job may change for itself alone', async () => {
    const registry = tools();
    const files = {
      'own/own_thing.py': 'print("own thing")\n',
    };
    const text = `${setup}
      - run: |
          python --version; pip --version
          python -c 'import own_thing' || echo not there
          dir=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
          cp own/own_thing.py "$dir"
          python -c 'import own_thing'
          echo "[$pythonLocation] \${{ steps.py.outputs.python-version }}"`;
    // Each job copies a whole Python.
    for (const _ of byLength([1], [1, 2])) {
      const job = await runJob(text, { tools: registry, files });
      expect(job.outcome.conclusion).toBe('success');
      expect(job.text).toContain(`Python ${version}`);
      expect(job.text).toContain('not there');
      expect(job.text).toContain('own thing');
      expect(job.text).toContain(`] ${version}`);
      // pip is the one of the job's Python, not of that it came from.
      const location = /\[(\S+)\] /.exec(job.text)?.[1] ?? '?';
      expect(job.text).toMatch(new RegExp(`pip \\S+ from ${location}/lib`));
      // It goes with all that is the job's.
      expect(location.startsWith(`${job.jobDir}/`)).toBe(true);
    }
  }, 120_000);

  inLong(test)('several, a file, a range of PEP 440', async () => {
    const registry = tools();
    const files = {
      'pyproject.toml': `[project]\nname = "x"\nrequires-python = ">=3.6,<${Number(version.split('.')[0]) + 1}"\n`,
      '.python-version': `${version}\n`,
    };
    for (const input of ['python-version-file: pyproject.toml', 'check-latest: false']) {
      const job = await runJob(
        `
      - { uses: actions/setup-python@v5, with: { ${input} } }
      - run: python --version`,
        { tools: registry, files },
      );
      expect(job.text).toMatch(/^Python 3\./m);
    }
  });

  inShort(test)('what is not here fails', async () => {
    const registry = tools();
    const bad = await runJob(
      `
      - { uses: actions/setup-python@v5, with: { python-version: '3.2' }, continue-on-error: true }
      - { uses: actions/setup-python@v5, with: { python-version: pypy3.10 }, continue-on-error: true }`,
      { tools: registry },
    );
    expect(bad.steps.map(({ outcome }) => outcome)).toEqual(['failure', 'failure']);
    expect(bad.text).toContain("Python '3.2' is not to be had. Here: ");
    expect(bad.text).toContain(version);
  });
});

inShort(describe)('setup-uv', () => {
  const home = (): string =>
    homeWith({ 'bin/uv': 'uv 0.4.2 (abc 2026-01-01)', 'bin/uvx': 'uvx 0.4.2' });

  test('by input, by required-version, else what is here', async () => {
    for (const [input, file] of [
      ["version: '0.4.x'", ''],
      ['enable-cache: true', 'required-version = ">=0.4,<0.5"\n'],
      ['enable-cache: false', ''],
    ]) {
      const job = await runJob(
        `
      - { id: uv, uses: astral-sh/setup-uv@v6, with: { ${input}, python-version: '3.12' } }
      - run: echo "it is $(uv --version), $UV_PYTHON, \${{ steps.uv.outputs.uv-version }}"`,
        { tools: registryIn(home()), files: file === '' ? {} : { 'uv.toml': file ?? '' } },
      );
      expect(job.text).toContain('it is uv 0.4.2 (abc 2026-01-01), 3.12, 0.4.2');
    }
    const bad = await runJob("- { uses: astral-sh/setup-uv@v6, with: { version: '0.9.1' } }", {
      tools: registryIn(home()),
    });
    expect(bad.text).toContain("uv '0.9.1' is not to be had. Here: 0.4.2");
  });
});

inShort(describe)('pnpm/action-setup', () => {
  const PNPM: FakePackage = {
    name: 'pnpm',
    version: '9.1.0',
    files: { 'bin/pnpm.cjs': '#!/bin/sh\necho "pnpm $0 $*"\n', 'bin/pnpx.cjs': '#!/bin/sh\n' },
  };

  test('by input or packageManager, whose checksum counts, and it installs', async () => {
    const registry = await startFakeRegistry([PNPM]);
    const home = temporaryDir();
    mkdirSync(join(home, 'bin'));
    writeNpm(join(home, 'bin'), 'quick');
    const tools = registryIn(home, { npm_config_registry: registry.url });
    const plain = await runJob(
      `
      - { id: pnpm, uses: pnpm/action-setup@v4, with: { version: 9, run_install: '[{args: [--frozen-lockfile]}]' } }
      - run: pnpm run x && test "$PNPM_HOME" = "\${{ steps.pnpm.outputs.bin_dest }}"`,
      { tools },
    );
    expect(plain.text).toMatch(/^pnpm \S+ install --frozen-lockfile$/m);
    expect(plain.text).toMatch(/^pnpm \S+ run x$/m);
    expect(plain.outcome.conclusion).toBe('success');
    const right = createHash('sha512').update(fakePackageBytes(registry, PNPM)).digest('hex');
    for (const [digest, conclusion] of [
      [right, 'success'],
      ['0'.repeat(128), 'failure'],
    ] as const) {
      const files = { 'package.json': `{"packageManager":"pnpm@9.1.0+sha512.${digest}"}` };
      const job = await runJob('- uses: pnpm/action-setup@v4', { tools, files });
      expect(job.outcome.conclusion).toBe(conclusion);
      if (conclusion === 'failure') expect(job.text).toContain('checksum');
    }
    const both = await runJob("- { uses: pnpm/action-setup@v4, with: { version: '8' } }", {
      tools,
      files: { 'package.json': '{"packageManager":"pnpm@9.1.0"}' },
    });
    expect(both.text).toContain('Multiple versions of pnpm specified');
  });
});
