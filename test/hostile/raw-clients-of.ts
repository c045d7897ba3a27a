import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export type RawClientsOptions = {
  readonly port: number;
  readonly count: number;
  /** What each of them sends, with a pause behind each part. */
  readonly parts: readonly Uint8Array[];
  /** False: nothing that comes is read. */
  readonly isReading: boolean;
  /** Connections that send at the same time; default 50. */
  readonly atOnce?: number | undefined;
};

export type RawClients = {
  /** Connections that stand once all is sent. */
  readonly openCount: number;
  readonly close: () => Promise<void>;
};

/** Opens so many connections from another thread, and returns when all that they send is with the kernel. */
export async function rawClientsOf(options: RawClientsOptions): Promise<RawClients> {
  const thread = new Worker(new URL('raw-clients.ts', import.meta.url), { workerData: options });
  const [openCount] = (await once(thread, 'message')) as [number];
  return {
    openCount,
    close: async () => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      thread.postMessage('over');
      await once(thread, 'exit');
    },
  };
}
