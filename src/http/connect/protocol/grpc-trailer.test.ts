import { Code, ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '../../../shared/app-error.ts';
import { createConnectErrors } from './connect-errors.ts';
import { grpcMessageOf, setGrpcStatus } from './grpc-trailer.ts';

/** A reader by the grammar of the specification alone: `%XX` is a byte, every other byte is itself. */
function read(escaped: string): string {
  const bytes: number[] = [];
  for (let at = 0; at < escaped.length; at++) {
    if (escaped[at] === '%') {
      bytes.push(Number.parseInt(escaped.slice(at + 1, at + 3), 16));
      at += 2;
    } else bytes.push(escaped.charCodeAt(at));
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes));
}

test.each([
  ['doc:a#viewer must match [a-z]{0,9}; \'x\' = "y" & (z)?', undefined],
  ['~!@#$^&*()_+`-={}|[]\\:";\'<>?,./', undefined],
  ['half of %41', 'half of %2541'],
  ['größer als 5 €', 'gr%C3%B6%C3%9Fer als 5 %E2%82%AC'],
  ['an\r\ngrpc-status: 0\0\x7f', 'an%0D%0Agrpc-status: 0%00%7F'],
  ['😀', '%F0%9F%98%80'],
  ['a\ud800b', 'a%EF%BF%BDb'],
  ['\udc00\ud800', '%EF%BF%BD%EF%BF%BD'],
  ['  both ends ', '%20%20both ends%20'],
  ['', undefined],
])('%j is escaped where gRPC escapes', (text, escaped = text) => {
  expect(grpcMessageOf(text)).toBe(escaped);
});

test('whatever the text, a field can hold it and every reader has it back', () => {
  const errors = createConnectErrors({ FIELD_INVALID: Code.InvalidArgument });
  const unit = fc.oneof(
    fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 1 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.integer({ min: 0xd800, max: 0xdfff }).map((half) => String.fromCharCode(half)),
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 100, size: 'max' }), (text) => {
      const error = new AppError('FIELD_INVALID', text);
      const trailer = setGrpcStatus(new Headers(), errors.connectErrorFromAppError(error));
      const escaped = trailer.get('grpc-message') ?? '';
      expect(escaped).toMatch(/^[\x20-\x7e]*$/);
      expect(escaped).toBe(grpcMessageOf(text));
      for (const reader of [read, decodeURI, decodeURIComponent]) {
        expect(reader(escaped)).toBe(text.toWellFormed());
      }
    }),
  );
});

test('what a handler of Connect fails with is escaped in the same way', () => {
  const trailer = setGrpcStatus(new Headers(), new ConnectError('a/b: 100% ✓', Code.Aborted));
  expect(trailer.get('grpc-message')).toBe('a/b: 100%25 %E2%9C%93');
  expect(trailer.get('grpc-status')).toBe('10');
});

test('a text full of spaces takes no longer than to read it', () => {
  const spaces = ' '.repeat(4_000_000);
  expect(grpcMessageOf(`x${spaces}x`)).toBe(`x${spaces}x`);
  expect(grpcMessageOf(`x${' '.repeat(1_000)}`)).toBe(`x${'%20'.repeat(1_000)}`);
});
