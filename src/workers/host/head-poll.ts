import type { ShardSource } from '../shard/ports.ts';
import type { ShardActor } from '../shard/shard-actor.ts';
import type { ShardActors } from './shard-actors.ts';

const HEAD_REVISIONS_PER_QUERY_MAX = 1_000;

export type HeadPollOptions = {
  readonly source: Pick<ShardSource, 'readHeadRevisions'>;
  readonly actors: ShardActors;
  /** Called before each round with the shards whose head revisions it reads. */
  readonly onRound: (loaded: readonly ShardActor[]) => void;
  /** The store could not be asked, for the first time in a row. */
  readonly onFailed: (error: unknown) => void;
};

/** Asks the store for the head revisions of all loaded shards: the backstop for lost hints. One round at a time. */
export class HeadPoll {
  readonly #options: HeadPollOptions;
  #isPolling = false;
  #isStoreAway = false;

  constructor(options: HeadPollOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const loaded = [...this.#options.actors.all()].filter((actor) => actor.isLoaded);
      this.#options.onRound(loaded);
      for (let i = 0; i < loaded.length; i += HEAD_REVISIONS_PER_QUERY_MAX) {
        await this.#pollSome(loaded.slice(i, i + HEAD_REVISIONS_PER_QUERY_MAX));
      }
      this.#isStoreAway = false;
    } catch (error) {
      if (!this.#isStoreAway) this.#options.onFailed(error);
      this.#isStoreAway = true;
    } finally {
      this.#isPolling = false;
    }
  }

  async #pollSome(loaded: readonly ShardActor[]): Promise<void> {
    const { source, actors } = this.#options;
    const headRevisions = await source.readHeadRevisions(loaded.map((actor) => actor.key));
    for (const headRevision of headRevisions) {
      const actor = actors.peek(headRevision);
      if (actor === undefined || !actor.isLoaded) continue;
      const { epoch, revision, forkId } = actor.position;
      // A watermark that has moved past the head revision starts a catch-up too, which finds nothing.
      const isSame =
        headRevision.epoch === epoch &&
        headRevision.revision === revision &&
        headRevision.forkId === forkId;
      if (!isSame) actor.changes.hint(0);
    }
  }
}
