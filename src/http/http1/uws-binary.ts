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
  /** Four bytes, or sixteen. */
  getRemoteAddress(): ArrayBuffer;
};

type AddRoute = (
  pattern: string,
  handler: (res: UwsRawResponse, req: UwsRawRequest) => void,
) => unknown;

/** An app of uWebSockets.js, as far as the listener uses it. The setters are there in some builds only, and take seconds. */
export type UwsApp = {
  /** Takes what no other route takes. */
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

let loading: Promise<Loading> | undefined;

/**
 * Loads uWebSockets.js once a process. Null where it has no binary for this platform and version of Node.js, or one that cannot adopt sockets; `why`
 * is notified of the reason each time.
 */
export async function loadUws(why: (reason: string) => void): Promise<UwsModule | null> {
  loading ??= load().catch((error: unknown) => {
    const [, cause] =
      /^(?:Error: )?((?:Cannot find module|.*GLIBC|.*\.node).*)$/m.exec(String(error)) ?? [];
    return { module: null, reason: cause ?? String(error).split('\n', 1).join('') };
  });
  const { module, reason } = await loading;
  if (module === null) {
    const { platform, arch, version } = process;
    why(`uWebSockets.js does not load on ${platform} ${arch}, Node.js ${version}: ${reason}`);
  }
  return module;
}

/** Whether uWebSockets.js is installed, with a binary for this platform or without. A package may leave it out. */
export function isUwsInstalled(): boolean {
  try {
    import.meta.resolve('uWebSockets.js');
    return true;
  } catch {
    // It throws for a package that there is not, and for nothing else here.
    return false;
  }
}

async function load(): Promise<Loading> {
  // Read once, when the binary is loaded; its own default is 4,096 bytes.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(HEADER_BYTES_MAX);
  const loaded = (await import('uWebSockets.js')) as unknown as {
    default?: Loaded;
  } & Partial<Loaded>;
  // An archive of upstream is a CommonJS module, the repack an ES module.
  const module = (loaded.App === undefined ? loaded.default : loaded) as Loaded;
  module._cfg(SILENT);
  if (typeof module.App().adoptSocket === 'function') return { module, reason: '' };
  return { module: null, reason: 'this build cannot adopt sockets' };
}

type Loaded = UwsModule & { _cfg(key: string): void };
