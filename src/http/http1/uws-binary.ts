import { checksumOfFile } from '../../shared/checksum-of-file.ts';
import type { RawResponse } from '../exchange/raw-message.ts';
import { HEADER_BYTES_MAX } from '../http-limits.ts';

/** A request of uWebSockets.js; usable until its handler returns. */
export type UwsRawRequest = {
  forEach(onHeader: (name: string, value: string) => void): void;
  getUrl(): string;
  getCaseSensitiveMethod(): string;
  getQuery(): string | undefined;
};

/** An answer of uWebSockets.js; usable until it is given whole, or aborted. */
export type UwsRawResponse = Omit<RawResponse, 'onData' | 'getRemoteAddress'> & {
  /** A chunk is detached on return. */
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  /** Four bytes of IPv4, or sixteen of IPv6. */
  getRemoteAddress(): ArrayBuffer;
};

type AddRoute = (
  pattern: string,
  handler: (res: UwsRawResponse, req: UwsRawRequest) => void,
) => unknown;

/** The part of an app of uWebSockets.js that the listener uses. Only some builds have the setters, whose unit is seconds. */
export type UwsApp = {
  /** Takes requests that no other route takes. */
  readonly any: AddRoute;
  readonly get: AddRoute;
  readonly post: AddRoute;
  readonly put: AddRoute;
  readonly patch: AddRoute;
  readonly del: AddRoute;
  filter(handler: (res: UwsRawResponse, change: number) => void): unknown;
  adoptSocket(fd: number): unknown;
  close(): unknown;
  setIdleTimeout?(seconds: number): unknown;
  setResponseTimeout?(seconds: number): unknown;
};

/** Makes an app: a set of routes and connections. */
export type UwsModule = { App(): UwsApp };

/** The key by which uWebSockets.js leaves its own name out of answers. */
const SILENT = '999999990007';

type Loading = { readonly module: UwsModule | null; readonly reason: string };

/** Results of loading, by build. */
const loadings = new Map<string, Promise<Loading>>();

/**
 * Loads uWebSockets.js once a process: the package for `uws`, a build in a file for `sha256:CHECKSUM:/PATH`. Returns null
 * where there is no binary for this platform and version of Node.js, one with another checksum, or one that cannot adopt
 * sockets. `why` gets the reason each time.
 */
export async function loadUws(
  build: 'uws' | `sha256:${string}`,
  why: (reason: string) => void,
): Promise<UwsModule | null> {
  let loading = loadings.get(build);
  if (loading === undefined) {
    loading = load(build).catch((error: unknown) => ({ module: null, reason: causeOf(error) }));
    loadings.set(build, loading);
  }
  const { module, reason } = await loading;
  if (module === null) {
    const { platform, arch, version, versions } = process;
    const here = `${platform} ${arch}, Node.js ${version} (ABI ${versions.modules})`;
    why(`uWebSockets.js does not load on ${here}: ${reason}`);
  }
  return module;
}

/** The line of an error that says what is missing. */
function causeOf(error: unknown): string {
  const text = String(error);
  const [, cause] = /^(?:Error: )?((?:Cannot find module|.*GLIBC|.*\.node).*)$/m.exec(text) ?? [];
  return cause ?? text.split('\n', 1).join('');
}

/** Whether uWebSockets.js is installed, with a binary for this platform or without. A package may leave it out. */
export function isUwsInstalled(): boolean {
  try {
    import.meta.resolve('uWebSockets.js');
    return true;
  } catch {
    // It throws only for a package that does not exist.
    return false;
  }
}

async function load(build: string): Promise<Loading> {
  // Read once, when the binary is loaded; its own default is 4,096 bytes.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(HEADER_BYTES_MAX);
  const module = build === 'uws' ? await installed() : inFile(build);
  module._cfg(SILENT);
  if (typeof module.App().adoptSocket === 'function') return { module, reason: '' };
  return { module: null, reason: 'this build cannot adopt sockets' };
}

async function installed(): Promise<Loaded> {
  const loaded = (await import('uWebSockets.js')) as unknown as {
    default?: Loaded;
  } & Partial<Loaded>;
  // An archive of upstream is a CommonJS module, the repack an ES module.
  return (loaded.App === undefined ? loaded.default : loaded) as Loaded;
}

/**
 * Loads a binary as `require` does a file whose name ends in .node. Throws for another checksum: the file may have changed
 * since the setting was checked.
 */
function inFile(build: string): Loaded {
  const [, checksum = '', path = ''] = /^sha256:([^:]*):(.*)$/s.exec(build) ?? [];
  const actual = checksumOfFile(path);
  if (actual !== checksum) throw new Error(`${path} has SHA-256 ${actual} now`);
  const module = { exports: {} as Loaded };
  process.dlopen(module, path);
  return module.exports;
}

type Loaded = UwsModule & { _cfg(key: string): void };
