import { expect, test, vi } from 'vitest';
import { BodyDeadlines } from './body-deadlines.ts';

test('what is overdue is cut once, what was removed is not', async () => {
  const deadlines = new BodyDeadlines(20);
  const slow = { cut: vi.fn<() => void>() };
  const quick = { cut: vi.fn<() => void>() };
  deadlines.add(slow);
  deadlines.add(quick);
  deadlines.remove(quick);
  await vi.waitFor(() => expect(slow.cut).toHaveBeenCalledOnce(), { timeout: 20_000 });
  expect(quick.cut).not.toHaveBeenCalled();
  expect(deadlines.count).toBe(0);
  deadlines.add(quick);
  await vi.waitFor(() => expect(quick.cut).toHaveBeenCalledOnce(), { timeout: 20_000 });
  expect(slow.cut).toHaveBeenCalledOnce();
});
