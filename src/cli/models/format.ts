import { formatGate } from '../../language/gate/print-gate-tree.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { readText, writeText } from '../core/files.ts';
import { filesOf, isOfContent, say } from './files/model-files.ts';

/** `model format`: formats `.gate` files in place. */
export function formatFiles(line: CliLine): Promise<number> {
  const codes = filesOf(line).map((path) => formatFile(line, path));
  return Promise.resolve(Math.max(...codes));
}

function formatFile(line: CliLine, path: string): number {
  const text = readText(path);
  try {
    const formatted = formatGate(text);
    if (line.isSet('check')) {
      if (formatted === text) return EXIT_OK;
      say(line, `${path}: is laid out otherwise`);
      return EXIT_NO;
    }
    if (formatted !== text || path === '-') writeText(path, formatted);
    return EXIT_OK;
  } catch (error) {
    if (!isOfContent(error)) throw error;
    say(line, `${path}: ${error.message}`);
    return EXIT_NO;
  }
}
