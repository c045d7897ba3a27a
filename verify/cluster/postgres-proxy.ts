import { once } from 'node:events';
import { type Server, type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import type { Random } from '../workload/random.ts';

/** What a commit of ours carries in the bytes that the client sends. */
const COMMIT = /gatehouse_write|commit/;
/** What the connection carries first by which an instance keeps its registration. */
const MEMBER = 'application_name\0gatehouse-instance\0';
const NOTIFICATION = 'A'.charCodeAt(0);
const HEADER_BYTES = 5;
/** Answers to a commit are longer than this: a cut falls into one, or before it. */
const ANSWER_BYTES = 300;

/** How the next commits that pass are broken. */
export type Cut =
  /** The connection ends after some bytes of the commit, or of its answer. */
  | 'any-byte'
  /** The commit is carried out; its answer is lost. */
  | 'answer';

/**
 * The way of one instance to PostgreSQL, on a loopback port of its own, where everything may go wrong that
 * can between two machines. By itself it changes nothing.
 */
export class PostgresProxy {
  #server: ServerTarget;
  readonly #random: Random;
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  /** One way, in milliseconds. */
  #delayMs: () => number = () => 0;
  #isFrozen = false;
  #endsMembers = false;
  #dropsNotifications = false;
  #cuts: { kind: Cut; left: number } = { kind: 'answer', left: 0 };
  #droppedNotifications = 0;
  #doneCuts = 0;

  private constructor(server: ServerTarget, random: Random) {
    this.#server = server;
    this.#random = random;
    this.#listener = createServer((client) => this.#accept(client));
  }

  /** Listens in front of `server`. */
  static async start(server: ServerTarget, random: Random): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(server, random);
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    return proxy;
  }

  /** A DATABASE_URL that leads here. */
  get databaseUrl(): string {
    const address = this.#listener.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    const { user, password, database } = this.#server;
    const login = `${user}:${encodeURIComponent(password)}`;
    return `postgres://${login}@127.0.0.1:${address.port}/${database}`;
  }

  /** Notifications that never arrived, and connections that were cut in a commit, so far. */
  get counts(): { readonly droppedNotifications: number; readonly cuts: number } {
    return { droppedNotifications: this.#droppedNotifications, cuts: this.#doneCuts };
  }

  /** New connections lead to another server from now on; those that are open end. */
  leadTo(server: ServerTarget): void {
    this.#server = server;
    this.cutAll();
  }

  /** Each piece waits `delayMs()` on its way; order is kept. */
  delay(delayMs: () => number): void {
    this.#delayMs = delayMs;
  }

  dropNotifications(isOn: boolean): void {
    this.#dropsNotifications = isOn;
  }

  /** Nothing passes and nothing ends, as where packets are lost. */
  freeze(isOn: boolean): void {
    this.#isFrozen = isOn;
    for (const pair of this.#pairs) pair.freeze(isOn);
  }

  /** Registrations are not kept: their connections end, and everything else passes. */
  endMembers(isOn: boolean): void {
    this.#endsMembers = isOn;
    if (!isOn) return;
    for (const pair of this.#pairs) if (pair.isMember) pair.end();
  }

  cutAll(): void {
    for (const pair of this.#pairs) pair.end();
  }

  /** The next `count` commits are broken. */
  cutCommits(kind: Cut, count: number): void {
    this.#cuts = { kind, left: count };
  }

  /** Back to changing nothing. */
  heal(): void {
    this.#delayMs = () => 0;
    this.#dropsNotifications = false;
    this.#endsMembers = false;
    this.#cuts.left = 0;
    this.freeze(false);
  }

  async close(): Promise<void> {
    this.cutAll();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  #accept(client: Socket): void {
    const { host, port } = this.#server;
    const server = host.startsWith('/')
      ? connect(join(host, `.s.PGSQL.${port}`))
      : connect(port, host);
    const pair = new Pair(client, server, {
      delayMs: () => this.#delayMs(),
      cutOf: (bytes) => this.#cutOf(bytes),
      endsMembers: () => this.#endsMembers,
      dropsNotifications: () => this.#dropsNotifications,
      onNotificationDropped: () => (this.#droppedNotifications += 1),
      onEnd: () => this.#pairs.delete(pair),
    });
    this.#pairs.add(pair);
    if (this.#isFrozen) pair.freeze(true);
  }

  /** How many bytes of a commit, and then of its answer, still pass; undefined: this one is not cut. */
  #cutOf(bytes: Buffer): { readonly sent: number; readonly answered: number } | undefined {
    if (this.#cuts.left === 0 || !COMMIT.test(bytes.toString('latin1'))) return undefined;
    this.#cuts.left--;
    this.#doneCuts++;
    if (this.#cuts.kind === 'answer') return { sent: bytes.length, answered: 0 };
    const cutsAnswer = this.#random.chance(0.5);
    return cutsAnswer
      ? { sent: bytes.length, answered: this.#random.integer(ANSWER_BYTES) }
      : { sent: this.#random.integer(bytes.length + 1), answered: 0 };
  }
}

type PairOptions = {
  delayMs(): number;
  cutOf(bytes: Buffer): { readonly sent: number; readonly answered: number } | undefined;
  endsMembers(): boolean;
  dropsNotifications(): boolean;
  onNotificationDropped(): void;
  onEnd(): void;
};

/** One connection and the one behind it. */
class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #options: PairOptions;
  /** Bytes of the server that may still pass; Infinity: no cut is under way. */
  #answerBytesLeft = Infinity;
  #isMember: boolean | undefined;
  /** Of a message of the server that has not arrived whole. */
  #partial: Buffer = Buffer.alloc(0);
  readonly #queues = { toServer: Promise.resolve(), toClient: Promise.resolve() };

  constructor(client: Socket, server: Socket, options: PairOptions) {
    this.#client = client;
    this.#server = server;
    this.#options = options;
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => this.end());
      socket.on('close', () => this.end());
    }
    client.on('data', (bytes) => this.#fromClient(bytes));
    server.on('data', (bytes) => this.#fromServer(bytes));
  }

  /** Whether an instance keeps its registration by it. */
  get isMember(): boolean {
    return this.#isMember === true;
  }

  end(): void {
    this.#client.destroy();
    this.#server.destroy();
    this.#options.onEnd();
  }

  freeze(isOn: boolean): void {
    for (const socket of [this.#client, this.#server]) {
      if (isOn) socket.pause();
      else socket.resume();
    }
  }

  #fromClient(bytes: Buffer): void {
    this.#isMember ??= bytes.includes(MEMBER);
    if (this.#isMember && this.#options.endsMembers()) return this.end();
    const cut = this.#options.cutOf(bytes);
    if (cut === undefined) return this.#pass('toServer', bytes);
    this.#answerBytesLeft = cut.answered;
    this.#pass('toServer', bytes.subarray(0, cut.sent));
    // Of a commit that did not arrive whole nothing is answered.
    if (cut.sent < bytes.length) this.#server.end(() => this.end());
  }

  #fromServer(bytes: Buffer): void {
    const passing = this.#withoutNotifications(bytes);
    if (passing.length < this.#answerBytesLeft) {
      this.#answerBytesLeft -= passing.length;
      if (passing.length > 0) this.#pass('toClient', passing);
      return;
    }
    this.#pass('toClient', passing.subarray(0, this.#answerBytesLeft));
    this.#client.end(() => this.end());
  }

  #pass(way: 'toServer' | 'toClient', bytes: Buffer): void {
    const to = way === 'toServer' ? this.#server : this.#client;
    const ms = this.#options.delayMs();
    const before = this.#queues[way];
    const later = ms === 0 ? before : Promise.all([before, sleepUnref(ms)]);
    this.#queues[way] = later.then(() => {
      if (!to.destroyed && to.writable) to.write(bytes);
    });
  }

  /**
   * What passes of these bytes: messages are cut out whole, so that what begins one waits for its end. The first
   * byte of a message is its type, the next four its length without it.
   */
  #withoutNotifications(bytes: Buffer): Buffer {
    const all = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes]);
    const passing: Buffer[] = [];
    let at = 0;
    let from = 0;
    while (at + HEADER_BYTES <= all.length) {
      const end = at + 1 + all.readUInt32BE(at + 1);
      if (end > all.length) break;
      if (all[at] === NOTIFICATION && this.#options.dropsNotifications()) {
        this.#options.onNotificationDropped();
        passing.push(all.subarray(from, at));
        from = end;
      }
      at = end;
    }
    passing.push(all.subarray(from, at));
    this.#partial = Buffer.from(all.subarray(at));
    return passing.length === 1 ? (passing[0] as Buffer) : Buffer.concat(passing);
  }
}

async function sleepUnref(ms: number): Promise<void> {
  await new Promise((done) => setTimeout(done, ms).unref());
}
