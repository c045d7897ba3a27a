import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { fileError, messageOf } from '../core/files.ts';
import { partsOf, TupleTally } from './tuple-parts.ts';

/** Content of a cut part of an export. */
export type PartStart = {
  /** Cursor behind which it continues; '' at the start. */
  readonly cursor: string;
  /** Bytes up to the line of the cursor. */
  readonly bytes: number;
  readonly tally: TupleTally;
  /** Whether its last line is there. */
  readonly isComplete: boolean;
};

/** The file in which an export arrives: `FILE.part` until it is whole. */
export class PartFile {
  readonly path: string;
  readonly #out: string;
  #start = 0;
  #handle: FileHandle | undefined;

  constructor(out: string) {
    this.#out = out;
    this.path = `${out}.part`;
  }

  /** Whether anything was written to it by this process. */
  get isOpen(): boolean {
    return this.#handle !== undefined;
  }

  /** Goes on with the file that is there, behind its last cursor. Errors: FILE_INVALID. */
  async resume(): Promise<PartStart> {
    const tally = new TupleTally();
    const found = { cursor: '', bytes: 0, isComplete: false };
    let read = 0;
    const fail = (problem: string): Error => fileError(this.path, problem);
    for await (const { bytes, mark } of partsOf(this.#chunks(), (text) => {
      return fileError(this.path, text);
    })) {
      if (found.isComplete) throw fail('goes on behind the end of an export');
      read += bytes.length;
      tally.pass(mark);
      if (mark.begin === true) continue;
      Object.assign(found, {
        cursor: mark.cursor ?? '',
        bytes: read,
        isComplete: mark.end === true,
      });
    }
    this.#start = found.bytes;
    return { ...found, tally };
  }

  /** Errors: FILE_INVALID. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#guard(async () => {
      this.#handle ??= await this.#open();
      await this.#handle.writeFile(bytes);
    });
  }

  /** It is whole: has its name from now on. Errors: FILE_INVALID. */
  async finish(): Promise<void> {
    await this.#guard(async () => {
      // Also one that was whole before, but for its name.
      this.#handle ??= await this.#open();
      await this.#handle.sync();
      await this.close();
      await rename(this.path, this.#out);
    });
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  async #open(): Promise<FileHandle> {
    if (this.#start === 0) return await open(this.path, 'w');
    const handle = await open(this.path, 'a');
    // Behind the last cursor may be what a process that was killed left.
    await handle.truncate(this.#start);
    return handle;
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of createReadStream(this.path)) yield chunk as Uint8Array;
    } catch (error) {
      throw fileError(this.path, messageOf(error));
    }
  }

  async #guard(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      throw fileError(this.path, messageOf(error));
    }
  }
}
