/**
 * Under which registration of this instance writes are sent. The database lets in only what names one that
 * is there and may write, so that what is under way when an instance is given up for dead has no effect.
 */
export interface WriteAdmission {
  /**
   * To be read at the moment of sending. Undefined: nothing may be sent now (the instance joins, or must
   * register again). null: nobody registers on this database at all.
   */
  readonly writeId: string | null | undefined;
  /**
   * Resolves when that has changed, or soon. Errors: STORE_UNAVAILABLE when the database cannot be asked.
   */
  whenAdmitted(): Promise<void>;
  /** A write that named `writeId` was refused: nothing of it was applied, and the id is of no more use. */
  refused(writeId: string | null): void;
  /**
   * Whether another instance may see a commit of this one, in the database, before this one knows of it,
   * while this one answers from memory.
   */
  readonly isOvertaken: boolean;
}
