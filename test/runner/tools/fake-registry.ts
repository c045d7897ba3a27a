import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** How a tarball is served. */
export type Fault = 'none' | 'other bytes' | 'half' | 'missing' | 'held';

export type FakePackage = {
  readonly name: string;
  readonly version: string;
  readonly files: Readonly<Record<string, string>>;
  readonly engines?: string;
};

/** A registry of npm with a few packages, over HTTP. */
export type FakeRegistry = {
  readonly url: string;
  /** Tarballs that were asked for, by file name. */
  readonly downloads: string[];
  /** `held`: not before `release`. */
  fault: Fault;
  release: () => void;
  readonly tarballs: ReadonlyMap<string, Buffer>;
};

export function fakePackageBytes(
  { tarballs }: FakeRegistry,
  { name, version }: FakePackage,
): Buffer {
  return tarballs.get(`${name}-${version}.tgz`) ?? Buffer.alloc(0);
}

/** Serves `packages` until the test is over. */
export async function startFakeRegistry(packages: readonly FakePackage[]): Promise<FakeRegistry> {
  const tarballs = new Map(packages.map((one) => [`${one.name}-${one.version}.tgz`, packed(one)]));
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const downloads: string[] = [];
  const registry = { url: '', downloads, fault: 'none' as Fault, release, tarballs };
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const file = /\/-\/(.+)$/.exec(path)?.[1];
    if (file !== undefined) {
      registry.downloads.push(file);
      const bytes = tarballs.get(file);
      if (bytes === undefined || registry.fault === 'missing') response.writeHead(404).end();
      else if (registry.fault === 'held') void released.then(() => response.end(bytes));
      else if (registry.fault === 'other bytes')
        response.end(Buffer.concat([bytes, Buffer.from('x')]));
      else if (registry.fault === 'half') {
        response.writeHead(200, { 'Content-Length': bytes.length });
        response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
      } else response.end(bytes);
      return;
    }
    const versions = packages.filter(({ name }) => name === path);
    if (versions.length === 0) {
      response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(documentOf(path, versions, tarballs, registry.url)));
  });
  await listening(server);
  registry.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return registry;
}

/** A Node that is a script: it prints its version, and runs nothing. */
export function fakeNode(version: string): FakePackage {
  const name = `node-linux-${process.arch}`;
  return { name, version, files: { 'bin/node': `#!/bin/sh\necho v${version}\n` } };
}

/** An npm that says which one it is. */
export function fakeNpm(version: string, engines = '*'): FakePackage {
  const bin = JSON.stringify({ npm: 'bin/npm-cli.js' });
  return {
    name: 'npm',
    version,
    engines,
    files: { 'bin/npm-cli.js': `#!/bin/sh\necho npm ${version}\n`, '.bin': bin },
  };
}

function packed({ name, version, files, engines }: FakePackage): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'fake-package-'));
  try {
    const { '.bin': bin, ...rest } = files;
    const json = {
      name,
      version,
      engines: { node: engines ?? '*' },
      ...(bin === undefined ? {} : { bin: JSON.parse(bin) as unknown }),
    };
    const all = { ...rest, 'package.json': JSON.stringify(json) };
    for (const [path, text] of Object.entries(all)) {
      const file = join(dir, 'package', path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text, { mode: path.startsWith('bin/') ? 0o755 : 0o644 });
    }
    // Some bytes to cut in the middle.
    writeFileSync(
      join(dir, 'package/padding'),
      createHash('sha512').update(name).digest('hex').repeat(2_000),
    );
    execFileSync('tar', ['-czf', 'package.tgz', 'package'], { cwd: dir });
    return readFileSync(join(dir, 'package.tgz'));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function documentOf(
  name: string,
  versions: readonly FakePackage[],
  tarballs: ReadonlyMap<string, Buffer>,
  url: string,
): unknown {
  const entries = versions.map(({ version, engines }) => {
    const file = `${name}-${version}.tgz`;
    const digest = createHash('sha512')
      .update(tarballs.get(file) ?? '')
      .digest('base64');
    const dist = { tarball: `${url}${name}/-/${file}`, integrity: `sha512-${digest}` };
    return [version, { name, version, engines: { node: engines ?? '*' }, dist }] as const;
  });
  const latest = versions.at(-1)?.version;
  return { name, 'dist-tags': { latest }, versions: Object.fromEntries(entries) };
}

async function listening(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await promise;
}
