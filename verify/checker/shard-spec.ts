import { type Evaluator, type Query, type Stored, tuplesText } from './evaluate.ts';
import { type Operation, type Position, SUSPENDED } from './history.ts';
import type { Moment, Spec, Timed } from './linearize.ts';
import { isAlwaysEffective, refusalByModes, storedAfter } from './modes.ts';
import type { Universe } from './universe.ts';

/** What a project says of its calls, and how many changes made it so. */
export type Settings = {
  readonly model: number;
  readonly isSuspended: boolean;
  /** Changes of settings so far. */
  readonly count: number;
  readonly before: Settings | undefined;
};

/** Tuples of one shard; equal contents have equal ids. */
export type Contents = {
  readonly id: number;
  readonly stored: Stored;
  /** Unix milliseconds at which tuples of it end. */
  readonly ends: readonly number[];
};

/** One shard with the settings of its project. */
export type ShardState = {
  readonly contents: Contents;
  readonly settings: Settings;
  readonly epoch: number;
  readonly revision: number;
  /** Changes of settings that had been acknowledged before the writes that `contents` shows were sent. */
  readonly floor: number;
};

export type ShardSpecOptions = {
  readonly universe: Universe;
  readonly evaluator: Evaluator;
  readonly clockBoundMs: number;
  /** Whether one model can answer otherwise than another. */
  readonly dependsOnModel: (query: Query) => boolean;
  /** Whether the project has but this tenant, so that a count over all of them is one of this shard. */
  readonly isOnlyTenant: boolean;
};

/**
 * One shard and the settings of its project as an object that is linearizable, with two things known
 * beyond the usual. Tokens name revisions, and an effective write takes the next one: so the order of
 * acknowledged writes is given, and one whose outcome is unknown can only be where a revision is missing.
 * And settings lie in another row than tuples: a read takes each at some point between its call and
 * its return, not both at the same one, but never settings older than those that had been acknowledged
 * before a write that it shows was sent.
 *
 * A read with a token may be answered by any state from the one that the token names on.
 */
export class ShardSpec implements Spec<ShardState, Operation> {
  readonly initial: ShardState;
  readonly #options: ShardSpecOptions;
  readonly #contents = new Map<string, Contents>();
  readonly #answers = new Map<string, string>();
  readonly #queryTexts = new WeakMap<Query, string>();
  /** Whether a read can have its answer, by contents and model: a wide search asks again and again. */
  readonly #verdicts = new WeakMap<Operation, Map<number, boolean>>();
  /** Revisions that certainly belong to a write whose token names them. */
  readonly #owned: ReadonlySet<string>;

  /** Of each epoch that a failover began. */
  readonly #begins: ReadonlyMap<number, Beginning>;
  /** Where in the order of events no instance answers from an epoch any more. */
  readonly #overAt: ReadonlyMap<number, number>;

  constructor(options: ShardSpecOptions, history: readonly Operation[], epoch = 1) {
    this.#options = options;
    this.#overAt = endsOfEpochs(history, epoch);
    this.#owned = new Set(history.flatMap(ownedPositions).map(positionText));
    this.#begins = beginningsOf(history);
    this.initial = {
      contents: this.#intern(options.universe.tuples.map(() => 0)),
      settings: { model: 0, isSuspended: false, count: 0, before: undefined },
      epoch,
      revision: 0,
      floor: 0,
    };
  }

  keyOf({ contents, settings, epoch, revision, floor }: ShardState): string {
    const { model, isSuspended, count } = settings;
    return `${contents.id} ${model} ${isSuspended ? 's' : ''}${count} ${epoch} ${revision} ${floor}`;
  }

  isMutation(operation: Operation): boolean {
    return operation.action.kind !== 'read';
  }

  step(moment: Moment<ShardState>, { operation, called }: Timed<Operation>): readonly ShardState[] {
    const { state } = moment;
    const { action, lostIn } = operation;
    if (lostIn !== undefined && state.epoch >= lostIn) return [];
    const isKnown = operation.outcome === 'ok' || operation.found === 'applied';
    switch (action.kind) {
      case 'settings': {
        const { model = state.settings.model, isSuspended = state.settings.isSuspended } = action;
        const isSame = model === state.settings.model && isSuspended === state.settings.isSuspended;
        if (isSame && !isKnown) return [];
        const count = state.settings.count + 1;
        return [{ ...state, settings: { model, isSuspended, count, before: state.settings } }];
      }
      case 'write': {
        const { updates } = action;
        // Most candidates end here, before anything is copied.
        if (isAlwaysEffective(updates) && !this.#isNext(state, action.reached)) return [];
        // One that was not refused met what it asked for; of one that would be refused nothing is seen here.
        if (refusalByModes(state.contents.stored, updates) !== '') return [];
        const { stored, isEffective } = storedAfter(state.contents.stored, updates);
        return this.#advance(moment, called, stored, isEffective, isKnown, action.reached);
      }
      case 'deprovision': {
        const { universe, isOnlyTenant } = this.#options;
        let deleted = 0;
        const stored = state.contents.stored.map((value, index) => {
          const subject = universe.tuples[index]?.subject;
          const isTheirs =
            subject !== undefined && 'user' in subject && subject.user === action.user;
          if (value === 0 || !isTheirs) return value;
          deleted++;
          return 0;
        });
        if (isOnlyTenant && isKnown && action.deleted !== deleted) return [];
        return this.#advance(moment, called, stored, deleted > 0, isKnown, undefined);
      }
      case 'failover': {
        // Any state from then on: nobody knows which was the last that arrived.
        const { syncedAt, epoch } = action;
        const candidates = momentsSince(moment, ({ at }) => at > syncedAt);
        const begin = this.#begins.get(epoch);
        // What lies between what was kept and the first position that is known must be of writes that were told none.
        return candidates
          .filter(
            ({ state: { revision } }) =>
              begin === undefined ||
              (revision < begin.revision && revision >= begin.revision - 1 - begin.unowned),
          )
          .map((one) => ({ ...one.state, epoch }));
      }
      case 'read':
        throw new Error('a read changes nothing');
    }
  }

  answers(moment: Moment<ShardState>, { operation, called }: Timed<Operation>): boolean {
    const { action } = operation;
    if (action.kind !== 'read') throw new Error('only a read has an answer');
    const first = moment.state;
    // What is wrong with the project is said before what is wrong with the token, as one of a lost history.
    const isOfLost = action.atLeast !== undefined && action.atLeast.epoch !== first.epoch;
    const atLeast = action.answer === SUSPENDED && isOfLost ? undefined : action.atLeast;
    if (
      (atLeast === undefined || isReached(first, atLeast)) &&
      this.#fits(first, first.settings, operation)
    ) {
      return true;
    }
    const past =
      atLeast === undefined
        ? momentsSince(moment, ({ at }) => at > called)
        : this.#momentsReached(moment, atLeast, called);
    // A read without a token may not see settings from before its call either.
    const oldest =
      atLeast === undefined ? Math.min(...past.map(({ state }) => state.settings.count)) : 0;
    const lowest = Math.max(oldest, Math.min(...past.map(({ state }) => state.floor)));
    const settings = distinctSince(first.settings, lowest);
    return past.some(({ state }) => {
      const from = Math.max(oldest, state.floor);
      return settings.some((one) => one.count >= from && this.#fits(state, one, operation));
    });
  }

  /** Settings and tuples are rows of their own: a change of the one never has to wait for one of the other. */
  mayMatter(state: ShardState, mutation: Operation, wanted: Operation): boolean {
    if (mutation.action.kind === 'failover') return true;
    if (wanted.action.kind === 'failover') {
      // What was lost with the old history matters only to who saw it there, or was told its position.
      const { action: lost } = mutation;
      const { epoch } = wanted.action;
      return lost.kind === 'write' && lost.reached !== undefined && lost.reached.epoch < epoch;
    }
    const isOfSettings = mutation.action.kind === 'settings';
    const { action } = wanted;
    if (action.kind !== 'read') return isOfSettings === (action.kind === 'settings');
    if (!isOfSettings) return action.answer !== SUSPENDED;
    const isAboutSuspension = state.settings.isSuspended !== (action.answer === SUSPENDED);
    return isAboutSuspension || this.#options.dependsOnModel(action.query);
  }

  twinKey({ action, lostIn }: Operation): string | undefined {
    if (action.kind !== 'settings') return undefined;
    return `${action.model} ${action.isSuspended} ${lostIn}`;
  }

  /** What a read would have been answered in `state`: for reports. */
  answerIn({ contents, settings }: ShardState, operation: Operation): string {
    const { action } = operation;
    if (action.kind !== 'read') return '';
    if (settings.isSuspended) return SUSPENDED;
    return this.#answer(contents, settings.model, action.query, operation.calledMs);
  }

  /**
   * Where the object was from `position` on, in the history that it names. One that was lost is answered from for as long
   * as an instance may not have heard of it: the failover is not over before none can.
   */
  #momentsReached(
    last: Moment<ShardState>,
    position: Position,
    called: number,
  ): readonly Moment<ShardState>[] {
    const isOver = called > (this.#overAt.get(position.epoch) ?? Infinity);
    const isLater = ({ epoch }: ShardState): boolean => epoch !== position.epoch && !isOver;
    return momentsSince(last, ({ state }) => isReached(state, position) || isLater(state)).filter(
      ({ state }) => isReached(state, position),
    );
  }

  /** Whether an effective write whose token says `reached` can be the next one. */
  #isNext({ epoch, revision }: ShardState, reached: Position | undefined): boolean {
    if (reached === undefined)
      return !this.#owned.has(positionText({ epoch, revision: revision + 1 }));
    return reached.revision === revision + 1 && reached.epoch === epoch;
  }

  #advance(
    { state, ...moment }: Moment<ShardState>,
    called: number,
    stored: Stored,
    isEffective: boolean,
    isKnown: boolean,
    reached: Position | undefined,
  ): readonly ShardState[] {
    if (!isEffective) {
      // Whether one without effect happened is all the same, unless a result says where.
      if (!isKnown) return [];
      const isHere =
        reached === undefined ||
        (reached.revision === state.revision && reached.epoch === state.epoch);
      return isHere ? [state] : [];
    }
    const revision = state.revision + 1;
    if (!this.#isNext(state, reached)) return [];
    const past = momentsSince({ state, ...moment }, ({ at }) => at > called);
    const seen = Math.min(...past.map((one) => one.state.settings.count));
    const floor = Math.max(state.floor, seen);
    return [{ ...state, contents: this.#intern(stored), revision, floor }];
  }

  #fits({ contents }: ShardState, settings: Settings, operation: Operation): boolean {
    const { action, calledMs, returnedMs } = operation;
    if (action.kind !== 'read') return false;
    if (settings.isSuspended || action.answer === SUSPENDED) {
      return settings.isSuspended && action.answer === SUSPENDED;
    }
    let verdicts = this.#verdicts.get(operation);
    if (verdicts === undefined) this.#verdicts.set(operation, (verdicts = new Map()));
    const key = contents.id * this.#options.universe.models.length + settings.model;
    const known = verdicts.get(key);
    if (known !== undefined) return known;
    const { clockBoundMs } = this.#options;
    const fromMs = calledMs - clockBoundMs;
    const untilMs = returnedMs + clockBoundMs;
    // The answer changes at the ends of what expires meanwhile, and nowhere else.
    const ends = contents.ends.filter((value) => value > fromMs && value <= untilMs);
    const isFit = [fromMs, ...ends].some(
      (nowMs) => this.#answer(contents, settings.model, action.query, nowMs) === action.answer,
    );
    if (verdicts.size >= VERDICTS_MAX) verdicts.clear();
    verdicts.set(key, isFit);
    return isFit;
  }

  #answer({ id, stored, ends }: Contents, model: number, query: Query, nowMs: number): string {
    const expiring = ends.map((value) => (value > nowMs ? '1' : '0'));
    const key = `${id} ${model} ${expiring.join('')} ${this.#textOf(query)}`;
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = this.#options.evaluator.answer(stored, model, query, nowMs);
    if (this.#answers.size >= ANSWERS_MAX) this.#answers.clear();
    this.#answers.set(key, answer);
    return answer;
  }

  #textOf(query: Query): string {
    const known = this.#queryTexts.get(query);
    if (known !== undefined) return known;
    const text = JSON.stringify(query);
    this.#queryTexts.set(query, text);
    return text;
  }

  #intern(stored: Stored): Contents {
    const key = tuplesText(
      stored.map((value, index) => [index, value] as const).filter(([, v]) => v !== 0),
    );
    const known = this.#contents.get(key);
    if (known !== undefined) return known;
    const ends = stored.filter((value) => value > 1);
    const contents = { id: this.#contents.size, stored, ends };
    this.#contents.set(key, contents);
    return contents;
  }
}

const ANSWERS_MAX = 500_000;
/** Of one read. */
const VERDICTS_MAX = 10_000;

/** The lowest position of an epoch that somebody was told, and how many that nobody was told can lie before it. */
type Beginning = { readonly revision: number; readonly unowned: number };

function beginningsOf(history: readonly Operation[]): ReadonlyMap<number, Beginning> {
  const begins = new Map<number, Beginning>();
  for (const { action, called } of history) {
    if (action.kind !== 'failover') continue;
    const { epoch } = action;
    const owners = history.flatMap((one) =>
      ownedPositions(one)
        .filter((position) => position.epoch === epoch)
        .map(({ revision }) => ({ revision, returned: one.returned })),
    );
    const [first] = owners.toSorted((a, b) => a.revision - b.revision);
    if (first === undefined) continue;
    const unowned = history.filter(
      (one) =>
        mayMove(one) &&
        one.called < first.returned &&
        (one.returned > called || one.outcome === 'unknown'),
    ).length;
    begins.set(epoch, { revision: first.revision, unowned });
  }
  return begins;
}

/** Whether it may have taken a position that nobody was told. */
function mayMove(operation: Operation): boolean {
  const { action, outcome, found } = operation;
  if (outcome === 'refused' || found === 'absent') return false;
  if (action.kind === 'deprovision') return true;
  return action.kind === 'write' && ownedPositions(operation).length === 0;
}

/** One that inserts has an effect, whatever is stored. */
function ownedPositions({ action }: Operation): readonly Position[] {
  if (action.kind !== 'write' || action.reached === undefined) return [];
  return isAlwaysEffective(action.updates) ? [action.reached] : [];
}

/** Each failover ends the epoch that the one before it began; `first` is that of the beginning. */
function endsOfEpochs(history: readonly Operation[], first: number): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  let epoch = first;
  for (const { action, returned } of history.toSorted((a, b) => a.called - b.called)) {
    if (action.kind !== 'failover') continue;
    ends.set(epoch, returned);
    ({ epoch } = action);
  }
  return ends;
}

function positionText({ epoch, revision }: Position): string {
  return `${epoch} ${revision}`;
}

function isReached({ epoch, revision }: ShardState, position: Position): boolean {
  return epoch === position.epoch && revision >= position.revision;
}

/** `last`, all before it for which `isAfter` says yes, and the first ones for which it says no. */
function momentsSince(
  last: Moment<ShardState>,
  isAfter: (moment: Moment<ShardState>) => boolean,
): readonly Moment<ShardState>[] {
  const seen = new Set([last]);
  for (const moment of seen) {
    if (!isAfter(moment)) continue;
    for (const earlier of moment.before) seen.add(earlier);
  }
  return [...seen];
}

/** Of the settings from the last ones back to number `lowest`, the newest of each kind. */
function distinctSince(last: Settings, lowest: number): readonly Settings[] {
  const found: Settings[] = [];
  for (
    let one: Settings | undefined = last;
    one !== undefined && one.count >= lowest;
    one = one.before
  ) {
    const { model, isSuspended } = one;
    const isKnown = found.some(
      (newer) => newer.model === model && newer.isSuspended === isSuspended,
    );
    if (!isKnown) found.push(one);
  }
  return found;
}
