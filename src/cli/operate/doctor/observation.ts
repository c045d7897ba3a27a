/** The finding of a check, with advice. */
export type Observation = {
  readonly state: 'ok' | 'warn' | 'fail';
  /** The finding, on one line. */
  readonly seen: string;
  /** Advice on one line; undefined if there is nothing to do. */
  readonly advice?: string | undefined;
};

/** A check of doctor with its name. It reads, and changes nothing. */
export type DoctorCheck = {
  readonly name: string;
  /** Ends in less than `CHECK_MS_MAX` without help; a thrown error is a failure of the check. */
  readonly run: () => Promise<readonly Observation[]>;
};

/** The finding of a check, with the check's name. */
export type NamedObservation = Observation & { readonly check: string };

/**
 * Timeout of one call within a check, in ms. A check that fails reports more than one that is
 * abandoned.
 */
export const CALL_MS_MAX = 3_000;

/** No problem. */
export function fine(seen: string): Observation {
  return { state: 'ok', seen };
}

/** It runs, with a problem to look into. */
export function warning(seen: string, advice: string): Observation {
  return { state: 'warn', seen, advice };
}

/** A start fails, or the thing cannot be used. */
export function failure(seen: string, advice?: string): Observation {
  return { state: 'fail', seen, advice };
}
