import {
  type Bounds,
  type Rule,
  type World,
  firstWorld,
  keyOf,
  staleAnswer,
  stepsOf,
} from './model.ts';

/** What an exploration found. */
export type Exploration = {
  readonly states: number;
  /** Whether every state within the bounds was seen. */
  readonly isComplete: boolean;
  /** The shortest way to a stale answer, and which; undefined: there is none. */
  readonly violation: { readonly steps: readonly string[]; readonly answer: string } | undefined;
};

/** The last step to a world, and those before it. */
type Way = { readonly step: string; readonly from: Way | undefined };
type Place = { readonly world: World; readonly way: Way | undefined };

/** Visits the states of the protocol, nearest first, until one is wrong or `statesMax` were seen. */
export function explore(
  bounds: Bounds,
  without: ReadonlySet<Rule>,
  statesMax: number,
): Exploration {
  const first = firstWorld(bounds);
  const seen = new Set([keyOf(first)]);
  let frontier: Place[] = [{ world: first, way: undefined }];
  while (frontier.length > 0) {
    const next: Place[] = [];
    for (const from of frontier) {
      for (const { name, world } of stepsOf(from.world, bounds, without)) {
        const key = keyOf(world);
        if (seen.has(key)) continue;
        seen.add(key);
        const way = { step: name, from: from.way };
        const answer = staleAnswer(world);
        if (answer !== undefined) {
          const violation = { steps: wayTo(way), answer };
          return { states: seen.size, isComplete: false, violation };
        }
        if (seen.size >= statesMax) {
          return { states: seen.size, isComplete: false, violation: undefined };
        }
        next.push({ world, way });
      }
    }
    frontier = next;
  }
  return { states: seen.size, isComplete: true, violation: undefined };
}

function wayTo(end: Way): readonly string[] {
  const steps: string[] = [];
  for (let at: Way | undefined = end; at !== undefined; at = at.from) steps.push(at.step);
  return steps.toReversed();
}
