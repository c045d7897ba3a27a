import { type ChildProcess, fork } from 'node:child_process';
import type { GeneratorCommand, GeneratorMessage, GeneratorWindow } from './messages.ts';
import { TargetError } from './prepare-target.ts';

export type GeneratorsOptions = Omit<
  Extract<GeneratorCommand, { kind: 'prepare' }>,
  'kind' | 'index'
> & {
  readonly onWindow: (window: GeneratorWindow) => void;
};

const START_DELAY_MS = 200;

/** Processes that ask together. */
export class Generators {
  readonly #options: GeneratorsOptions;
  readonly #children: ChildProcess[] = [];

  constructor(options: GeneratorsOptions) {
    this.#options = options;
  }

  /** Starts all of them at one moment, and ends with the last. Errors: TargetError when one cannot begin; throws
   * when one ends early. */
  async run(onStart: () => void): Promise<void> {
    const { onWindow, ...command } = this.#options;
    const ready: Promise<void>[] = [];
    const done: Promise<void>[] = [];
    for (let index = 0; index < command.of; index++) {
      const child = fork(new URL('../generator.ts', import.meta.url), {
        execArgv: [],
        // Credentials of the environment are not for them.
        env: { PATH: process.env['PATH'] },
      });
      this.#children.push(child);
      const [isReady, isDone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      ready.push(isReady.promise);
      done.push(isDone.promise);
      const fail = (error: Error): void => {
        isReady.reject(error);
        isDone.reject(error);
      };
      child.once('exit', (code) => fail(new Error(`a generator ended (${code})`)));
      child.on('message', (message: GeneratorMessage) => {
        if (message.kind === 'ready') isReady.resolve();
        else if (message.kind === 'window') onWindow(message.window);
        else if (message.kind === 'done') isDone.resolve();
        else fail(new TargetError(message.message));
      });
      child.send({ kind: 'prepare', ...command, index } satisfies GeneratorCommand);
    }
    const all = Promise.all(done);
    // What fails before the start is told by `ready`.
    all.catch(() => undefined);
    try {
      await Promise.all(ready);
      const atMs = Date.now() + START_DELAY_MS;
      this.#tell({ kind: 'go', atMs });
      setTimeout(onStart, START_DELAY_MS);
      await all;
    } finally {
      for (const child of this.#children) {
        child.removeAllListeners('exit');
        if (child.connected) child.disconnect();
      }
    }
  }

  /** Ends the run before its time. */
  stop(): void {
    this.#tell({ kind: 'stop' });
  }

  #tell(command: GeneratorCommand): void {
    for (const child of this.#children) if (child.connected) child.send(command);
  }
}
