import {
  CHANGE_ENTITY,
  CHANGE_FLAGS,
  CHANGE_NAMESPACE,
  CHANGE_NODE,
  CHANGE_RELATION,
  CHANGE_SUBJECT,
  CHANGE_WORDS,
} from '../../model/tuple-reader.ts';
import type { PageAllocator } from './page-allocator.ts';

/** Changes that are remembered; a power of two. */
const CHANGES_MAX = 64;

/**
 * The last changes of an index, by the ids that they had, so that derived data can drop exactly the entries
 * they touched. A ring: one revision, one entry.
 */
export class ChangeJournal {
  readonly #ring: Uint32Array;
  /** Revisions up to here are forgotten. */
  #from: number;

  constructor(allocator: PageAllocator, revision: number) {
    this.#ring = allocator.words(CHANGES_MAX * CHANGE_WORDS);
    this.#from = revision;
  }

  /** Forgets all changes up to `revision`, the last one. */
  clear(revision: number): void {
    this.#from = revision;
  }

  /** Notes the change that led to `revision`, which is the one after the last noted. */
  add(
    revision: number,
    node: number,
    subject: number,
    entity: number,
    namespace: number,
    relation: number,
    flags: number,
  ): void {
    const at = (revision & (CHANGES_MAX - 1)) * CHANGE_WORDS;
    const ring = this.#ring;
    ring[at + CHANGE_NODE] = node;
    ring[at + CHANGE_SUBJECT] = subject;
    ring[at + CHANGE_ENTITY] = entity;
    ring[at + CHANGE_NAMESPACE] = namespace;
    ring[at + CHANGE_RELATION] = relation;
    ring[at + CHANGE_FLAGS] = flags;
    if (revision - this.#from > CHANGES_MAX) this.#from = revision - CHANGES_MAX;
  }

  /** Copies the change that led to `revision` into `out`; false if it is forgotten. */
  read(revision: number, out: Uint32Array): boolean {
    if (revision <= this.#from) return false;
    const at = (revision & (CHANGES_MAX - 1)) * CHANGE_WORDS;
    for (let i = 0; i < CHANGE_WORDS; i++) out[i] = this.#ring[at + i] as number;
    return true;
  }
}
