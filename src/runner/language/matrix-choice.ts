import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import type { JobDefinition, Template, Workflow } from '../model/workflow.ts';
import { textOfValue } from './expression-data.ts';
import { chosenMatrixJobs, expandMatrix, isFilter, type MatrixChoice } from './matrix.ts';
import { objectEntries } from './ordered-object.ts';
import { entriesOf, hasExpression, jsonFromTemplate, valueOf } from './template-access.ts';

/** Values, keys and matrix jobs that a message names of each. */
const SHOWN_MAX = 20;

/** A key as written, and its values as texts; open: only the run knows all of them. */
type Offer = { readonly name: string; readonly values: Set<string>; isOpen: boolean };

/** What the matrices of a workflow, and of those it calls, have to choose from. */
type Offers = {
  /** By the key in small letters. */
  readonly keys: ReadonlyMap<string, Offer>;
  /** Matrix jobs of the matrices without expressions. */
  readonly matrixJobs: readonly JsonObject[];
  /** A matrix has keys that only the run knows. */
  readonly isOpen: boolean;
};

/**
 * Refuses a choice of matrix jobs that the file alone shows to be of nothing: a key that no matrix has, a value that
 * none gives to it, values that no matrix job has together. What an expression may still give is let through.
 * Errors: INVALID_REQUEST, field `matrix`, that names what there is. Cost: O(matrix jobs).
 */
export function assertChoosable(workflow: Workflow, choice: MatrixChoice | undefined): void {
  if (choice === undefined) return;
  const offers = offersOf(workflow);
  for (const [key, values] of Object.entries(choice)) {
    const offer = offers.keys.get(key.toLowerCase());
    if (offer === undefined && !offers.isOpen) throw unknownKey(workflow, key, offers);
    if (offer === undefined || offer.isOpen) continue;
    const wrong = values.find((value) => !offer.values.has(value));
    if (wrong !== undefined) throw unknownValue(offer, wrong);
  }
  const isOpen = offers.isOpen || [...offers.keys.values()].some((offer) => offer.isOpen);
  if (isOpen || hasChosenMatrixJob(offers.matrixJobs, choice)) return;
  const asked = Object.entries(choice).flatMap(([key, values]) => values.map((v) => `${key}:${v}`));
  throw wrongChoice(
    `no leg has ${asked.join(' and ')} together; there are ${shown(offers.matrixJobs.map(matrixJobText))}`,
  );
}

/** Whether a matrix job has one of the keys that were asked for, and is chosen. */
export function hasChosenMatrixJob(
  matrixJobs: readonly JsonObject[],
  choice: MatrixChoice,
): boolean {
  const keys = Object.keys(choice).map((key) => key.toLowerCase());
  return chosenMatrixJobs(matrixJobs, choice).some((matrixJob) =>
    Object.keys(matrixJob).some((key) => keys.includes(key.toLowerCase())),
  );
}

/**
 * The matrix jobs that a choice leaves of a matrix that the run has evaluated. One without a key that was asked for
 * runs whole only where the file gives that key to another matrix: else nobody could say that it is a slip.
 */
export function chosenOfEvaluated(
  workflow: Workflow,
  matrixJobs: readonly JsonObject[],
  choice: MatrixChoice,
): readonly JsonObject[] {
  const { keys } = offersOf(workflow);
  const isKnown = (key: string): boolean =>
    keys.has(key.toLowerCase()) ||
    matrixJobs.some((matrixJob) =>
      Object.keys(matrixJob).some((own) => own.toLowerCase() === key.toLowerCase()),
    );
  return Object.keys(choice).every(isKnown) ? chosenMatrixJobs(matrixJobs, choice) : [];
}

/** The matrix jobs in a few words: `(1, x), (2, x)`. */
export function matrixJobsText(matrixJobs: readonly JsonObject[]): string {
  return shown(matrixJobs.map(matrixJobText));
}

function offersOf(workflow: Workflow): Offers {
  const keys = new Map<string, Offer>();
  const matrixJobs: JsonObject[] = [];
  let isOpen = false;
  const offer = (name: string): Offer => {
    const known = keys.get(name.toLowerCase());
    const one = known ?? { name, values: new Set<string>(), isOpen: false };
    keys.set(name.toLowerCase(), one);
    return one;
  };
  const visit = (job: JobDefinition): void => {
    if (job.kind === 'call') for (const inner of job.called.jobs.values()) visit(inner);
    const matrix = job.strategy?.matrix;
    if (matrix === undefined) return;
    const own = matrixJobsOf(matrix);
    for (const matrixJob of own ?? []) {
      matrixJobs.push(matrixJob);
      for (const [name, value] of objectEntries(matrixJob))
        offer(name).values.add(textOfValue(value));
    }
    if (own !== undefined) return;
    const include = valueOf(matrix, 'include');
    isOpen ||= matrix.kind !== 'mapping' || (include !== undefined && hasExpression(include));
    for (const { name } of entriesOf(matrix)) {
      if (!isFilter(name)) offer(name).isOpen = true;
    }
  };
  for (const job of workflow.jobs.values()) visit(job);
  return { keys, matrixJobs, isOpen };
}

/** Undefined for a matrix that only the run knows, and for one that cannot be: its job says why. */
function matrixJobsOf(matrix: Template): readonly JsonObject[] | undefined {
  if (hasExpression(matrix)) return undefined;
  try {
    return expandMatrix(jsonFromTemplate(matrix));
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function unknownKey({ fileName }: Workflow, key: string, { keys }: Offers): AppError {
  if (keys.size === 0) return wrongChoice(`'${key}': ${fileName} has no matrix`);
  const names = [...keys.values()].map(({ name }) => name);
  const there = [...keys.values()].map(({ name, values }) => `${name} (${shown([...values])})`);
  return wrongChoice(
    `no matrix of ${fileName} has the key '${key}'; there are ${shown(there)}${meant(key, names)}`,
  );
}

function unknownValue({ name, values }: Offer, value: string): AppError {
  const near = meant(value, values);
  return wrongChoice(`'${name}' is never '${value}'; it is ${shown([...values])}${near}`);
}

function wrongChoice(text: string): AppError {
  return new AppError('INVALID_REQUEST', `matrix: ${text}`, { field: 'matrix' });
}

function matrixJobText(matrixJob: JsonObject): string {
  return `(${objectEntries(matrixJob)
    .map(([key, value]) => `${key}: ${textOfValue(value)}`)
    .join(', ')})`;
}

function shown(texts: readonly string[]): string {
  const more = texts.length > SHOWN_MAX ? ` and ${texts.length - SHOWN_MAX} more` : '';
  return `${texts.slice(0, SHOWN_MAX).join(', ')}${more}`;
}
