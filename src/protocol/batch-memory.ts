import { RAW_FIELDS } from './messages.ts';
import { PACKED_HEAD_BYTES } from './packed-batch.ts';

/** Memory into which the numbers and bodies of a batch are written. */
export type BatchSpace = { readonly raw: Float64Array; readonly bodies: Uint8Array };

/** Buffers at most: as many as a worker holds batches at once. */
const BUFFERS_MAX = 2;
/** A full batch: 512 requests of 64 bytes, 1 MiB of bodies, and their scopes. */
const BUFFER_BYTES = 1_179_648;
/** Left for scopes and tokens; more of them travel by a copy. */
const TEXT_CAPACITY_BYTES = 8 * 1024;
const NUMBER_BYTES = 8;

/**
 * Memory that the gateway shares with one worker, for batches of raw requests: written here,
 * read there without a copy, and used again after the reply. A buffer of its own for every batch would be
 * garbage on both sides: at some thousand batches a second that alone had the collector at work for a
 * fifth of the time. Between `acquire` and the reply a buffer is the worker's; it keeps nothing of it.
 */
export class BatchMemory {
  readonly #buffers: SharedArrayBuffer[] = [];
  readonly #free: number[] = [];

  /** Acquires memory in a free buffer; null: all are in use, or it does not fit into one. */
  acquire(requests: number, bodyBytes: number): BatchSpace | null {
    if (packedBytes(requests, bodyBytes) > BUFFER_BYTES) return null;
    let index = this.#free.pop();
    if (index === undefined) {
      if (this.#buffers.length === BUFFERS_MAX) return null;
      index = this.#buffers.push(new SharedArrayBuffer(BUFFER_BYTES)) - 1;
    }
    return spaceIn(this.buffer(index), requests, bodyBytes);
  }

  /** Number of the buffer that the memory is in, or -1 for memory from elsewhere. */
  indexOf({ raw }: BatchSpace): number {
    return raw.buffer instanceof SharedArrayBuffer ? this.#buffers.indexOf(raw.buffer) : -1;
  }

  buffer(index: number): SharedArrayBuffer {
    const buffer = this.#buffers[index];
    if (buffer === undefined) throw new Error('a buffer that was never taken');
    return buffer;
  }

  /** The worker has replied: the buffer may be written again. */
  release(index: number): void {
    this.#free.push(index);
  }
}

/** Space in a buffer of its own, which is handed over to the worker: long bodies are copied once. */
export function handedSpace(requests: number, bodyBytes: number): BatchSpace {
  // Zeroing is in vain: every byte that is read is written.
  const { buffer } = Buffer.allocUnsafeSlow(packedBytes(requests, bodyBytes));
  return spaceIn(buffer, requests, bodyBytes);
}

/** The buffer of `handedSpace` that a batch was written to, or null. */
export function handedBufferOf({ raw }: BatchSpace): ArrayBuffer | null {
  const { buffer, byteOffset } = raw;
  return buffer instanceof ArrayBuffer && byteOffset === PACKED_HEAD_BYTES ? buffer : null;
}

function packedBytes(requests: number, bodyBytes: number): number {
  return bodiesAt(requests) + bodyBytes + TEXT_CAPACITY_BYTES;
}

function bodiesAt(requests: number): number {
  return PACKED_HEAD_BYTES + requests * RAW_FIELDS * NUMBER_BYTES;
}

function spaceIn(buffer: ArrayBufferLike, requests: number, bodyBytes: number): BatchSpace {
  return {
    raw: new Float64Array(buffer, PACKED_HEAD_BYTES, requests * RAW_FIELDS),
    bodies: new Uint8Array(buffer, bodiesAt(requests), bodyBytes),
  };
}
