import type { Socket } from 'node:net';
import { BLOCK_BYTES_A_TURN, RESETS_A_TURN } from './connection-options.ts';
import type { SendSide } from './send-side.ts';

/**
 * Limits the work for one connection in one turn of the loop. Header blocks, and streams that are opened and reset, cost us
 * more than the peer. Once the limit is spent the rest waits for the next turn, and nothing is read meanwhile.
 */
export class ReadTurns {
  readonly #socket: Socket;
  readonly #sender: SendSide;
  readonly #onTurn: (rest: Buffer) => void;
  #resets = 0;
  #blockBytes = 0;
  #rest: Buffer | null = null;
  #isAsked = false;

  /** `onTurn` gets what was left, which may be nothing. */
  constructor(socket: Socket, sender: SendSide, onTurn: (rest: Buffer) => void) {
    this.#socket = socket;
    this.#sender = sender;
    this.#onTurn = onTurn;
  }

  get isSpent(): boolean {
    return this.#resets >= RESETS_A_TURN || this.#blockBytes >= BLOCK_BYTES_A_TURN;
  }

  countReset(): void {
    this.#resets += 1;
  }

  countBlock(bytes: number): void {
    this.#blockBytes += bytes;
  }

  /** Whether what was left is still to be read; `chunk` is appended to it then. */
  holds(chunk: Buffer): boolean {
    if (this.#rest === null) return false;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    return true;
  }

  begin(): void {
    this.#resets = 0;
    this.#blockBytes = 0;
  }

  leave(rest: Buffer): void {
    this.#rest = rest;
    this.#socket.pause();
    this.#askTurn();
  }

  /** Goes on once the peer takes again what we send: what was left is read, then what comes. */
  goOn(): void {
    if (this.#rest === null) this.#socket.resume();
    else this.#askTurn();
  }

  #askTurn(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    setImmediate(() => {
      this.#isAsked = false;
      const left = this.#rest;
      // No more answers are made for a peer that takes none: `goOn` follows.
      if (left === null || this.#socket.destroyed || this.#sender.isBacklogged) return;
      this.#rest = null;
      this.#onTurn(left);
      if (this.#rest === null && !this.#sender.isBacklogged) this.#socket.resume();
    });
  }
}
