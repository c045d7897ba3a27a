/*
 * Options that several services share. The accepted values are defined once; each service adds its
 * name and the meaning of the setting there.
 */
import {
  booleanOption,
  choiceOption,
  integerOption,
  listOption,
  type Option,
  optionalIntegerOption,
  type Resolved,
  textOption,
} from './option.ts';

const PORT_RANGE = { min: 0, max: 65_535 };
/** Pattern of the path of a file or folder. */
export const PATH = { pattern: /^[^\0]+$/, rule: 'a path' };
/** Pattern of text that goes unchanged into a header or a label of a metric. */
export const PRINTABLE = { pattern: /^[\x21-\x7e]+$/, rule: 'printable ASCII without spaces' };
/** Pattern of an address to listen on. */
export const ADDRESS = { pattern: /^[A-Za-z0-9.:_-]{1,255}$/, rule: 'an IP address or host name' };

/** A port to listen on; 0 takes a free one. */
export function portOption(env: string, description: string, fallback: number): Option<number> {
  return integerOption({ env, description, fallback, ...PORT_RANGE });
}

/** Time after which an idle connection of HTTP/1.1 is closed, in ms. */
export function http1IdleOption(env: string): Option<number> {
  return integerOption({
    env,
    description:
      'How long a connection of HTTP/1.1 may be idle before it is closed. It counts for connections that node:http reads, and, up to 900 s, for a build of uWebSockets.js that can set it. The packaged build closes them after 8 to 12 s, whatever is set. Answers state the time in `Keep-Alive`. Pools of clients need a shorter one: see docs/operations.md, Idle connections.',
    fallback: 120_000,
    min: 1_000,
    max: 3_600_000,
    unit: 'ms',
  });
}

/** A port like `portOption`; without a value there is no such listener. */
export function optionalPortOption(env: string, description: string): Option<number | undefined> {
  return optionalIntegerOption({ env, description, ...PORT_RANGE });
}

/**
 * Address that listeners bind to. Defaults to this machine alone, whatever credentials are
 * configured.
 */
export function hostOption(env: string, listeners: string): Option<string> {
  return textOption<string>({
    env,
    description: `Address that ${listeners} bind to. Until you set it only this machine can connect, even with credentials configured. \`0.0.0.0\` is every address of IPv4.`,
    fallback: '127.0.0.1',
    fallbackText: '127.0.0.1',
    ...ADDRESS,
  });
}

/**
 * States that other machines reach a listener only by TLS or a private network. `hostEnv` is the
 * setting of its address.
 */
export function behindProxyOption(env: string, hostEnv: string): Option<boolean> {
  return booleanOption({
    env,
    description: `States that requests of other machines come through a proxy that ends TLS, or over a private network. Without it a start with a public ${hostEnv} logs a warning (\`listens_without_tls\`). It changes nothing else.`,
    fallback: false,
  });
}

/** Host names that requests may be addressed to, each with or without a port. */
export function allowedHostsOption(env: string, description: string): Option<readonly string[]> {
  return listOption({
    env,
    description,
    fallback: [],
    pattern: /^([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/,
    rule: 'a host name, with or without a port',
  });
}

/** DATABASE_URL: services may share one database. Unset: an embedded server. Secret. */
export function databaseUrlOption(description: string): Option<string | undefined> {
  return textOption<undefined>({
    env: 'DATABASE_URL',
    description,
    fallback: undefined,
    fallbackText: 'unset',
    // The driver takes no list of hosts.
    pattern: /^postgres(ql)?:\/\/([^\s/]*@)?[^\s,/@]*([/?]\S*)?$/,
    rule: 'a postgres:// or postgresql:// URL of one server',
    secret: true,
  });
}

/** A directory. `fallbackText` is for a default that is better described than shown. */
export function directoryOption(
  env: string,
  description: string,
  fallback: string,
  fallbackText: string = fallback,
): Option<string> {
  return textOption<string>({ env, description, fallback, fallbackText, ...PATH });
}

/** Lowest level of the log lines that are written. */
export function logLevelOption(env: string): Option<'debug' | 'info' | 'warn' | 'error'> {
  return choiceOption({
    env,
    description: 'Least severe log lines that are written. Audit records are written at any level.',
    fallback: 'info',
    values: ['debug', 'info', 'warn', 'error'],
  });
}

/** The commit of the build; `use` names where it appears. */
export function commitOption(env: string, use: string): Option<string> {
  return textOption<string>({
    env,
    description: `Commit of the build, for ${use}.`,
    fallback: 'unknown',
    fallbackText: 'unknown',
    ...PRINTABLE,
  });
}

const MIB = 1024 * 1024;
/** Divisor of the memory of the machine or container. */
const BODY_MEMORY_PART = 8;
const BODY_MEMORY_DERIVED = { min: 64 * MIB, max: 256 * MIB };
/**
 * Number of bodies of the largest size that fit into the memory for bodies; two of them fit into
 * the share of a caller.
 */
export const BODIES_HELD_MIN = 4;

/**
 * Memory of all request bodies of a process. `bodyBytesOf` returns the size of the largest body,
 * from the options above.
 */
export function bodyMemoryOption(
  env: string,
  bodyBytesOf: (resolved: Resolved) => number,
): Option<number> {
  const { min, max } = BODY_MEMORY_DERIVED;
  const plain = integerOption({
    env,
    description:
      'Memory of all request bodies, from their first byte to the end of their calls. One caller may take half of it. Beyond it unfinished bodies that were silent for a second are dropped; then requests are refused (`BODY_MEMORY_EXHAUSTED`).',
    fallback: 0,
    min: 8 * MIB,
    max: 1024 * 1024 * MIB,
    unit: 'bytes',
  });
  return {
    ...plain,
    fallback: ({ memoryBytes }, resolved) => {
      const part = Math.floor(memoryBytes / BODY_MEMORY_PART);
      const derived = Math.min(max, Math.max(min, part));
      return Math.max(derived, BODIES_HELD_MIN * bodyBytesOf(resolved));
    },
    fallbackText: `an eighth of the memory, from 64 to 256 MiB, and at least ${BODIES_HELD_MIN} bodies of the largest size`,
  };
}
