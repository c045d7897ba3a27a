import { describe, expect, test } from 'vitest';
import { DIFFERENCES } from './differences.ts';
import type { CelQuestion } from './draft.ts';
import { askAsOpenFga, askAsSpiceDb, type SaidHere } from './imported-condition.ts';
import { keptAnswers, type PeerSaid } from './peer-answers.ts';
import { QUESTIONS } from './questions.ts';
import { REFUSALS } from './refusals.ts';

/*
 * Conditions of OpenFGA and SpiceDB decide here what they decide there, or are not imported. What the peers say is kept
 * in answers.txt; cel-go.long.host.test.ts holds it to them.
 */

/** Differences that a failure shows. */
const SHOWN_MAX = 40;

type Peer = {
  readonly said: readonly PeerSaid[];
  readonly ask: (question: CelQuestion) => SaidHere;
};

const kept = keptAnswers(QUESTIONS);
const PEERS: readonly (readonly [name: string, peer: Peer])[] = [
  ['OpenFGA', { said: kept.map(({ openfga }) => openfga), ask: askAsOpenFga }],
  ['SpiceDB', { said: kept.map(({ spicedb }) => spicedb), ask: askAsSpiceDb }],
];

describe.each(PEERS)('%s', (_, { said, ask }) => {
  const taken = QUESTIONS.map((question, at) => ({ question, there: said[at] ?? 'invalid' }))
    // A model that holds it cannot come from the peer.
    .filter(({ there }) => there !== 'invalid')
    .map(({ question, there }) => ({ question, there, here: ask(question) }));

  test('conditions that are imported decide as they do there', () => {
    const counts = new Map<string, number>();
    const otherwise: string[] = [];
    for (const { question, there, here } of taken) {
      if (here.said === 'refused' || here.said === there) continue;
      const { topic, expression, context } = question;
      const asked = `${expression} with ${JSON.stringify(context)}`;
      const kind = DIFFERENCES.find(({ answers, sign }) => {
        return answers.test(`${there} → ${here.said}`) && sign.test(asked);
      })?.kind;
      if (kind === undefined) otherwise.push(`${topic}: ${asked} is ${there}, here ${here.said}`);
      else counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    expect(otherwise.slice(0, SHOWN_MAX), `${otherwise.length} differ`).toEqual([]);
    const many = DIFFERENCES.filter(({ kind, most }) => (counts.get(kind) ?? 0) > most);
    expect(many.map(({ kind }) => `${kind}: ${counts.get(kind)}`)).toEqual([]);
  });

  test('conditions are refused for known reasons, and seldom', () => {
    const counts = new Map<string, number>();
    const unknown: string[] = [];
    for (const { question, here } of taken) {
      if (here.said !== 'refused') continue;
      const kind = REFUSALS.find(({ reason }) => reason.test(here.why))?.kind;
      if (kind === undefined) unknown.push(`${question.expression}: ${here.why}`);
      else counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    expect(unknown).toEqual([]);
    const many = REFUSALS.filter(({ kind, most }) => (counts.get(kind) ?? 0) > most);
    expect(many.map(({ kind }) => `${kind}: ${counts.get(kind)}`)).toEqual([]);
  });

  test('the questions have every answer', () => {
    const share = (wanted: PeerSaid): number =>
      taken.filter(({ there }) => there === wanted).length / QUESTIONS.length;
    expect(share('true')).toBeGreaterThan(0.25);
    expect(share('false')).toBeGreaterThan(0.25);
    expect(share('error')).toBeGreaterThan(0.1);
  });
});

test('there are many questions, no two alike', () => {
  expect(QUESTIONS.length).toBeGreaterThanOrEqual(2_000);
  expect(new Set(QUESTIONS.map((one) => JSON.stringify(one))).size).toBe(QUESTIONS.length);
});
