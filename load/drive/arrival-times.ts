import { type Stage, isOpen } from './load-plan.ts';

/** Arrivals of a stage within its first `seconds`, whole or not: the area below its rate. */
export function arrivalsWithin(stage: Extract<Stage, { from: number }>, seconds: number): number {
  const t = Math.min(Math.max(0, seconds), stage.seconds);
  return stage.from * t + ((stage.to - stage.from) * t * t) / (2 * stage.seconds);
}

/** When arrival number `count` (from 0) of a stage is due, in seconds from its begin: the inverse of arrivalsWithin. */
export function dueAt(stage: Extract<Stage, { from: number }>, count: number): number {
  const slope = (stage.to - stage.from) / stage.seconds;
  if (slope === 0) return stage.from === 0 ? Infinity : count / stage.from;
  if (count === 0) return 0;
  // Of the two roots the one at which the rate is not negative.
  return (2 * count) / (stage.from + Math.sqrt(Math.max(0, stage.from ** 2 + 2 * slope * count)));
}

/** The share of a stage that one of `of` generators has. */
export function shareOf(stage: Stage, of: number, index: number): Stage {
  if (isOpen(stage)) return { ...stage, from: stage.from / of, to: stage.to / of };
  const { callers } = stage;
  return { ...stage, callers: Math.floor(callers / of) + (index < callers % of ? 1 : 0) };
}
