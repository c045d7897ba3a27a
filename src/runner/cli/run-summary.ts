import type { Terminal } from '../../command-line/terminal.ts';
import type { Annotation, Job, WorkflowRun } from '../model/run.ts';
import { durationText, sizeText } from '../text/duration.ts';
import type { RunPrinter } from './run-printer.ts';
import type { RunReader, RunnerLink } from './runner-link.ts';

const FAILED_STEP_LINES = 20;
const ANNOTATIONS_MAX = 50;

/** What is left to say at the end of a run: results, annotations, summary, artifacts. */
export async function printSummary(
  terminal: Terminal,
  printer: RunPrinter,
  link: RunnerLink,
  run: WorkflowRun,
  isQuiet: boolean,
): Promise<void> {
  if (isQuiet) await printFailedSteps(terminal, link, run);
  const time = run.durationMs === undefined ? '' : ` in ${durationText(run.durationMs)}`;
  terminal.line();
  const verdict = terminal.paint(run.conclusion ?? run.status, 'bold');
  terminal.line(`${printer.mark(run.conclusion)} ${terminal.foreign(run.name)} ${verdict}${time}`);
  if (run.jobs.length > 1)
    for (const job of run.jobs) terminal.line(`  ${jobLine(terminal, printer, job)}`);
  printAnnotations(terminal, await link.annotations(run.id));
  const summary = await link.summary(run.id);
  if (summary.trim() !== '') {
    heading(terminal, 'Summary');
    for (const line of summary.trimEnd().split('\n')) terminal.line(`  ${terminal.foreign(line)}`);
  }
  const artifacts = await link.artifacts(run.id);
  if (artifacts.length > 0) heading(terminal, 'Artifacts');
  for (const { name, size, path } of artifacts) {
    const place = terminal.paint(terminal.foreign(path), 'dim');
    terminal.line(`  ${terminal.foreign(name)}  ${sizeText(size)}  ${place}`);
  }
}

function jobLine(terminal: Terminal, printer: RunPrinter, job: Job): string {
  const time = job.durationMs === undefined ? '' : durationText(job.durationMs);
  const failed = job.steps.filter(({ conclusion }) => conclusion === 'failure');
  const where = failed.map(({ number, name }) => `step ${number} ${terminal.foreign(name)}`);
  const details = [time, ...where].filter((text) => text !== '').join(' · ');
  return `${printer.mark(job.conclusion)} ${terminal.foreign(job.name)}  ${terminal.paint(details, 'dim')}`;
}

function printAnnotations(terminal: Terminal, annotations: readonly Annotation[]): void {
  if (annotations.length > 0) heading(terminal, 'Annotations');
  for (const annotation of annotations.slice(0, ANNOTATIONS_MAX)) {
    const { level, message, title, file, line, jobId } = annotation;
    const style = level === 'error' ? 'red' : level === 'warning' ? 'yellow' : 'cyan';
    const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}`;
    const head = [jobId, place, title].filter((text) => text !== undefined && text !== '');
    const prefix = head.length === 0 ? '' : `${terminal.foreign(head.join(' '))}: `;
    terminal.line(
      `  ${terminal.paint(level.padEnd(7), style)} ${prefix}${terminal.foreign(message)}`,
    );
  }
  const more = annotations.length - ANNOTATIONS_MAX;
  if (more > 0) terminal.line(`  … and ${more} more`);
}

/** Without the log the reason of a failure would be missing. */
async function printFailedSteps(
  terminal: Terminal,
  link: RunReader,
  run: WorkflowRun,
): Promise<void> {
  for (const job of run.jobs) {
    for (const step of job.steps) {
      if (step.conclusion !== 'failure' || step.startedAt === undefined) continue;
      const query = { jobId: job.id, stepNumber: step.number, tail: FAILED_STEP_LINES };
      heading(terminal, `${terminal.foreign(job.id)} › ${terminal.foreign(step.name)}, last lines`);
      const text = await textOf(link.logs(run.id, query));
      // The headers of job and step are said already.
      for (const line of text.trimEnd().split('\n').slice(2)) {
        terminal.line(`  ${terminal.foreign(line)}`);
      }
    }
  }
}

async function textOf(parts: AsyncIterable<Uint8Array | string>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of parts) {
    text += typeof part === 'string' ? part : decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

function heading(terminal: Terminal, text: string): void {
  terminal.line();
  terminal.line(terminal.paint(text, 'bold'));
}
