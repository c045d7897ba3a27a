/** Limits of one evaluation. The defaults are those of the service. */
export type EngineLimits = {
  /** Maximum number of usersets on one path, 1 to 2,048; default 256. Anything beyond is undecided. */
  readonly depthMax?: number | undefined;
  /**
   * Maximum number of reads in one evaluation; default 10,000. A list of tuples costs one read, and one more for every
   * 64 entries. Exceeding it is the error BUDGET_EXHAUSTED.
   */
  readonly readsMax?: number | undefined;
};

/** Options of an engine. */
export type EngineOptions = EngineLimits & {
  /** Maximum size of the tuples in bytes; default 1 GiB. */
  readonly indexBytesMax?: number | undefined;
  /** Maximum size in bytes of what is cached between checks; default 64 MiB. */
  readonly cacheBytesMax?: number | undefined;
  /** Clock by which tuples expire, in milliseconds since the epoch; default `Date.now`. */
  readonly now?: (() => number) | undefined;
};
