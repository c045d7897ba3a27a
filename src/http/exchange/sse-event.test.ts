import { expect, test } from 'vitest';
import { encodeSseEvent } from './sse-event.ts';

test('events are framed so that no text can end or forge a field', () => {
  expect(encodeSseEvent({ data: '{"a":1}', id: '7', event: 'step' })).toBe(
    'id: 7\nevent: step\ndata: {"a":1}\n\n',
  );
  expect(encodeSseEvent({ data: 'a\nb\r\nc\rd' })).toBe('data: a\ndata: b\ndata: c\ndata: d\n\n');
  expect(encodeSseEvent({ data: '', id: '1\nevent: x' })).toBe('id: 1event: x\ndata: \n\n');
});
