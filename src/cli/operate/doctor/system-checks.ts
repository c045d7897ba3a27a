import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { Machine } from '../../../config/option.ts';
import type { Config } from '../../../config/options.ts';
import { loadUws } from '../../../http/http1/uws-binary.ts';
import { failure, fine, type Observation, warning } from './observation.ts';

const MIB = 1024 * 1024;
/** docs/operations.md, "Many connections at once". */
const OPEN_FILES_ENOUGH = 20_000;
/** A lower limit does not hold the service's own files, its database's sockets and some callers. */
const OPEN_FILES_MIN = 1_024;
/** docs/operations.md, "Sizing". */
const PROCESS_BYTES = 200 * MIB;
const WORKER_BYTES = 60 * MIB;
const QUOTA_FILE = '/sys/fs/cgroup/cpu.max';

/** Checks the limit of descriptors. Node.js raises the soft limit to the hard one as it starts. */
export async function checkOpenFiles(): Promise<readonly Observation[]> {
  let limits: string;
  try {
    limits = await readFile('/proc/self/limits', 'utf8');
  } catch {
    // Not Linux: `ulimit -n` of the shell shows the limit.
    return [fine('not known here; see ulimit -n')];
  }
  const text = /^Max open files\s+(\S+)/m.exec(limits)?.[1] ?? 'unlimited';
  const count = text === 'unlimited' ? Infinity : Number(text);
  const advice = `raise it (ulimit -n, LimitNOFILE of systemd) to ${OPEN_FILES_ENOUGH} for many connections`;
  if (count < OPEN_FILES_MIN) return [failure(`${text} at most`, advice)];
  return [count < OPEN_FILES_ENOUGH ? warning(`${text} at most`, advice) : fine(`${text} at most`)];
}

/** Reports the parser of HTTP/1.1, and the reason if it is not uWebSockets.js. */
export async function checkHttp1({ http1Parser }: Config): Promise<readonly Observation[]> {
  if (http1Parser === 'node') return [fine('node:http, as GATEWAY_HTTP1 says')];
  let problem = '';
  await loadUws(http1Parser, (reason) => (problem = reason));
  const isPackaged = http1Parser === 'uws';
  if (problem === '') return [fine(`uWebSockets.js${isPackaged ? '' : ` of ${http1Parser}`}`)];
  const { arch, platform, versions } = process;
  const advice = isPackaged
    ? 'run Node.js 22, or name a build in GATEWAY_HTTP1 (docs/dependencies.md, Other platforms)'
    : `bring one for ABI ${versions.modules} of ${platform} ${arch} and the libc here, or set GATEWAY_HTTP1=uws`;
  return [warning(`node:http: ${problem}`, advice)];
}

/**
 * Checks that indexes and the rest of the process fit into the memory of the machine or container.
 */
export function checkMemory(config: Config, machine: Machine): Promise<readonly Observation[]> {
  const { indexBytes, workers } = config;
  const needed = indexBytes + PROCESS_BYTES + workers * WORKER_BYTES;
  const isLimited = process.constrainedMemory() === machine.memoryBytes;
  const has = `${mib(machine.memoryBytes)} of this ${isLimited ? 'container' : 'machine'}`;
  const seen = `GATEWAY_INDEX_BYTES is ${mib(indexBytes)}, ${mib(needed)} with ${workers} workers, of ${has}`;
  const advice = 'lower GATEWAY_INDEX_BYTES or GATEWAY_WORKERS, or give it more memory';
  if (indexBytes >= machine.memoryBytes) return Promise.resolve([failure(seen, advice)]);
  return Promise.resolve([needed > machine.memoryBytes ? warning(seen, advice) : fine(seen)]);
}

function mib(bytes: number): string {
  return `${Math.trunc(bytes / MIB)} MiB`;
}

/**
 * Checks that the workers and the gateway's thread have processors, within the quota of the
 * container.
 */
export async function checkProcessors(
  { workers }: Config,
  machine: Machine,
): Promise<readonly Observation[]> {
  const quota = await quotaOf();
  const granted = Math.min(machine.cpuCount, quota ?? Infinity);
  const limit = quota === undefined ? '' : `, a quota of ${Number(quota.toFixed(2))}`;
  const seen = `${workers} workers and the gateway on ${cpus().length} processors${limit}`;
  // One worker is the minimum, even on one processor.
  if (workers + 1 <= Math.max(2, granted)) return [fine(seen)];
  return [
    warning(seen, `set GATEWAY_WORKERS to ${Math.max(1, Math.trunc(granted) - 1)}, or grant more`),
  ];
}

/** Processors that cgroup v2 grants; undefined if there is no limit, or no such file. */
async function quotaOf(): Promise<number | undefined> {
  try {
    const [quota = 'max', period = '1'] = (await readFile(QUOTA_FILE, 'utf8')).trim().split(' ');
    return quota === 'max' ? undefined : Number(quota) / Number(period);
  } catch {
    // Without cgroup v2 no limit is known.
    return undefined;
  }
}
