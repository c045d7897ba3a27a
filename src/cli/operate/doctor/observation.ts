/** Finding of a check, and advice. */
export type Observation = {
  readonly state: 'ok' | 'warn' | 'fail';
  /** One line. */
  readonly seen: string;
  /** One line; undefined where there is nothing to do. */
  readonly advice?: string | undefined;
};

/** A check of doctor by its name. It reads, and changes nothing. */
export type DoctorCheck = {
  readonly name: string;
  /** Ends by itself in less than `CHECK_MS_MAX`; what it throws is a failure of the check. */
  readonly run: () => Promise<readonly Observation[]>;
};

/** Finding of a check, under its name. */
export type NamedObservation = Observation & { readonly check: string };

/** Time of one call within a check, in milliseconds: a check that fails says more than one that is given up. */
export const CALL_MS_MAX = 3_000;

/** All is well. */
export function fine(seen: string): Observation {
  return { state: 'ok', seen };
}

/** It runs, and should be looked at. */
export function warning(seen: string, advice: string): Observation {
  return { state: 'warn', seen, advice };
}

/** A start fails, or what is there cannot be used. */
export function failure(seen: string, advice?: string): Observation {
  return { state: 'fail', seen, advice };
}
