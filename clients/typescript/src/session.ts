/** A project and a tenant: what one consistency token is about. Empty = the default one. */
export type ShardName = { readonly project: string; readonly tenant: string };

/** What a session said when a call was sent, to be given back with its answer. */
export type Sent = { readonly token: string; readonly turn: number };

type Held = { readonly shard: ShardName; token: string; turn: number };

/** Tokens of a session at most; the one used longest ago goes first. Its reads are then of the latest state. */
const SHARDS_MAX = 16;
const FORM = /^([a-z0-9_-]{0,63})~([A-Za-z0-9._:-]{0,128})~([A-Za-z0-9_-]{16,128})$/;
const BETWEEN = '!';

/**
 * What somebody has seen and written, as a consistency token for each shard. Calls within a session never show an
 * older state than an earlier call of it did. A token that arrives late never takes the place of a newer one.
 *
 * Where two writes ran side by side nobody can tell which token is newer. The session then asks for the latest
 * state, which has both, and keeps the token of that answer.
 */
export class Session {
  readonly #held = new Map<string, Held>();

  /**
   * Reads what `toString` wrote. A cookie may have been changed by anybody, so that whatever has not the form is
   * left out; what the service does not accept is dropped when it says so.
   */
  static from(text: string | null | undefined): Session {
    const session = new Session();
    for (const part of (text ?? '').split(BETWEEN).slice(0, SHARDS_MAX)) {
      const [, project, tenant, token] = FORM.exec(part) ?? [];
      if (project === undefined || tenant === undefined || token === undefined) continue;
      session.#hold({ project, tenant }).token = token;
    }
    return session;
  }

  /** The tokens, for a header or a cookie: no character in it needs quotes. '' where nothing was seen. */
  toString(): string {
    return [...this.#held.values()]
      .filter(({ token }) => token !== '')
      .map(({ shard, token }) => `${shard.project}~${shard.tenant}~${token}`)
      .join(BETWEEN);
  }

  /** What a call about the shard has to send. */
  sent(shard: ShardName): Sent {
    const held = this.#held.get(keyOf(shard));
    return { token: held?.token ?? '', turn: held?.turn ?? 0 };
  }

  /** Takes the token of an answer to a read that was sent with `sent`. */
  read(shard: ShardName, sent: Sent, token: string): void {
    if (token === '') return;
    const held = this.#hold(shard);
    // Another answer came between: which of the two is newer is not known, and both have what was sent.
    if (held.turn === sent.turn) held.token = token;
  }

  /** Takes the token of a write. */
  wrote(shard: ShardName, sent: Sent, token: string): void {
    const held = this.#hold(shard);
    held.token = held.turn === sent.turn ? token : '';
    held.turn += 1;
  }

  /** Forgets a token that the service refused, unless it was replaced meanwhile. */
  drop(shard: ShardName, refused: string): void {
    const held = this.#held.get(keyOf(shard));
    if (held?.token === refused) held.token = '';
  }

  #hold(shard: ShardName): Held {
    const key = keyOf(shard);
    const held = this.#held.get(key) ?? { shard, token: '', turn: 0 };
    this.#held.delete(key);
    this.#held.set(key, held);
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= SHARDS_MAX) break;
      this.#held.delete(oldest);
    }
    return held;
  }
}

function keyOf({ project, tenant }: ShardName): string {
  return `${project}~${tenant}`;
}
