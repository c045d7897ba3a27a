import { fork } from 'node:child_process';
import type { GeneratorCommand, GeneratorMessage, GeneratorWindow } from './messages.ts';
import { TargetError } from './prepare-target.ts';

type GeneratorsOptions = Omit<Extract<GeneratorCommand, { kind: 'prepare' }>, 'kind' | 'index'> & {
  readonly onStart: () => void;
  readonly onWindow: (window: GeneratorWindow) => void;
  /** Ends the run before its time. */
  readonly signal: AbortSignal;
};

const START_DELAY_MS = 200;

/**
 * Runs `of` processes that ask together, from one moment, and ends with the last. Errors: TargetError when one cannot
 * begin; throws when one ends early.
 */
export async function runGenerators(options: GeneratorsOptions): Promise<void> {
  const { onStart, onWindow, signal, ...command } = options;
  const started = Array.from({ length: command.of }, (_, index) => {
    // Credentials of the environment are not for them.
    const own = { execArgv: [], env: { PATH: process.env['PATH'] } };
    const child = fork(new URL('../generator.ts', import.meta.url), own);
    const [ready, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fail = (error: Error): void => [ready, done].forEach(({ reject }) => reject(error));
    child.once('exit', (code) => fail(new Error(`a generator ended (${code})`)));
    child.on('message', (message: GeneratorMessage) => {
      if (message.kind === 'window') onWindow(message.window);
      else if (message.kind === 'failed') fail(new TargetError(message.message));
      else (message.kind === 'ready' ? ready : done).resolve();
    });
    const tell = (message: GeneratorCommand): void => void (child.connected && child.send(message));
    tell({ kind: 'prepare', ...command, index });
    return { child, tell, ready: ready.promise, done: done.promise };
  });
  const all = Promise.all(started.map(({ done }) => done));
  // What fails before the start is told by `ready`.
  all.catch(() => undefined);
  try {
    await Promise.all(started.map(({ ready }) => ready));
    const atMs = Date.now() + START_DELAY_MS;
    for (const { tell } of started) tell({ kind: 'go', atMs });
    setTimeout(onStart, START_DELAY_MS);
    const stop = (): void => started.forEach(({ tell }) => tell({ kind: 'stop' }));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    await all;
  } finally {
    for (const { child } of started) {
      child.removeAllListeners('exit');
      if (child.connected) child.disconnect();
    }
  }
}
