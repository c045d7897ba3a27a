import { parseArgs } from 'node:util';
import { gateProblems, parseGate } from '../../src/language/gate/parse-gate.ts';
import { inspectModel } from '../../src/model/namespace-model.ts';
import { isJson, readText, say } from './files.ts';
import { readingsOfImported, storedModelLines } from './imported-models.ts';
import { EXIT_OK, EXIT_PROBLEM, EXIT_USAGE, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- check [--imported] FILE…
       npm run model -- check --stored [--url http://HOST:8080] [PROJECT…]

Says of models, .gate or JSON, what is wrong with them (error) and what is likely not meant (warning), as a
write of the model would. - is the standard input.

  --imported   the models came from OpenFGA or SpiceDB: names what their conditions decide otherwise here
  --stored     asks a service for its models instead, and names the same of those in force and of those that
               came through OpenFGA's API. All projects, where none is given. Takes the settings of the service
  --url        the service; where it is not given, the one on this machine

exit codes: 0 no errors; 1 errors; 2 the command or a file is wrong
`;

/** Says what is wrong with models. */
export const check: Subcommand = {
  help: HELP,
  run: async (args) => {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: {
        imported: { type: 'boolean', default: false },
        stored: { type: 'boolean', default: false },
        url: { type: 'string' },
      },
      allowPositionals: true,
    });
    if (values.stored) {
      try {
        for (const line of await storedModelLines(positionals, values.url)) say(line);
        return EXIT_OK;
      } catch (error) {
        // What the service answered, or that there is none.
        say(`check: ${error instanceof Error ? error.message : String(error)}`);
        return EXIT_USAGE;
      }
    }
    if (values.url !== undefined) throw new UsageError('check: --url goes with --stored');
    if (positionals.length === 0) throw new UsageError('check: which files?');
    return Math.max(...positionals.map((path) => checkFile(path, values.imported)));
  },
};

function checkFile(path: string, isImported: boolean): number {
  const text = readText(path);
  const problems = isJson(path, text)
    ? problemsOfJson(text, isImported)
    : problemsOfGate(text, isImported);
  for (const { place, kind, message } of problems) say(`${path}:${place}: ${kind}: ${message}`);
  return problems.some(({ kind }) => kind === 'error') ? EXIT_PROBLEM : EXIT_OK;
}

type Told = {
  readonly place: string;
  readonly kind: 'error' | 'warning';
  readonly message: string;
};

function problemsOfJson(json: string, isImported: boolean): readonly Told[] {
  const { model, errors, warnings } = inspectModel(json);
  const readings = isImported && model !== undefined ? readingsOfImported(model) : [];
  return [
    ...errors.map(({ path, message }) => ({ place: path, kind: 'error' as const, message })),
    ...[...warnings, ...readings].map(({ path, message }) => ({
      place: path,
      kind: 'warning' as const,
      message,
    })),
  ];
}

function problemsOfGate(text: string, isImported: boolean): readonly Told[] {
  const problems = gateProblems(text);
  if (problems.length > 0) {
    return problems.map(({ line, column, message, hint }) => ({
      place: `${line}:${column}`,
      kind: 'error',
      message: hint === '' ? message : `${message} (${hint})`,
    }));
  }
  const { json, locate } = parseGate(text);
  return problemsOfJson(json, isImported).map((told) => {
    const { line, column } = locate(told.place);
    return { ...told, place: `${line}:${column}` };
  });
}
