import type { CommandTable } from '../core/command.ts';
import { EXIT_NOTES } from '../core/exit-codes.ts';
import { JSON_OUTPUT, READ, ROWS_OUTPUT, TENANT } from '../core/options.ts';

const FILTER = {
  namespace: { value: 'NAME', help: ['of this namespace'] },
  object: { value: 'ID', help: ['of this object; needs --namespace'] },
  relation: { value: 'NAME', help: ['of this relation'] },
  subject: {
    value: 'SUBJECT',
    help: ['of exactly this one: user:ann, user:*, group:eng#member, folder:plans'],
  },
};
const AT_LEAST = { 'at-least': READ['at-least'] };
const FILE = {
  value: 'FILE',
  help: ['tuples, one a line: text, JSON, or an export; - is the standard input'],
};
const UNCHANGED_SINCE = {
  value: 'TOKEN',
  help: ['only if nothing was written to the tenant after this token'],
};
const IDEMPOTENCY_KEY = {
  value: 'KEY',
  help: ['the same write under this key is applied once, also sent again'],
};
const ALL_TENANTS = { help: ['of every tenant of the project'] };
const TUPLES_WORD = {
  '<tuple>...': 'namespace:object#relation@subject, as doc:plan#viewer@user:ann',
};

/** Commands about stored tuples. */
export const TUPLES: CommandTable = {
  write: {
    summary: 'Writes tuples, all of them or none.',
    usage: ['write <tuple>... [options]', 'write --file FILE [options]'],
    words: TUPLES_WORD,
    options: {
      file: FILE,
      'expires-at': { value: 'TIME', help: ['2031-01-01T00:00:00Z: they grant nothing after it'] },
      condition: { value: 'NAME', help: ['they grant only where this condition holds'] },
      params: { value: 'JSON', help: ['of the condition, as an object; @FILE reads a file'] },
      mode: {
        value: 'MODE',
        help: [
          'absent: refused if one is stored; absent-or-identical: refused if',
          'one is stored otherwise; default: what is stored is replaced',
        ],
      },
      'unchanged-since': UNCHANGED_SINCE,
      'idempotency-key': IDEMPOTENCY_KEY,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: `Expiry and condition are given to tuples that have none in their file. A request carries 1,000 tuples
(GATEWAY_MAX_WRITE_UPDATES); gatehouse import takes any number.
${EXIT_NOTES}`,
    examples: [
      'gatehouse write doc:plan#viewer@user:ann doc:plan#editor@group:eng#member',
      'gatehouse write doc:plan#viewer@user:bob --expires-at 2031-01-01T00:00:00Z --mode absent',
      'echo doc:plan#owner@user:ann | gatehouse write --file - --idempotency-key make-plan-1',
    ],
    load: async () => (await import('./write-tuples.ts')).writeTuples,
  },
  delete: {
    summary: 'Deletes tuples: those that are named, or all that a filter takes.',
    usage: [
      'delete <tuple>... [options]',
      'delete --file FILE [options]',
      'delete --namespace NAME [--object ID | --whole-namespace] [options]',
      'delete --whole-tenant [options]',
    ],
    words: TUPLES_WORD,
    options: {
      file: FILE,
      mode: { value: 'MODE', help: ['present: refused if one of the named is not stored'] },
      'idempotency-key': { ...IDEMPOTENCY_KEY, help: [...IDEMPOTENCY_KEY.help, 'of those named'] },
      ...FILTER,
      'whole-namespace': { help: ['a filter without --object means every object'] },
      'whole-tenant': { help: ['a filter without --namespace means every namespace'] },
      'dry-run': { help: ['counts what the filter takes, and deletes nothing'] },
      'count-max': { value: 'N', help: ['refused if the filter takes more'] },
      'unchanged-since': UNCHANGED_SINCE,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: `Named tuples are deleted all or none; one that is not stored is passed over. A filter deletes in chunks:
after an error some may be gone, and the same command goes on. Nothing is asked; try --dry-run first.
${EXIT_NOTES}`,
    examples: [
      'gatehouse delete doc:plan#viewer@user:ann --mode present',
      'gatehouse delete --namespace doc --object plan --dry-run',
      'gatehouse delete --whole-tenant --subject user:ann --count-max 100',
    ],
    load: async () => (await import('./write-tuples.ts')).deleteTuples,
  },
  read: {
    summary: 'Shows stored tuples with their expiry and condition; evaluates nothing.',
    usage: ['read [options]'],
    words: {},
    options: {
      ...FILTER,
      limit: { value: 'N', help: ['tuples at most; default 1000, 0 is all'] },
      ...AT_LEAST,
      ...ROWS_OUTPUT,
      ...TENANT,
    },
    notes: `In the order of their keys, at one revision. Tuples that have expired are stored until they are purged.
${EXIT_NOTES}`,
    examples: [
      'gatehouse read --namespace doc --object plan',
      'gatehouse read --subject user:ann --limit 0 --jsonl',
    ],
    load: async () => (await import('./read-tuples.ts')).readTuples,
  },
  export: {
    summary: 'Exports tuples, however many, as lines of JSON.',
    usage: ['export [--out FILE] [options]'],
    words: {},
    options: {
      out: {
        value: 'FILE',
        help: ['FILE.part until all of it has come; default: standard output'],
      },
      resume: { help: ['goes on with the FILE.part that is there'] },
      ...FILTER,
      'all-tenants': ALL_TENANTS,
      'written-at': { help: ['also says when each was first written'] },
      retries: { value: 'N', help: ['goes on so often after a lost connection; default 5'] },
      ...AT_LEAST,
      ...TENANT,
    },
    notes: `A connection that is lost is made again, and the export goes on behind the last whole part. If the tenant was
written to meanwhile, a note says so: the file is not of one revision then. Each part has a SHA-256
digest, which is checked; an export without its last line ends with 4. gatehouse import takes the file.
${EXIT_NOTES}`,
    examples: [
      'gatehouse export --namespace doc --out doc.ndjson',
      'gatehouse export --all-tenants --written-at | gzip > atlas.ndjson.gz',
      'gatehouse export --out all.ndjson --resume',
    ],
    load: async () => (await import('./export-tuples.ts')).exportTuples,
  },
  import: {
    summary: 'Imports tuples, however many, from lines of JSON.',
    usage: ['import <file> [options]'],
    words: { '<file>': 'an export, or tuples of JSON, one a line; - is the standard input' },
    options: {
      'import-id': {
        value: 'ID',
        help: ['the same import sent again goes on where it ended; kept for a day'],
      },
      'dry-run': { help: ['checks every tuple, and writes nothing'] },
      retries: { value: 'N', help: ['a file with --import-id is sent again so often; default 5'] },
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: `Nothing is written before all of it has come and was checked. Into a tenant with tuples it is written in
chunks: those stay when it fails later. Tuples of seats are left out. Files of OpenFGA and SpiceDB are
turned into such lines by gatehouse model convert.
${EXIT_NOTES}`,
    examples: [
      'gatehouse import doc.ndjson --import-id 2026-11-22',
      'gunzip < atlas.ndjson.gz | gatehouse import - --dry-run',
    ],
    load: async () => (await import('./import-tuples.ts')).importTuples,
  },
  watch: {
    summary: 'Follows what is written to tuples: + written, - deleted.',
    usage: ['watch [options]'],
    words: {},
    options: {
      ...FILTER,
      'all-tenants': ALL_TENANTS,
      'start-after': {
        value: 'CURSOR',
        help: ['of a message, or a consistency token of the tenant; default: now'],
      },
      heartbeat: { value: 'SECONDS', help: ['1 to 60, by which silence is noticed; default 15'] },
      retries: {
        value: 'N',
        help: ['goes on so often in a row; default: always once it follows'],
      },
      count: { value: 'N', help: ['ends after so many messages; heartbeats do not count'] },
      jsonl: { help: ['the messages as they come, heartbeats with them, one a line'] },
      ...TENANT,
    },
    notes: `A connection that is lost is made again behind the last message: none is missing, and none comes twice. The
service must serve such streams: GATEWAY_WATCH_STREAMS is above 0.
${EXIT_NOTES}`,
    examples: [
      'gatehouse watch --namespace doc',
      '# everything since an export, without a gap, by the token that it ends with',
      'gatehouse watch --start-after "$(tail -n 1 all.ndjson | jq -r .consistency_token)" --jsonl',
    ],
    load: async () => (await import('./watch-tuples.ts')).watchTuples,
  },
};
