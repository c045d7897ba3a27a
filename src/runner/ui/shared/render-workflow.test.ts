import { expect, test } from 'vitest';
import type { WorkflowInfo } from '../../model/workflow-info.ts';
import { renderHome } from './render-home.ts';
import { renderWorkflow } from './render-workflow.ts';

function pagesOf(triggers: readonly string[]): readonly string[] {
  const info: WorkflowInfo = {
    name: 'w',
    fileName: 'w.yml',
    filePath: '/w.yml',
    triggers,
    jobs: [],
  };
  const view = { info, runs: [], environments: [] };
  return [
    String(renderHome({ workflows: [info], runs: [], hasMore: false } as never, 0)),
    String(renderWorkflow(view as never, 0)),
  ];
}

test('a workflow that others alone call is not offered to be run', () => {
  const [home, page] = pagesOf(['workflow_call']);
  expect(home).not.toContain('Run…');
  expect(page).not.toContain('Run workflow');
  expect(page).toContain('It runs where another workflow calls it.');
  for (const triggers of [['push'], ['workflow_call', 'push'], []]) {
    const [otherHome, otherPage] = pagesOf(triggers);
    expect(otherHome).toContain('Run…');
    expect(otherPage).toContain('Run workflow');
  }
});
