// Loads an HTTP server at a stated rate; yields nothing by itself.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cpuSeconds, type HttpLoad } from './http-rate.ts';

/** A load with so many requests a second, whatever the answers take. */
export type PacedLoad = HttpLoad & { readonly perSecond: number };

/** Latencies in ms from the moment at which a request was due, and CPU of the server in µs a request (NaN where /proc is missing). */
export type PacedRate = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUs: number;
};

/**
 * Sends requests at their moments (an even schedule) on whichever connection is free, from a process of its own, which polls
 * and so takes a core. One that finds none free waits, and its wait counts. Errors: throws when an answer is not 200.
 */
export async function measurePaced(load: PacedLoad): Promise<PacedRate> {
  const script = fileURLToPath(new URL('http-paced-generator.ts', import.meta.url));
  const before = cpuSeconds(load.pid);
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(load)], {
    maxBuffer: 1024 * 1024,
  });
  const told = JSON.parse(stdout) as Omit<PacedRate, 'cpuUs'> & { readonly count: number };
  const { count, ...rate } = told;
  return { ...rate, cpuUs: ((cpuSeconds(load.pid) - before) * 1e6) / count };
}
