import type { UserQuery } from '../../protocol/queries.ts';

/** A query that was asked, and where. */
export type RecordedQuery = UserQuery & {
  readonly projectId: string;
  readonly tenantId: string;
};

export type QueryRecorderOptions = {
  /** One query of so many is recorded, at random; 0 records none. */
  readonly every: number;
  /** Memory of the recorded queries at most; the oldest go first. */
  readonly bytesMax: number;
  /** File to which they are written as well, each as often as it is asked. */
  readonly file?: { add(query: RecordedQuery): void; close(): Promise<void> } | undefined;
  /** From 0 to below 1; tests replace it. */
  readonly random?: (() => number) | undefined;
};

/** Counted for each query besides its texts, of which a UTF-16 unit is two bytes. */
const QUERY_BYTES = 256;

/**
 * Queries that callers asked lately, of concrete users, to preview models with. In memory, and each once:
 * asked again, it is as new as the last time.
 */
export class QueryRecorder {
  readonly #options: QueryRecorderOptions;
  readonly #random: () => number;
  /** The oldest first. */
  readonly #queries = new Map<string, RecordedQuery>();
  #bytes = 0;
  /** Queries until the next one that is recorded. */
  #left: number;

  constructor(options: QueryRecorderOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#left = this.#gap();
  }

  get count(): number {
    return this.#queries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the query at hand is one to record: for who must parse it first. Counts it if not. Hot. */
  isNext(): boolean {
    if (this.#left > 1) {
      this.#left -= 1;
      return false;
    }
    return this.#options.every > 0;
  }

  /** Records a query if it is its turn. `ask` is called then alone. */
  offer(ask: () => RecordedQuery | undefined): void {
    if (!this.isNext()) return;
    this.#left = this.#gap();
    const query = ask();
    if (query === undefined) return;
    this.#add(query);
    this.#options.file?.add(query);
  }

  /** The newest `countMax` queries of a project. O(recorded). */
  newest(projectId: string, countMax: number): readonly RecordedQuery[] {
    const found = [...this.#queries.values()].filter((one) => one.projectId === projectId);
    return countMax === 0 ? [] : found.slice(-countMax);
  }

  /** Ends the file, where there is one. */
  async close(): Promise<void> {
    await this.#options.file?.close();
  }

  #add(query: RecordedQuery): void {
    const key = keyOf(query);
    const size = sizeOf(key);
    if (size > this.#options.bytesMax) return;
    if (this.#queries.delete(key)) this.#bytes -= size;
    this.#queries.set(key, query);
    this.#bytes += size;
    for (const oldest of this.#queries.keys()) {
      if (this.#bytes <= this.#options.bytesMax) break;
      this.#queries.delete(oldest);
      this.#bytes -= sizeOf(oldest);
    }
  }

  /** Uniform around its mean, so that queries that come in a rhythm are met alike. */
  #gap(): number {
    return 1 + Math.floor(this.#random() * (2 * this.#options.every - 1));
  }
}

/** No part can hold a NUL. */
function keyOf(query: RecordedQuery): string {
  const { projectId, tenantId, namespace, objectId, relation, userId, contextJson } = query;
  const parts = [projectId, tenantId, namespace, objectId, relation, userId, contextJson];
  return parts.join('\u0000');
}

/** The size of an entry: its texts are in the key, and once more by themselves. */
function sizeOf(key: string): number {
  return QUERY_BYTES + key.length * 4;
}
