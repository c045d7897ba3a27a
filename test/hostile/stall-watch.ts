import { readFileSync } from 'node:fs';
import { get, Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { StallWatchOptions, StallWatchReport } from './toll.ts';

/*
 * Asks one health route again and again, on a thread of its own so that an attacker who is busy delays nothing. Reports how much
 * processor time the main thread of the service spent while one question waited for its answer: unlike the time on the wall that
 * does not grow when the machine is busy with others. Where there is no /proc it is the time on the wall.
 */

const PAUSE_MS = 5;
const { healthUrl, pid } = workerData as StallWatchOptions;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const longest = { cpuMs: 0, wallMs: 0 };
let peakBytes = 0;
let isOver = false;

parentPort?.once('message', () => {
  isOver = true;
});

function cpuMsOfMainThread(): number | null {
  try {
    const spentNs = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ', 1)[0];
    return Number(spentNs) / 1e6;
  } catch {
    return null;
  }
}

function residentBytes(): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;
  } catch {
    return 0;
  }
}

function ask(): Promise<void> {
  return new Promise((resolve) => {
    const request = get(healthUrl, { agent }, (response) => {
      response.resume();
      response.once('close', resolve);
    });
    request.once('error', () => resolve());
  });
}

async function watch(): Promise<void> {
  let rounds = 0;
  for (; !isOver; rounds++) {
    const wallBefore = performance.now();
    const cpuBefore = cpuMsOfMainThread();
    await ask();
    const wallMs = performance.now() - wallBefore;
    const cpuAfter = cpuMsOfMainThread();
    const cpuMs = cpuBefore === null || cpuAfter === null ? wallMs : cpuAfter - cpuBefore;
    longest.cpuMs = Math.max(longest.cpuMs, cpuMs);
    longest.wallMs = Math.max(longest.wallMs, wallMs);
    peakBytes = Math.max(peakBytes, residentBytes());
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
    if (rounds === 0) parentPort?.postMessage('watching');
    await sleep(PAUSE_MS);
  }
  const report: StallWatchReport = { stallMs: longest.cpuMs, wallMs: longest.wallMs, peakBytes };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  parentPort?.postMessage(report);
  agent.destroy();
}

await watch();
