import { usage } from '../../command-line/parse-words.ts';
import { gateProblems, parseGate } from '../../language/gate/parse-gate.ts';
import { inspectModel } from '../../model/namespace/namespace-model.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { readText } from '../core/files.ts';
import { SERVICE } from '../core/options.ts';
import { filesOf, isJson, say } from './files/model-files.ts';
import { readingsOfImported, storedModelLines } from './imported-models.ts';

/** `model validate`: reports problems of models. */
export async function validateModels(line: CliLine): Promise<number> {
  if (line.isSet('stored')) {
    const lines = await storedModelLines(line.words, await connectionOf(line));
    for (const one of lines) say(line, one);
    return EXIT_OK;
  }
  const other = Object.keys(SERVICE).find((option) => option !== 'help' && line.isSet(option));
  if (other !== undefined) throw usage(`--${other} goes with --stored`);
  const isImported = line.isSet('imported');
  return Math.max(...filesOf(line).map((path) => validateFile(line, path, isImported)));
}

function validateFile(line: CliLine, path: string, isImported: boolean): number {
  const text = readText(path);
  const problems = isJson(path, text)
    ? problemsOfJson(text, isImported)
    : problemsOfGate(text, isImported);
  for (const { place, kind, message } of problems) {
    say(line, `${path}:${place}: ${kind}: ${message}`);
  }
  return problems.some(({ kind }) => kind === 'error') ? EXIT_NO : EXIT_OK;
}

type ModelFinding = {
  readonly place: string;
  readonly kind: 'error' | 'warning';
  readonly message: string;
};

function problemsOfJson(json: string, isImported: boolean): readonly ModelFinding[] {
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

function problemsOfGate(text: string, isImported: boolean): readonly ModelFinding[] {
  const problems = gateProblems(text);
  if (problems.length > 0) {
    return problems.map(({ line, column, message, hint }) => ({
      place: `${line}:${column}`,
      kind: 'error',
      message: hint === '' ? message : `${message} (${hint})`,
    }));
  }
  const { json, locate } = parseGate(text);
  return problemsOfJson(json, isImported).map((finding) => {
    const { line, column } = locate(finding.place);
    return { ...finding, place: `${line}:${column}` };
  });
}
