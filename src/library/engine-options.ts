/** Bounds of one evaluation, the service's where they are absent. */
export type EngineLimits = {
  /** Usersets on one path, 1 to 2,048; 256 by default. Anything deeper is undecided. */
  readonly depthMax?: number | undefined;
  /**
   * Reads of one evaluation; 10,000 where it is absent. One list of tuples costs one, and one more for each 64 entries
   * beyond the first. More is the error BUDGET_EXHAUSTED.
   */
  readonly readsMax?: number | undefined;
};

/** How an engine is made. */
export type EngineOptions = EngineLimits & {
  /** Bytes that the tuples may take; 1 GiB where it is absent. */
  readonly indexBytesMax?: number | undefined;
  /** Bytes that may be remembered between checks; 64 MiB where it is absent. */
  readonly cacheBytesMax?: number | undefined;
  /** The clock by which tuples expire, in milliseconds since the epoch; `Date.now` where it is absent. */
  readonly now?: (() => number) | undefined;
};
