import type { ChildProcess } from 'node:child_process';

const LOOK_MS = 200;

/** Sends `command` to a process of the harness; resolves with its answer. Errors: throws when it ends first. */
export function askChild<Answer>(child: ChildProcess, command: object): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const onExit = (code: number | null): void => reject(new Error(`a child ended (${code})`));
  child.once('exit', onExit);
  child.once('message', (answer) => {
    child.off('exit', onExit);
    resolve(answer as Answer);
  });
  child.send(command);
  return promise;
}

/** The report of `child` once `count` have been received, or after `waitMs`. */
export async function reportOf<Report extends { readonly received: number }>(
  child: ChildProcess,
  count: number,
  waitMs: number,
): Promise<Report> {
  const untilMs = performance.now() + waitMs;
  for (;;) {
    const report = await askChild<Report>(child, { kind: 'report' });
    if (report.received >= count || performance.now() > untilMs) return report;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
