import { type Bounds, type Rule, type World, firstWorld, staleAnswer, stepsOf } from './model.ts';

/** What an exploration found. */
export type Exploration = {
  readonly states: number;
  /** Whether every state within the bounds was seen. */
  readonly isComplete: boolean;
  /** The shortest way to a stale answer, and which; undefined: there is none. */
  readonly violation: { readonly steps: readonly string[]; readonly answer: string } | undefined;
};

/** Visits the states of the protocol, nearest first, until one is wrong or `statesMax` were seen. */
export function explore(
  bounds: Bounds,
  without: ReadonlySet<Rule>,
  statesMax: number,
): Exploration {
  const start = JSON.stringify(firstWorld(bounds));
  const cameFrom = new Map<string, readonly [from: string, step: string]>([[start, ['', '']]]);
  let frontier = [start];
  while (frontier.length > 0) {
    const next: string[] = [];
    for (const text of frontier) {
      for (const { name, world } of stepsOf(JSON.parse(text) as World, bounds, without)) {
        const key = JSON.stringify(world);
        if (cameFrom.has(key)) continue;
        cameFrom.set(key, [text, name]);
        const answer = staleAnswer(world);
        if (answer !== undefined) {
          const violation = { steps: wayTo(cameFrom, key), answer };
          return { states: cameFrom.size, isComplete: false, violation };
        }
        if (cameFrom.size >= statesMax) {
          return { states: cameFrom.size, isComplete: false, violation: undefined };
        }
        next.push(key);
      }
    }
    frontier = next;
  }
  return { states: cameFrom.size, isComplete: true, violation: undefined };
}

function wayTo(
  cameFrom: ReadonlyMap<string, readonly [from: string, step: string]>,
  end: string,
): readonly string[] {
  const steps: string[] = [];
  for (let at = end; ;) {
    const [from, step] = cameFrom.get(at) ?? ['', ''];
    if (step === '') return steps.toReversed();
    steps.push(step);
    at = from;
  }
}
