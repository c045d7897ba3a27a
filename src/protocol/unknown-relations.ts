import type { MissingPart } from '../model/unknown-relation.ts';

/** A namespace or relation that decisions were asked about and that the project's typed model does not have. */
export type UnknownRelation = {
  readonly projectId: string;
  readonly namespace: string;
  readonly relation: string;
  readonly missing: MissingPart;
  /** The name that was likely meant; '' where none is near. */
  readonly meant: string;
};

/** What a worker counted of such decisions since its last report. */
export type UnknownFigures = {
  /** Decisions, failed ones too, by what the model lacks. */
  readonly counts: Readonly<Record<MissingPart, number>>;
  /** A few of the names, each once, without objects, subjects and tenants. */
  readonly names: readonly UnknownRelation[];
};
