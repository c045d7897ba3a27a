import { parseArgs } from 'node:util';
import { gateProblems, parseGate } from '../../src/language/gate/parse-gate.ts';
import { inspectModel } from '../../src/model/namespace-model.ts';
import { isJson, readText, say } from './files.ts';
import { EXIT_OK, EXIT_PROBLEM, type Subcommand, UsageError } from './subcommand.ts';

const HELP = `usage: npm run model -- check FILE…

Says of models, .gate or JSON, what is wrong with them (error) and what is likely not meant (warning), as a
write of the model would. Needs no service. - is the standard input.

exit codes: 0 no errors; 1 errors; 2 the command or a file is wrong
`;

/** Says what is wrong with models. */
export const check: Subcommand = {
  help: HELP,
  run: (args) => {
    const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true });
    if (positionals.length === 0) throw new UsageError('check: which files?');
    return Math.max(...positionals.map(checkFile));
  },
};

function checkFile(path: string): number {
  const text = readText(path);
  const problems = isJson(path, text) ? problemsOfJson(text) : problemsOfGate(text);
  for (const { place, kind, message } of problems) say(`${path}:${place}: ${kind}: ${message}`);
  return problems.some(({ kind }) => kind === 'error') ? EXIT_PROBLEM : EXIT_OK;
}

type Told = {
  readonly place: string;
  readonly kind: 'error' | 'warning';
  readonly message: string;
};

function problemsOfJson(json: string): readonly Told[] {
  const { errors, warnings } = inspectModel(json);
  return [
    ...errors.map(({ path, message }) => ({ place: path, kind: 'error' as const, message })),
    ...warnings.map(({ path, message }) => ({ place: path, kind: 'warning' as const, message })),
  ];
}

function problemsOfGate(text: string): readonly Told[] {
  const problems = gateProblems(text);
  if (problems.length > 0) {
    return problems.map(({ line, column, message, hint }) => ({
      place: `${line}:${column}`,
      kind: 'error',
      message: hint === '' ? message : `${message} (${hint})`,
    }));
  }
  const { json, locate } = parseGate(text);
  return problemsOfJson(json).map((told) => {
    const { line, column } = locate(told.place);
    return { ...told, place: `${line}:${column}` };
  });
}
