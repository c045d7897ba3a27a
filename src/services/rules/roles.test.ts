import { expect, test } from 'vitest';
import { ADMIN, GUEST, MEMBER, OWNER, REQUIREMENTS, isAtLeast } from './roles.ts';

test('the matrix has the methods of the contract', () => {
  expect(Object.keys(REQUIREMENTS.workspace)).toHaveLength(16);
  expect(Object.keys(REQUIREMENTS.group)).toHaveLength(9);
  expect(Object.keys(REQUIREMENTS.seat)).toHaveLength(5);
});

test('owner implies admin implies member implies guest', () => {
  const ordered = [OWNER, ADMIN, MEMBER, GUEST] as const;
  ordered.forEach((role, at) => {
    ordered.forEach((needed, neededAt) => expect(isAtLeast(role, needed)).toBe(at <= neededAt));
  });
});
