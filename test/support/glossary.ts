/* The words of the code: what each means, and which ones it replaces. */

/** Where a banned word stays, and why. */
type Exception = readonly [path: RegExp, reason: string];

/** One row of the glossary. */
export type Term = {
  readonly word: string;
  readonly meaning: string;
  /** Words that say the same and are not used. */
  readonly not: string;
  /** The banned words among those that a name is made of, or a whole name; absent: none can be found by its letters. */
  readonly names?: RegExp | undefined;
  /** The same in comments. */
  readonly comments?: RegExp | undefined;
  /** Paths that the row is about; absent: all of src. */
  readonly where?: RegExp | undefined;
  readonly except?: readonly Exception[] | undefined;
};

const ROWS_OF_SQL: Exception = [/^src\/store\//, 'a row has the names of its columns'];
const RUNNER_EVENTS: Exception = [
  /^src\/(runner|notify)\//,
  'the number of an event in its stream, as callers see it',
];
const WIRE_QUESTIONS = 'names of settings, series and protos';

export const GLOSSARY: readonly Term[] = [
  {
    word: 'revision',
    meaning: 'the count of changes that a shard has had',
    not: 'seq',
    names: /^(seqs?)$/,
    comments: /\bseqs?\b/i,
    except: [
      ROWS_OF_SQL,
      RUNNER_EVENTS,
      [
        /^src\/authz\/logs\/audit-|^src\/services\/writes\/commit-publisher/,
        'a field of the audit log',
      ],
      [/^src\/cache\/index-audit/, 'the number of a step of an audit'],
      [/^src\/assertions\//, 'a sequence in YAML'],
    ],
  },
  {
    word: 'minRevision',
    meaning: 'the revision that a read must see at least',
    not: 'minSeq',
    names: /^min_seq$/,
  },
  {
    word: 'fork id',
    meaning: 'the number that distinguishes two histories with equal revisions',
    not: 'stamp',
    names: /^(stamps?|stamped)$/,
    comments: /\bstamps?\b/i,
    except: [
      ROWS_OF_SQL,
      [/^src\/runner\//, 'the time and size of a file, and a mark that git or a store makes'],
    ],
  },
  {
    word: 'head revision',
    meaning: 'the highest revision of a shard that is known',
    not: 'shard head',
    names: /^shard_heads?$/,
  },
  {
    word: 'local replica',
    meaning: 'an index of a shard on the thread of the gateway',
    not: 'near',
    names: /^near$/,
    comments: /\bnear hosts?\b/i,
    where: /^src\/(workers|authz|protocol)\//,
  },
  {
    word: 'replicate',
    meaning: 'let several workers answer for a hot shard',
    not: 'spread',
    names: /^(spread|spreads|spreading)$/,
    comments: /\b(spread|spreads|spreading)\b/i,
    where: /^src\/(workers|authz)\//,
  },
  {
    word: 'pack',
    meaning: 'keep the tuples of a small shard in few bytes',
    not: 'fold',
    names: /^(fold|folds|folded|folding)$/,
    comments: /\b(fold|folds|folded|folding)\b/i,
    where: /^src\/(workers|cache)\//,
  },
  {
    word: 'hydrate',
    meaning: 'make an index of packed tuples',
    not: 'unfold',
    names: /^unfold/,
    comments: /\bunfold/i,
  },
  {
    word: 'undetermined',
    meaning: 'the value of a decision whose search ended at a limit',
    not: 'cut',
    names: /^(CUT|is_depth_cut)$/,
    where: /^src\/(engine|workers)\//,
  },
  {
    word: 'ancestors',
    meaning: 'the objects above an object, and what they grant, in a cache',
    not: 'chain',
    names: /^chains?$/,
    comments: /\bchains?\b/i,
    where: /^src\/engine\/hot\//,
  },
  {
    word: 'memberships',
    meaning: 'the groups that hold a user, directly or not, in a cache',
    not: 'closure',
    names: /^closures?$/,
    comments: /\bclosures?\b/i,
    where: /^src\/(engine|workers)\//,
  },
  {
    word: 'query',
    meaning: 'what is asked of a shard beyond a Check',
    not: 'question',
    names: /^questions?$/,
    comments: /\bquestions?\b/i,
    except: [
      [/^src\/(runner|notify)\//, 'a question to a person or to a host'],
      [/^src\/(authz|cli|config|requests)\//, WIRE_QUESTIONS],
      [/^src\/gateway\/(budgets|callers|models|openfga|queries|rpc|reads)\//, WIRE_QUESTIONS],
    ],
  },
  {
    word: 'report',
    meaning: 'say something to an operator or a caller',
    not: 'tell',
    names: /^(tell|tells|told|telling|untold)$/,
    comments: /\b(tell|tells|told|telling)\b/i,
  },
  {
    word: 'emit',
    meaning: 'pass an event on to whoever listens',
    not: 'announce',
    names: /^announce/,
    comments: /\bannounce(?!ments\.test)/i,
  },
  {
    word: 'apply',
    meaning: 'do what a message asks for',
    not: 'obey',
    names: /^obey/,
    comments: /\bobey/i,
  },
  {
    word: 'release',
    meaning: 'return what was taken: a lock, a place, memory',
    not: 'let go, give back',
    names: /^(let_go|give_back|give_back_table)$/,
    comments: /\b(lets? go|g[ia]v(e|es|en|ing) back)\b/i,
  },
  {
    word: 'acquire',
    meaning: 'get the use of memory, an index or a slot until it is released',
    not: 'lend, borrow',
    names: /^(lend|lends|lent|borrow|borrows|borrower)$/,
    comments: /\b(lends?|lent|borrow(s|ed|er|ing)?)\b/i,
    where: /^src\/(?!runner|notify)/,
  },
  {
    word: 'pending',
    meaning: 'waiting for an answer of the database or of a worker',
    not: 'parked',
    names: /^(park|parks|parked)$/,
    comments: /\bpark(s|ed)?\b/i,
    where: /^src\/(?!runner|notify)/,
  },
  {
    word: 'watermark',
    meaning: 'the revision that an index has reached, and may have shown to callers',
    not: 'shown',
    names: /^shown$/,
    where: /^src\/(workers|protocol)\//,
  },
  {
    word: 'cause',
    meaning: 'a condition, tuple or limit for which a decision is a deny',
    not: 'blame',
    names: /^blames?$/,
    where: /^src\/engine\//,
  },
  {
    word: 'adopt',
    meaning: 'go on with what somebody else began or held',
    not: 'take over',
    names: /^(take_over|taken_over|is_taken_over)$/,
    comments: /\b(take|takes|taken|took|taking) over\b/i,
  },
  {
    word: 'matrix job',
    meaning: 'one job of the matrix of a workflow',
    not: 'leg',
    names: /^legs?$/,
    comments: /\blegs?\b/i,
  },
  {
    word: 'registry',
    meaning: 'what keeps things by their names: runs, tools',
    not: 'shelf',
    names: /^(shelf|shelves)$/,
    comments: /\b(shelf|shelves)\b/i,
  },
  {
    word: 'kill escalation',
    meaning: 'signals of a cancel, each stronger than the one before',
    not: 'ladder',
    names: /^ladders?$/,
    comments: /\bladders?\b/i,
  },
  {
    word: 'subreaper',
    meaning: 'the process that the kernel gives orphans to',
    not: 'warden',
    names: /^wardens?$/,
    comments: /\bwardens?\b/i,
  },
  {
    word: 'token bucket',
    meaning: 'what bounds a rate, with a burst',
    not: 'purse',
    names: /^purses?$/,
    comments: /\bpurses?\b/i,
  },
  {
    word: 'refill',
    meaning: 'add to a token bucket over time',
    not: 'earn',
    names: /^(earn|earns|earned)$/,
    comments: /\bearn(s|ed)?\b/i,
  },
  {
    word: 'expensive',
    meaning: 'what takes much time or memory',
    not: 'dear',
    names: /^(dear|dearer)$/,
    comments: /\bdear(er|est)?\b/i,
  },
  {
    word: 'canAcquire',
    meaning: 'whether a bucket or a bound admits one more',
    not: 'hasRoom',
    names: /^has_room(_for)?$/,
  },
  {
    word: 'capacity',
    meaning: 'how much a table or a buffer can hold',
    not: 'room',
    names: /^rooms?$/,
  },
  {
    word: 'layer',
    meaning: 'modules that import only from those below',
    not: 'floor',
    names: /^floors?$/,
    comments: /\bfloors?\b/i,
    except: [
      [/^src\/runner\/(settings|wiring|storage|host)\//, 'the name of a setting'],
      [/^src\/runner\/(text|ui)\//, 'a number that is rounded down'],
    ],
  },
  {
    word: 'module',
    meaning: 'the files of one folder, with one row in the import table',
    not: 'house, room of code',
    names: /^houses?$/,
    comments: /\bhouses?\b/i,
  },
  {
    word: 'api, ui, cli',
    meaning: 'what programs, people and terminals call',
    not: 'face',
    names: /^faces?$/,
    comments: /\bfaces?\b/i,
  },
  {
    word: 'wiring',
    meaning: 'code that makes the parts of a service and connects them',
    not: 'runner parts',
    names: /^(runner_parts|parts_basis|parts_options)$/,
  },
];
