import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { fileError, messageOf } from '../core/files.ts';
import { partsOf, TupleTally } from './tuple-parts.ts';

/** State of a partial export. */
export type PartStart = {
  /** Cursor to continue from; '' for the start. */
  readonly cursor: string;
  /** Bytes up to and including the line of the cursor. */
  readonly bytes: number;
  readonly tally: TupleTally;
  /** True if the last line of the export is present. */
  readonly isComplete: boolean;
};

/** The file that receives an export: `FILE.part` until it is complete. */
export class PartFile {
  readonly path: string;
  readonly #out: string;
  #start = 0;
  #handle: FileHandle | undefined;

  constructor(out: string) {
    this.#out = out;
    this.path = `${out}.part`;
  }

  /** True if this process has written to it. */
  get isOpen(): boolean {
    return this.#handle !== undefined;
  }

  /** Continues the existing file from its last cursor. Errors: FILE_INVALID. */
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

  /** Appends bytes. Errors: FILE_INVALID. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#guard(async () => {
      this.#handle ??= await this.#open();
      await this.#handle.writeFile(bytes);
    });
  }

  /** Gives the complete file its final name. Errors: FILE_INVALID. */
  async finish(): Promise<void> {
    await this.#guard(async () => {
      // Also a file that was complete before, but for its name.
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
    // A killed process may have left data behind the last cursor.
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
