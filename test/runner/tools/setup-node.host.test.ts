/** The setup actions through the real executor; the registry is one of this machine. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ToolRegistry } from '../../../src/runner/host/tools/tool-registry.ts';
import { runJob, temporaryDir } from '../../support/job-harness.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { type FakeRegistry, fakeNode, fakeNpm, startFakeRegistry } from './fake-registry.ts';
import { type NpmKind, writeNpm } from './quick-npm.ts';

/** A real one takes a second of CPU for each of its answers, of which an installation needs up to six. */
const NPM = byLength<NpmKind>('quick', 'real');

type Machine = {
  readonly home: string;
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
};

/** A home with Nodes of nvm, each a script that prints its version, and npm on the PATH. */
function machineWith(
  nodes: readonly string[],
  registry?: FakeRegistry,
  kind: NpmKind = NPM,
): Machine {
  const home = temporaryDir();
  for (const version of nodes) {
    const bin = join(home, `.nvm/versions/node/v${version}/bin`);
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'node'), `#!/bin/sh\necho v${version}\n`, { mode: 0o755 });
    const npm = join(home, `.nvm/versions/node/v${version}/lib/node_modules/npm`);
    mkdirSync(npm, { recursive: true });
    writeFileSync(
      join(npm, 'package.json'),
      '{"name":"npm","version":"9.9.9","bin":{"npm":"cli.js"}}',
    );
    writeFileSync(join(npm, 'cli.js'), '#!/bin/sh\necho own npm\n', { mode: 0o755 });
  }
  const bin = join(home, 'bin');
  mkdirSync(bin);
  writeNpm(bin, kind);
  const environment = {
    HOME: home,
    PATH: `${bin}:/usr/bin:/bin`,
    npm_config_registry: registry?.url ?? 'http://127.0.0.1:9/',
  };
  return { home, root: join(home, 'tools'), environment };
}

function registryOf({ environment, root }: Machine, mayInstall = true): ToolRegistry {
  return new ToolRegistry({ environment, root, mayInstall });
}

/** No line that a machine has: these are in no distribution. */
function setup(version: string, id = 'it'): string {
  return `
      - uses: actions/setup-node@v4
        id: ${id}
        with: { node-version: '${version}' }
      - run: echo "${id} is $(node --version), output \${{ steps.${id}.outputs.node-version }}"\n`;
}

inShort(describe)('what is on the machine', () => {
  test('of each spelling, one step after the other', async () => {
    const asked = [
      ['18', 'v18.20.1'],
      ['v16.1.0', 'v16.1.0'],
      ['>=16 <18', 'v16.20.2'],
      ['lts/hydrogen', 'v18.20.1'],
      ['16.1.x', 'v16.1.0'],
    ] as const;
    const machine = machineWith(['16.1.0', '16.20.2', '18.20.1']);
    const steps = asked.map(([version], n) => setup(version, `node${n}`));
    const job = await runJob(steps.join(''), { tools: registryOf(machine, false) });
    for (const [n, [, expected]] of asked.entries()) {
      expect(job.text).toContain(`node${n} is ${expected}, output ${expected}`);
    }
    expect(job.outcome.conclusion).toBe('success');
  });

  test('a version of a file, and of each leg of a matrix', async () => {
    const tools = registryOf(machineWith(['16.1.0', '18.20.1']), false);
    const files = {
      '.nvmrc': 'lts/hydrogen\n',
      'a/package.json': '{"engines":{"node":">=16 <17"}}',
      '.tool-versions': 'ruby 3\nnodejs 16.1.0\n',
    };
    const asked = [
      ['.nvmrc', 'v18.20.1'],
      ['a/package.json', 'v16.1.0'],
      ['.tool-versions', 'v16.1.0'],
    ] as const;
    const steps = asked.map(
      ([file]) => `
      - uses: actions/setup-node@v4
        with: { node-version-file: ${file} }
      - run: echo "${file} is $(node --version)"`,
    );
    const job = await runJob(steps.join(''), { tools, files });
    for (const [file, expected] of asked) expect(job.text).toContain(`${file} is ${expected}`);
  });

  test('what cannot be had fails, and says what was asked for and what is here', async () => {
    const tools = registryOf(machineWith(['16.1.0', '18.20.1']), false);
    const job = await runJob(setup('19'), { tools });
    expect(job.outcome.conclusion).toBe('failure');
    expect(job.text).toContain("Node '19' is not to be had");
    expect(job.text).toMatch(/Here: .*18\.20\.1, 16\.1\.0/);
    expect(job.text).not.toContain('it is');
    const file = await runJob(
      '- { uses: actions/setup-node@v4, with: { node-version-file: no } }',
      {
        tools,
      },
    );
    expect(file.text).toContain("there is no file 'no'");
  });

  test('a folder that is not what it is named is not taken for it', async () => {
    const machine = machineWith(['18.20.1']);
    const bin = join(machine.home, '.nvm/versions/node/v19.0.0/bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'node'), '#!/bin/sh\necho v18.0.0\n', { mode: 0o755 });
    const job = await runJob(setup('19'), { tools: registryOf(machine, false) });
    expect(job.outcome.conclusion).toBe('failure');
  });

  test('what a job installs into its Node no other job sees, nor does it stay', async () => {
    const machine = machineWith(['18.20.1']);
    const tools = registryOf(machine, false);
    const text = `
      - { uses: actions/setup-node@v4, with: { node-version: 18 } }
      - run: |
          dir=$(dirname "$(command -v node)")
          ls "$dir" && npm
          if [ -e "$dir/extra" ]; then echo it was there; fi
          echo > "$dir/extra"`;
    for (const _ of [1, 2]) {
      const job = await runJob(text, { tools });
      expect(job.outcome.conclusion).toBe('success');
      expect(job.text).toContain('own npm');
      expect(job.text).not.toContain('it was there');
    }
    expect(readdirSync(join(machine.home, '.nvm/versions/node/v18.20.1/bin'))).toEqual(['node']);
    expect(existsSync(join(machine.root, 'node'))).toBe(false);
  });
});

describe('what is installed', () => {
  const PACKAGES = [
    fakeNode('19.1.0'),
    fakeNode('19.9.0'),
    fakeNode('31.0.0'),
    fakeNpm('10.1.0'),
    fakeNpm('10.2.0', '>=19.5'),
    fakeNpm('11.0.0'),
  ];

  test('the newest that was asked for, with the npm of its line, once', async () => {
    const registry = await startFakeRegistry(PACKAGES);
    const machine = machineWith(['18.20.1'], registry);
    const tools = registryOf(machine);
    for (const _ of [1, 2]) {
      const job = await runJob(`${setup('19')}      - run: npm`, { tools });
      expect(job.text).toContain('it is v19.9.0, output v19.9.0');
      expect(job.text).toContain('npm 10.2.0');
      expect(job.outcome.conclusion).toBe('success');
    }
    // An npm that needs a newer Node is not the one for an old one.
    const old = await runJob(`${setup('19.1.0')}      - run: npm`, { tools });
    expect(old.text).toContain('npm 10.1.0');
    expect(registry.downloads.toSorted()).toEqual(
      [
        `node-linux-${process.arch}-19.1.0.tgz`,
        `node-linux-${process.arch}-19.9.0.tgz`,
        'npm-10.1.0.tgz',
        'npm-10.2.0.tgz',
      ].toSorted(),
    );
    // What is here goes first, unless the newest is asked for.
    expect((await runJob(setup('>=18 <20'), { tools })).text).toContain('it is v19.9.0');
    expect((await runJob(setup('latest'), { tools })).text).toContain('it is v31.0.0');
  });

  const faults = ['other bytes', 'half', 'missing'] as const;
  test.each(byLength(faults.slice(0, 1), faults.slice(1)))(
    '%s: it fails, and leaves nothing',
    async (fault) => {
      const registry = await startFakeRegistry(PACKAGES);
      const machine = machineWith(['18.20.1'], registry);
      const tools = registryOf(machine);
      registry.fault = fault;
      const job = await runJob(setup('19'), { tools });
      expect(job.outcome.conclusion).toBe('failure');
      expect(job.text).toContain("Node '19' is not to be had");
      expect(job.text).not.toContain('it is');
      expect(existsSync(join(machine.root, 'node/19.9.0'))).toBe(false);
      expect(readdirSync(join(machine.root, '.staging'))).toEqual([]);
      registry.fault = 'none';
      expect((await runJob(setup('19'), { tools })).text).toContain('it is v19.9.0');
    },
  );

  test('of two jobs, and two runners, at the same time one installs it', async () => {
    const registry = await startFakeRegistry(PACKAGES);
    const machine = machineWith(['18.20.1'], registry);
    const shelves = [registryOf(machine), registryOf(machine)];
    const jobs = await Promise.all(
      [...shelves, ...shelves].map((tools) => runJob(setup('19'), { tools })),
    );
    for (const job of jobs) expect(job.text).toContain('it is v19.9.0');
    expect(registry.downloads.filter((file) => file.includes('node'))).toHaveLength(1);
    expect(readdirSync(join(machine.root, '.staging'))).toEqual([]);
  });

  inLong(test)('a workflow cannot say where it comes from', async () => {
    const registry = await startFakeRegistry(PACKAGES);
    const evil = await startFakeRegistry(PACKAGES);
    const machine = machineWith(['18.20.1'], registry, 'real');
    const files = { '.npmrc': `registry=${evil.url}\n` };
    const text = `
on: push
env: { npm_config_registry: '${evil.url}' }
jobs:
  a:
    runs-on: ubuntu-latest
    steps:${setup('19')}`;
    const job = await runJob(text, { tools: registryOf(machine), files });
    expect(job.text).toContain('it is v19.9.0');
    expect(evil.downloads).toEqual([]);
  });
});

test('JavaScript actions run on Node 24, which is installed for them', async () => {
  const registry = await startFakeRegistry([fakeNode('24.99.0')]);
  const tools = registryOf(machineWith([], registry));
  const action = (using: string): string => `name: x\nruns: { using: ${using}, main: main.js }\n`;
  const files = {
    'old/action.yml': action('node12'),
    'old/main.js': '',
    'far/action.yml': action('node99'),
    'far/main.js': '',
  };
  const job = await runJob(
    `
      - uses: ./old
      - uses: ./far`,
    { tools, files },
  );
  expect(job.steps.map(({ lines }) => lines.at(-1))).toEqual([
    'v24.99.0',
    // No other Node is taken for one that is not known.
    expect.stringContaining("./far/action.yml (line 2, column 16): Unexpected value 'node99'"),
  ]);
});

test('a workflow cannot say where that Node comes from', async () => {
  const registry = await startFakeRegistry([fakeNode('24.99.0')]);
  const evil = await startFakeRegistry([fakeNode('24.99.0')]);
  // The real one, as it is this that has files of settings.
  const machine = machineWith([], registry, 'real');
  const files = {
    '.npmrc': `registry=${evil.url}\n`,
    'own/action.yml': 'name: x\nruns: { using: node24, main: main.js }\n',
    'own/main.js': '',
  };
  const text = `
on: push
env: { npm_config_registry: '${evil.url}' }
jobs:
  a:
    runs-on: ubuntu-latest
    steps: [{ uses: ./own }]`;
  const job = await runJob(text, { tools: registryOf(machine), files });
  expect(job.steps[0]?.lines.at(-1)).toBe('v24.99.0');
  expect(evil.downloads).toEqual([]);
  expect(registry.downloads).toHaveLength(1);
});

test('a job that waits for that Node goes with its own cancel; the installation goes on', async () => {
  const registry = await startFakeRegistry([fakeNode('24.99.0')]);
  registry.fault = 'held';
  const tools = registryOf(machineWith([], registry));
  const [one, two] = [new AbortController(), new AbortController()];
  const first = tools.nodeForActions(20, one.signal);
  await expect.poll(() => registry.downloads.length, { timeout: 120_000 }).toBe(1);
  const second = tools.nodeForActions(24, two.signal);
  two.abort();
  await expect(second).rejects.toMatchObject({ reason: 'CANCELLED' });
  const third = tools.nodeForActions(24, new AbortController().signal);
  one.abort();
  await expect(first).rejects.toMatchObject({ reason: 'CANCELLED' });
  registry.release();
  expect((await third).version).toBe('24.99.0');
});

test('what takes its time is said in the log, to every job that waits for it', async () => {
  const registry = await startFakeRegistry([
    fakeNode('24.99.0'),
    fakeNode('18.1.0'),
    fakeNpm('8.0.0'),
  ]);
  registry.fault = 'held';
  const tools = registryOf(machineWith([], registry));
  const files = {
    'own/action.yml': 'name: o\nruns: { using: node20, main: m.js }\n',
    'own/m.js': '',
  };
  const jobs = [
    runJob('- uses: ./own', { tools, files }),
    runJob('- uses: ./own', { tools, files }),
  ];
  await expect.poll(() => registry.downloads.length, { timeout: 120_000 }).toBe(1);
  jobs.push(runJob('- uses: ./own', { tools, files }));
  registry.release();
  const lines = [
    "Node 'node20' is not here: asking what there is to install",
    'Installing Node 24.99.0',
    'Node 24.99.0 (installed now), for node20 of the action',
  ];
  const ended = await Promise.all(jobs);
  for (const job of ended.slice(0, 2)) expect(job.steps[0]?.lines.slice(0, 3)).toEqual(lines);
  expect(ended[2]?.outcome.conclusion).toBe('success');
  registry.fault = 'none';
  const later = await runJob('- uses: ./own', { tools, files });
  expect(later.text).not.toContain('Installing');
  const set = await runJob('- { uses: actions/setup-node@v4, with: { node-version: 18 } }', {
    tools,
  });
  expect(set.steps[0]?.lines.slice(0, 3)).toEqual([
    "Node '18' is not here: asking what there is to install",
    'Installing Node 18.1.0',
    'Installing npm 8.0.0 for Node 18.1.0',
  ]);
}, 120_000);

test('a Node of the host that does not run says why', async () => {
  const tools = registryOf(machineWith([], undefined));
  const broken = '#!/bin/sh\necho no such library >&2\nexit 127\n';
  const job = await runJob(
    `
      - { run: 'mkdir bin && cp broken bin/node && chmod +x bin/node && echo "$PWD/bin" >> "$GITHUB_PATH"' }
      - { uses: actions/setup-node@v4 }`,
    { tools, files: { broken } },
  );
  expect(job.steps[1]?.lines).toEqual([
    `##[error]The Node that steps find, ${job.projectDir}/bin/node, does not run: exit code 127: no such library`,
  ]);
});
