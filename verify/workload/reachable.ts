import type { Random } from './random.ts';
import { RpcClient } from './rpc-client.ts';

/** An instance that calls can be sent to. */
export type Reachable = {
  readonly index: number;
  readonly client: RpcClient;
  /** It stands still: what is sent waits until it goes on. */
  readonly isPaused: boolean;
};

/** Where the instances are at the moment. */
export interface Reach {
  /** Those that can be asked now, the paused ones too. */
  readonly all: readonly Reachable[];
}

/** Instances that somebody else runs. */
export function reachOf(urls: readonly string[], token: string, adminSecret: string): Reach {
  const all = urls.map((url, index) => ({
    index,
    client: new RpcClient(url, { token, adminSecret }),
    isPaused: false,
  }));
  return { all };
}

/** One that answers; of the paused ones none. Undefined: there is none now. */
export function pickAwake(reach: Reach, random: Random): Reachable | undefined {
  const awake = reach.all.filter(({ isPaused }) => !isPaused);
  return awake.length === 0 ? undefined : random.pick(awake);
}
