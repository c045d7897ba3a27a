import {
  type MemberState,
  NOBODY,
  acknowledged,
  becameAlone,
  ended,
  isAloneAt,
  nextStatement,
  registered,
  registering,
  renewed,
} from '../../src/store/membership/member-state.ts';

/*
 * The protocol of instances on one shard, small enough to be explored whole. What an instance makes of an
 * answer is the production code (member-state.ts); what the database does with a statement, and what heads and
 * writers do, is modelled. Every order of events is tried: a pause is an event that does not come yet.
 *
 * Checked in each state: an instance that answers from memory answers at least what anybody was told before.
 */

/** Rules that can be left out, to see that each is needed. */
export const RULES = [
  'a write looks for its own row',
  'a write looks for its own row under the fence lock',
  'an ended lease is deleted, not ignored',
  'a renewal makes no row',
  'each registration has a new id',
  'nothing is written before all others are in shared mode',
  'registering holds the fence lock',
  'alone is left before it is acknowledged',
  'an acknowledgement names the term',
  'becoming alone waits for what was let in',
  'becoming alone forgets heads',
  'becoming alone forgets queries under way',
  'the claim counts from before the renewal was sent',
  'the claim ends before the lease',
  'commits under way are hidden',
  'commits under way are hidden when becoming alone',
  'an unknown outcome stays hidden',
] as const;
export type Rule = (typeof RULES)[number];

/**
 * Where an exploration begins; all can be reached from nothing. `late`: shared, with an acknowledgement of
 * before still on its way over a lost connection.
 */
export type Start = 'alone' | 'shared' | 'two' | 'late';

export type Bounds = {
  readonly start: Start;
  readonly instances: number;
  readonly writes: number;
  readonly ids: number;
  readonly crashes: number;
  readonly losses: number;
  readonly leaves: number;
  readonly queries: number;
};

type Answer =
  | { readonly kind: 'row'; isShared: boolean; mayWrite: boolean; term: number; others: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'term'; readonly term: number | undefined };
type StatementKind = 'register' | 'renew' | 'acknowledge' | 'become alone' | 'leave';
type Statement = {
  kind: StatementKind;
  id: string;
  term: number;
  former: readonly string[];
  /** Less than the time of a claim has passed since it was sent. */
  isFresh: boolean;
  /** `inserted`: a registration that holds the fence lock and is not visible yet. */
  phase: 'sent' | 'inserted' | 'done';
  answer: Answer | null;
};
type Row = { id: string; isShared: boolean; mayWrite: boolean; term: number; isLive: boolean };
type Transaction = {
  write: number;
  id: string;
  by: number;
  phase: 'sent' | 'looked' | 'let in' | 'committed' | 'refused';
  /** Looks for its commit id first. */
  isAgain: boolean;
  isHeard: boolean;
};
type Write = { write: number; isSent: boolean; isUnknown: boolean; isHidden: boolean };
type Query = { head: number; raised: number; isForgotten: boolean };
type Instance = {
  member: MemberState;
  statement: Statement | null;
  minRevision: number | null;
  query: Query | null;
  write: Write | null;
  hasLeft: boolean;
};

/** Everything there is. Plain data. */
export type World = {
  rows: Row[];
  /** By write: its revision, or 0. */
  revisions: number[];
  head: number;
  instances: Instance[];
  /** Statements whose connection is gone: they may still be done. */
  orphans: Statement[];
  transactions: Transaction[];
  /** The highest revision that anybody was told of. */
  told: number;
  spent: {
    writes: number;
    ids: number;
    crashes: number;
    losses: number;
    leaves: number;
    queries: number;
  };
};

/** A name that says which event; equal names in equal worlds are equal events. */
export type Step = { readonly name: string; readonly world: World };

const LEASE_MS = 10;
const NOW_MS = 1;
const LONG_AGO_MS = -100;

/** The world at the start: the first instance is registered, and in `two` the second; others are not. */
export function firstWorld(bounds: Bounds): World {
  const { start } = bounds;
  const isAlone = start === 'alone';
  const members = start === 'two' ? 2 : 1;
  const ids = ['0', '1'].slice(0, members);
  return {
    rows: ids.map((id) => ({ id, isShared: !isAlone, mayWrite: true, term: 1, isLive: true })),
    revisions: Array.from({ length: bounds.writes }, () => 0),
    head: 0,
    instances: Array.from({ length: bounds.instances }, (_, index) => {
      const id = ids[index];
      if (id === undefined) return freshInstance();
      const claimUntilMs = isAlone ? LEASE_MS - 1 : 0;
      const others = members - 1;
      const member = { ...NOBODY, id, mayWrite: true, isAlone, term: 1, others, claimUntilMs };
      return { ...freshInstance(), member };
    }),
    orphans: start === 'late' ? [{ ...statementOf('acknowledge', '0'), term: 1 }] : [],
    transactions: [],
    told: 0,
    spent: { writes: 0, ids: 0, crashes: 0, losses: 0, leaves: 0, queries: 0 },
  };
}

function statementOf(kind: StatementKind, id: string): Statement {
  return { kind, id, term: 0, former: [], isFresh: true, phase: 'sent', answer: null };
}

function copyOf(world: World): World {
  return {
    rows: world.rows.map((row) => ({ ...row })),
    revisions: [...world.revisions],
    head: world.head,
    instances: world.instances.map((one) => ({
      member: one.member,
      statement: one.statement === null ? null : { ...one.statement },
      minRevision: one.minRevision,
      query: one.query === null ? null : { ...one.query },
      write: one.write === null ? null : { ...one.write },
      hasLeft: one.hasLeft,
    })),
    orphans: world.orphans.map((one) => ({ ...one })),
    transactions: world.transactions.map((one) => ({ ...one })),
    told: world.told,
    spent: { ...world.spent },
  };
}

/** Numbers of what is never changed in place, and met in thousands of worlds; equal parts have equal ones. */
const numbers = new WeakMap<object, number>();
const numberByText = new Map<string, number>();

function numberOf(part: object | null): number {
  if (part === null) return 0;
  let number = numbers.get(part);
  if (number === undefined) {
    const text = JSON.stringify(Object.values(part));
    number = numberByText.get(text) ?? numberByText.size + 1;
    numberByText.set(text, number);
    numbers.set(part, number);
  }
  return number;
}

function bits(a: boolean, b = false, c = false): string {
  return (a ? '+' : '-') + (b ? '+' : '-') + (c ? '+' : '-');
}

function statementText(one: Statement | null): string {
  if (one === null) return ';';
  const { kind, id, term, former, isFresh, phase, answer } = one;
  return `;${kind} ${id} ${term} ${former.join()} ${phase} ${bits(isFresh)} ${numberOf(answer)}`;
}

/** A text that only equal worlds have. Names every field there is: JSON of whole worlds takes most of an exploration. */
export function keyOf({ spent, ...world }: World): string {
  let key = `${world.head} ${world.told} ${world.revisions.join()} ${spent.writes} ${spent.ids} ${spent.crashes} ${spent.losses} ${spent.leaves} ${spent.queries}`;
  for (const { id, term, isShared, mayWrite, isLive } of world.rows) {
    key += `;${id} ${term} ${bits(isShared, mayWrite, isLive)}`;
  }
  for (const { member, statement, minRevision, query, write, hasLeft } of world.instances) {
    key += `|${numberOf(member)} ${minRevision} ${bits(hasLeft)}${statementText(statement)};`;
    if (query !== null) key += `${query.head} ${query.raised} ${bits(query.isForgotten)}`;
    if (write === null) continue;
    key += `;${write.write} ${bits(write.isSent, write.isUnknown, write.isHidden)}`;
  }
  for (const orphan of world.orphans) key += `|${statementText(orphan)}`;
  for (const { write, id, by, phase, isAgain, isHeard } of world.transactions) {
    key += `|${write} ${id} ${by} ${phase} ${bits(isAgain, isHeard)}`;
  }
  return key;
}

function freshInstance(): Instance {
  return {
    member: NOBODY,
    statement: null,
    minRevision: null,
    query: null,
    write: null,
    hasLeft: false,
  };
}

/** What an instance would answer from memory in this world, below what somebody was told; or undefined. */
export function staleAnswer(world: World): string | undefined {
  for (const [index, { member, minRevision, write }] of world.instances.entries()) {
    if (!isAloneAt(member, NOW_MS) || minRevision === null || write?.isHidden === true) continue;
    if (minRevision < world.told)
      return `instance ${index} answers ${minRevision} after ${world.told}`;
  }
  return undefined;
}

/** Every event that can come next. */
export function stepsOf(world: World, bounds: Bounds, without: ReadonlySet<Rule>): Step[] {
  return new Explorer(world, bounds, without).steps();
}

class Explorer {
  readonly #world: World;
  readonly #bounds: Bounds;
  readonly #without: ReadonlySet<Rule>;
  readonly #steps: Step[] = [];

  constructor(world: World, bounds: Bounds, without: ReadonlySet<Rule>) {
    this.#world = world;
    this.#bounds = bounds;
    this.#without = without;
  }

  steps(): Step[] {
    this.#world.instances.forEach((instance, index) => {
      this.#statements(instance, index);
      this.#time(instance, index);
      this.#writes(instance, index);
      this.#queries(instance, index);
      this.#ends(instance, index);
    });
    this.#world.orphans.forEach((orphan, index) => {
      if (this.#canExecute(orphan)) {
        this.#add(`orphan ${index} ${orphan.kind} is done`, (next) => {
          const statement = next.orphans[index] as Statement;
          this.#execute(next, statement);
          if (statement.phase === 'done') next.orphans.splice(index, 1);
        });
      }
    });
    this.#world.transactions.forEach((transaction, index) => this.#advance(transaction, index));
    this.#world.rows.forEach((row, index) => {
      if (!row.isLive || !this.#mayLapse(row)) return;
      this.#add(
        `lease of ${row.id} ends`,
        (next) => void ((next.rows[index] as Row).isLive = false),
      );
    });
    return this.#steps;
  }

  #add(name: string, change: (next: World) => void): void {
    const world = copyOf(this.#world);
    change(world);
    this.#steps.push({ name, world });
  }

  #has(rule: Rule): boolean {
    return !this.#without.has(rule);
  }

  /** The claim of its owner ends before the lease, by the clocks. */
  #mayLapse(row: Row): boolean {
    if (!this.#has('the claim ends before the lease')) return true;
    return this.#world.instances.every(({ member, statement }) => {
      if (member.id !== row.id && statement?.id !== row.id) return true;
      const mayClaim = statement?.id === row.id && statement.isFresh && statement.phase === 'done';
      return !(member.id === row.id && isAloneAt(member, NOW_MS)) && !mayClaim;
    });
  }

  #statements({ member, statement, hasLeft }: Instance, index: number): void {
    if (statement === null) {
      if (hasLeft) return;
      const kind = nextStatement(member);
      if (kind !== 'register' && this.#isOfUse(member)) this.#send(index, 'renew');
      if (kind === 'register' && this.#world.spent.ids >= this.#bounds.ids) return;
      if (kind !== 'renew') this.#send(index, kind);
      return;
    }
    if (statement.phase !== 'done') {
      if (!this.#canExecute(statement)) return;
      this.#add(`${statement.kind} of ${index} is done`, (next) => {
        this.#execute(next, next.instances[index]?.statement as Statement);
      });
    } else {
      this.#add(`${statement.kind} of ${index} is answered`, (next) => this.#answer(next, index));
    }
  }

  #send(index: number, kind: StatementKind): void {
    this.#add(`${index} sends ${kind}`, (next) => {
      const instance = next.instances[index] as Instance;
      const { member } = instance;
      const statement = { ...statementOf(kind, member.id ?? ''), term: member.owedTerm ?? 0 };
      if (kind === 'register') {
        const isNew = this.#has('each registration has a new id');
        next.spent.ids++;
        statement.id = isNew ? `${index}.${next.spent.ids}` : `${index}`;
        statement.former = member.former;
        instance.member = registering(member, statement.id);
      }
      instance.statement = statement;
      // Delayed on the way, it is as if sent later, unless it is lost.
      if (!this.#canBeLost() && this.#canExecute(statement)) this.#execute(next, statement);
    });
  }

  #canBeLost(): boolean {
    const { spent } = this.#world;
    return spent.losses < this.#bounds.losses || spent.crashes < this.#bounds.crashes;
  }

  /** Whether a renewal would change anything; one that would not is as good as one that is sent later. */
  #isOfUse({ id, isAlone, claimUntilMs, others, mayWrite, term }: MemberState): boolean {
    const own = this.#world.rows.find((row) => row.id === id);
    if (own === undefined || !own.isLive || (isAlone && claimUntilMs <= NOW_MS)) return true;
    const rest = this.#world.rows.filter((row) => row.id !== id);
    if (rest.some((row) => !row.isLive) || rest.length !== others) return true;
    if (!mayWrite && (own.mayWrite || rest.every((row) => row.isShared))) return true;
    return own.term !== term || own.isShared === isAlone;
  }

  #canExecute(statement: Statement): boolean {
    if (
      statement.kind !== 'become alone' ||
      !this.#has('becoming alone waits for what was let in')
    ) {
      return true;
    }
    const { transactions, instances, orphans } = this.#world;
    const isRegistering = (one: Statement | null): boolean => one?.phase === 'inserted';
    return !(
      transactions.some(({ phase }) => phase === 'let in') ||
      (this.#has('registering holds the fence lock') &&
        (instances.some((one) => isRegistering(one.statement)) || orphans.some(isRegistering)))
    );
  }

  #execute(next: World, statement: Statement): void {
    const { id } = statement;
    const own = next.rows.find((row) => row.id === id);
    if (statement.kind === 'register' && statement.phase === 'sent') {
      next.rows = next.rows.filter((row) => !statement.former.includes(row.id));
      const row = { id, isShared: true, mayWrite: false, term: 0, isLive: true };
      statement.answer = this.#renew(next, own ?? row);
      statement.phase = 'inserted';
      return;
    }
    statement.phase = 'done';
    switch (statement.kind) {
      case 'register': {
        const { answer } = statement;
        const mayWrite = answer?.kind === 'row' && answer.mayWrite;
        if (own === undefined) {
          next.rows.push({ id, isShared: true, mayWrite, term: 0, isLive: true });
        }
        return;
      }
      case 'renew': {
        let row = own;
        if (row === undefined && !this.#has('a renewal makes no row')) {
          row = { id, isShared: false, mayWrite: true, term: 1, isLive: true };
          next.rows.push(row);
        }
        statement.answer = row === undefined ? { kind: 'none' } : this.#renew(next, row);
        return;
      }
      case 'acknowledge': {
        const isTerm =
          own?.term === statement.term || !this.#has('an acknowledgement names the term');
        if (own !== undefined && isTerm) own.isShared = true;
        return;
      }
      case 'become alone': {
        const isOnly = next.rows.every((row) => row.id === id);
        if (own === undefined || !own.mayWrite || !isOnly) {
          statement.answer = { kind: 'term', term: undefined };
          return;
        }
        own.isShared = false;
        own.isLive = true;
        own.term++;
        statement.answer = { kind: 'term', term: own.term };
        return;
      }
      case 'leave':
        next.rows = next.rows.filter((row) => row.id !== id);
    }
  }

  #renew(next: World, own: Row): Answer {
    own.isLive = true;
    if (this.#has('an ended lease is deleted, not ignored')) {
      next.rows = next.rows.filter((row) => row.id === own.id || row.isLive);
    }
    const others = next.rows.filter((row) => row.id !== own.id);
    const isReady = others.every(
      (row) =>
        row.isShared || (!row.isLive && !this.#has('an ended lease is deleted, not ignored')),
    );
    if (isReady || !this.#has('nothing is written before all others are in shared mode')) {
      own.mayWrite = true;
    }
    // As soon as it is asked for, whatever the instance still does.
    if (!this.#has('alone is left before it is acknowledged') && others.length > 0) {
      own.isShared = true;
    }
    const { isShared, mayWrite, term } = own;
    return { kind: 'row', isShared, mayWrite, term, others: others.length };
  }

  #answer(next: World, index: number): void {
    const instance = next.instances[index] as Instance;
    const { statement, member } = instance;
    if (statement === null) return;
    instance.statement = null;
    const { answer, kind } = statement;
    const isFresh =
      statement.isFresh || !this.#has('the claim counts from before the renewal was sent');
    const sentMs = isFresh ? 0 : LONG_AGO_MS;
    const registration =
      answer?.kind === 'row' ? { ...answer, fenced: 0, waitMs: null, databaseUs: 0n } : undefined;
    if (kind === 'register' && registration !== undefined) {
      instance.member = registered(member, statement.id, registration);
      return;
    }
    if (member.id !== statement.id) return;
    if (kind === 'renew') {
      const after = renewed(member, registration, sentMs, LEASE_MS);
      instance.member = this.#isKeptAlone(member, after)
        ? { ...after, isAlone: true, owedTerm: undefined, claimUntilMs: sentMs + LEASE_MS }
        : after;
    } else if (kind === 'acknowledge') {
      instance.member = acknowledged(member);
    } else if (kind === 'become alone' && answer?.kind === 'term') {
      const after = becameAlone(member, answer.term ?? undefined, sentMs, LEASE_MS);
      if (after.isAlone) this.#forget(instance);
      instance.member = after;
    }
  }

  /** An instance that is told of another only once it has answered for itself. */
  #isKeptAlone(before: MemberState, after: MemberState): boolean {
    return (
      !this.#has('alone is left before it is acknowledged') &&
      before.isAlone &&
      after.id !== undefined
    );
  }

  #forget(instance: Instance): void {
    const { write, query } = instance;
    if (write !== null && this.#isOpen(write) && this.#hidesAtAlone()) write.isHidden = true;
    if (this.#has('becoming alone forgets heads')) instance.minRevision = null;
    if (query !== null && this.#has('becoming alone forgets queries under way')) {
      query.isForgotten = true;
    }
  }

  #hidesAtAlone(): boolean {
    return (
      this.#has('commits under way are hidden') &&
      this.#has('commits under way are hidden when becoming alone')
    );
  }

  #isOpen(write: Write): boolean {
    return write.isSent || write.isUnknown;
  }

  #time({ member, statement }: Instance, index: number): void {
    const hasClaim = isAloneAt(member, NOW_MS);
    if (hasClaim) {
      this.#add(`claim of ${index} ends`, (next) => {
        const instance = next.instances[index] as Instance;
        instance.member = { ...instance.member, claimUntilMs: 0 };
      });
    }
    if (statement?.isFresh !== true || hasClaim) return;
    this.#add(`statement of ${index} takes long`, (next) => {
      const late = next.instances[index]?.statement;
      if (late !== null && late !== undefined) late.isFresh = false;
    });
  }

  #writes({ member, write }: Instance, index: number): void {
    const { spent } = this.#world;
    const { id } = member;
    if (
      write === null &&
      spent.writes < this.#bounds.writes &&
      id !== undefined &&
      member.mayWrite
    ) {
      this.#add(`${index} writes`, (next) => {
        this.#sendWrite(next, index, next.spent.writes++, false);
      });
    }
    if (write === null || write.isSent || id === undefined || !member.mayWrite) return;
    this.#add(`${index} writes again`, (next) => {
      const { write: number } = write;
      // The lost session is ended first.
      next.transactions = next.transactions.filter((one) => one.write !== number);
      this.#sendWrite(next, index, number, write.isUnknown);
    });
  }

  #sendWrite(next: World, index: number, write: number, isAgain: boolean): void {
    const instance = next.instances[index] as Instance;
    const id = instance.member.id as string;
    next.transactions.push({ write, id, by: index, phase: 'sent', isAgain, isHeard: true });
    const isHidden =
      isAgain || (instance.member.isAlone && this.#has('commits under way are hidden'));
    instance.write = { write, isSent: true, isUnknown: isAgain, isHidden };
  }

  #advance(transaction: Transaction, index: number): void {
    const { phase, write, by } = transaction;
    const isEarly = !this.#has('a write looks for its own row under the fence lock');
    const at = (next: World): Transaction => next.transactions[index] as Transaction;
    const check = (next: World): boolean => {
      const row = next.rows.find((one) => one.id === transaction.id);
      return row?.mayWrite === true || !this.#has('a write looks for its own row');
    };
    if (phase === 'sent') {
      // In the wrong order it looks before it holds the lock, and is let in whatever happened since.
      this.#add(`write ${write} looks for its row`, (next) => {
        at(next).phase = check(next) ? (isEarly ? 'looked' : 'let in') : 'refused';
      });
    } else if (phase === 'looked') {
      this.#add(`write ${write} is let in`, (next) => void (at(next).phase = 'let in'));
    } else if (phase === 'let in') {
      this.#add(`write ${write} commits`, (next) => {
        at(next).phase = 'committed';
        if (transaction.isAgain && (next.revisions[write] as number) > 0) return;
        next.revisions[write] = ++next.head;
      });
    } else {
      if (!transaction.isHeard) {
        this.#add(`write ${write} is over`, (next) => void next.transactions.splice(index, 1));
        return;
      }
      this.#add(`write ${write} is answered`, (next) => {
        next.transactions.splice(index, 1);
        this.#hear(next, by, transaction);
      });
    }
  }

  #hear(next: World, index: number, { phase, write, id }: Transaction): void {
    const instance = next.instances[index] as Instance;
    const own = instance.write as Write;
    if (phase === 'refused') {
      instance.member = ended(instance.member, id);
      instance.write = { ...own, isSent: false, isHidden: own.isUnknown };
      return;
    }
    const revision = next.revisions[write] as number;
    if (instance.minRevision !== null)
      instance.minRevision = Math.max(instance.minRevision, revision);
    if (instance.query !== null) instance.query.raised = Math.max(instance.query.raised, revision);
    next.told = Math.max(next.told, revision);
    instance.write = null;
  }

  /** Reads that ask the database. */
  #queries({ query, hasLeft }: Instance, index: number): void {
    if (query === null) {
      if (hasLeft) return;
      if (this.#world.spent.queries >= this.#bounds.queries) return;
      this.#add(`${index} reads the head`, (next) => {
        next.spent.queries++;
        (next.instances[index] as Instance).query = {
          head: next.head,
          raised: 0,
          isForgotten: false,
        };
      });
    } else {
      this.#add(`head for ${index} is answered`, (next) => {
        const instance = next.instances[index] as Instance;
        const head = Math.max(query.head, query.raised, instance.minRevision ?? 0);
        if (!query.isForgotten || instance.minRevision !== null) instance.minRevision = head;
        next.told = Math.max(next.told, head);
        instance.query = null;
      });
    }
  }

  /** Crashes, lost connections, leaving. */
  #ends({ member, statement, write, query, hasLeft }: Instance, index: number): void {
    const { spent } = this.#world;
    const { crashes, losses, leaves } = this.#bounds;
    if (!hasLeft && member.id !== undefined && spent.crashes < crashes) {
      this.#add(`${index} crashes`, (next) => {
        next.spent.crashes++;
        this.#orphan(next, index);
        for (const one of next.transactions) if (one.by === index) one.isHeard = false;
        next.instances[index] = freshInstance();
      });
    }
    if (statement !== null && spent.losses < losses) {
      this.#add(`${statement.kind} of ${index} loses its connection`, (next) => {
        next.spent.losses++;
        this.#orphan(next, index);
      });
    }
    if (write?.isSent === true && spent.losses < losses) {
      this.#add(`write of ${index} loses its connection`, (next) => {
        next.spent.losses++;
        for (const one of next.transactions) if (one.by === index) one.isHeard = false;
        const instance = next.instances[index] as Instance;
        instance.write = this.#has('an unknown outcome stays hidden')
          ? { ...write, isSent: false, isUnknown: true, isHidden: true }
          : null;
      });
    }
    const isIdle = statement === null && write === null && query === null;
    if (hasLeft || member.id === undefined || !isIdle || spent.leaves >= leaves) return;
    this.#add(`${index} leaves`, (next) => {
      next.spent.leaves++;
      const instance = freshInstance();
      next.instances[index] = instance;
      instance.hasLeft = true;
      instance.statement = { ...statementOf('leave', member.id ?? ''), isFresh: false };
    });
  }

  /** What was sent and not done yet may still be. */
  #orphan(next: World, index: number): void {
    const instance = next.instances[index] as Instance;
    const { statement } = instance;
    if (statement !== null && statement.phase !== 'done') next.orphans.push(statement);
    instance.statement = null;
  }
}
