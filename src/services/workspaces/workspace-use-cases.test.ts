import { expect, test } from 'vitest';
import { personalNameOf } from './workspace-use-cases.ts';

test.each([
  ['anne@mail.example', 'anne'],
  ['auth0|5f7c', 'Personal'],
  ['anne', 'Personal'],
  ['@mail.example', 'Personal'],
  [' @x', 'Personal'],
  ['"a@b"@c', '"a@b"'],
  [`${'é'.repeat(210)}@x`, 'é'.repeat(200)],
])('the personal workspace of %j is called %s', (userId, name) => {
  expect(personalNameOf(userId)).toBe(name);
});
