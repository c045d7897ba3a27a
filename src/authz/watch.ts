import type { ChangeHints } from '../services/ports.ts';
import { TupleWatch, type TupleWatchOptions } from '../services/watch/tuple-watch.ts';
import { WatchCursors } from '../services/watch/watch-cursor.ts';
import type { WatchHub } from '../services/watch/watch-hub.ts';

/** Who follows changes, and what tells them. */
export type Watch = {
  /** Told of changes, for those who follow them. */
  readonly hub: WatchHub;
  readonly tupleWatch: TupleWatch;
};

/** Wires it. `tokenKey` is the deployment's. */
export function createWatch(
  hub: WatchHub,
  parts: Omit<TupleWatchOptions, 'hub' | 'cursors'> & { readonly tokenKey: Uint8Array },
): Watch {
  const cursors = new WatchCursors(parts.tokenKey);
  return { hub, tupleWatch: new TupleWatch({ ...parts, hub, cursors }) };
}

/** Hints for other instances that also wake who follows here. */
export function hintsTo(others: ChangeHints, hub: WatchHub): ChangeHints {
  return {
    hint: (shard, seq) => {
      others.hint(shard, seq);
      hub.changed(shard);
    },
  };
}
