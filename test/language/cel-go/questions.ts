import { dynamic, element, equality, logic, macro, spelling } from './collection-questions.ts';
import { type CelQuestion, Draw } from './draft.ts';
import {
  arithmetic,
  comparison,
  convertedNumber,
  printedNumber,
  readNumber,
} from './number-questions.ts';
import { anything, form } from './syntax-questions.ts';
import { bytes, literal, pattern, textMethod } from './text-questions.ts';
import {
  durationPart,
  printedDuration,
  printedTimestamp,
  timeArithmetic,
  timestampPart,
} from './time-questions.ts';

/** What is asked about, with how many questions of each hundred. */
const SHARES: readonly (readonly [share: number, make: (draw: Draw) => CelQuestion])[] = [
  [12, printedNumber],
  [10, readNumber],
  [4, convertedNumber],
  [5, arithmetic],
  [3, comparison],
  [8, timestampPart],
  [7, durationPart],
  [8, printedTimestamp],
  [6, printedDuration],
  [6, timeArithmetic],
  [5, textMethod],
  [5, pattern],
  [4, literal],
  [2, bytes],
  [4, equality],
  [3, element],
  [4, macro],
  [2, logic],
  [3, dynamic],
  [5, spelling],
  [7, form],
  [10, anything],
];

/** Questions of a seed, no two alike, `count` or a few fewer. */
export function celQuestions(seed: number, count: number): CelQuestion[] {
  const draw = new Draw(seed);
  const found = new Map<string, CelQuestion>();
  const makers = SHARES.flatMap(([share, make]) => Array.from({ length: share }, () => make));
  for (let i = 0; found.size < count && i < 4 * count; i++) {
    const question = draw.pick(makers)(draw);
    found.set(JSON.stringify(question), question);
  }
  return [...found.values()];
}

const SEED = 20_260_101;
const COUNT = 2_400;

/** The questions whose answers are kept. */
export const QUESTIONS: readonly CelQuestion[] = celQuestions(SEED, COUNT);
