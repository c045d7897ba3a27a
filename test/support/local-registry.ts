import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

type LockEntry = {
  readonly name?: string;
  readonly version: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
};
/** A package in a version: its manifest, and its folder. */
type Version = { readonly manifest: Record<string, unknown>; readonly folder: string };

/** A registry of what is installed here, so that npm can install packages elsewhere without a network. */
export class LocalRegistry {
  readonly #server: Server;
  /** By name, then version. */
  readonly #packages = installedHere();

  private constructor() {
    this.#server = createServer((request, response) => {
      const path = decodeURIComponent(request.url ?? '').slice(1);
      const [name = '', version] = path.split('/-/');
      const versions = this.#packages.get(name);
      const one = versions?.get(version ?? '');
      if (one !== undefined) {
        // A plain tar is as good as one that is compressed, and takes no time.
        const words = ['-c', '--exclude=./node_modules', '--transform=s,^[.],package,', '.'];
        const tar = spawn('tar', words, { cwd: one.folder, stdio: ['ignore', 'pipe', 'inherit'] });
        tar.stdout.pipe(response);
      } else if (versions !== undefined && version === undefined) {
        response.end(JSON.stringify(this.#document(name, versions)));
      } else {
        response.writeHead(404).end('{}');
      }
    });
  }

  /** Listens on a port of its own; the caller closes it. */
  static async open(): Promise<LocalRegistry> {
    const registry = new LocalRegistry();
    await new Promise<void>((done) => registry.#server.listen(0, '127.0.0.1', done));
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #document(name: string, versions: ReadonlyMap<string, Version>): object {
    const shown = Array.from(versions, ([version, { manifest }]) => {
      const dist = { tarball: `${this.url}/${name}/-/${version}` };
      return [version, { ...manifest, name, version, dist }] as const;
    });
    const latest = shown.at(-1)?.[0];
    return { name, 'dist-tags': { latest }, versions: Object.fromEntries(shown) };
  }
}

/** Of packages for other platforms there is the lock file's entry alone, from which npm sees that they are not for this one. */
function installedHere(): Map<string, Map<string, Version>> {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockEntry>>;
  };
  const found = new Map<string, Map<string, Version>>();
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '') continue;
    const folder = join(ROOT, path);
    const file = join(folder, 'package.json');
    const manifest = existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as Version['manifest'])
      : { ...entry };
    const name = entry.name ?? path.replace(/^.*node_modules\//, '');
    const versions = found.get(name) ?? new Map<string, Version>();
    found.set(name, versions.set(entry.version, { manifest, folder }));
  }
  return found;
}
