/** Decisions on one (namespace, relation) since the last report. */
export type PairCounter = {
  readonly namespace: string;
  readonly relation: string;
  allowed: number;
  denied: number;
  error: number;
};
