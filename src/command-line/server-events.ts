/** One event of a stream, with its fields as received. */
export type ServerEvent = {
  readonly id: string;
  readonly event: string;
  readonly data: string;
};

/**
 * Reads the events of a text/event-stream response (WHATWG HTML §9.2.6). Supports what the runner uses of the format:
 * LF line ends and one line of data per event. Memory: one chunk and one event.
 */
export async function* readServerEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (response.body === null) return;
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): ServerEvent {
  let id = '';
  let event = 'message';
  let data = '';
  for (const line of block.split('\n')) {
    const end = line.indexOf(':');
    const value = line.slice(end + 1).replace(/^ /, '');
    if (line.startsWith('id:')) id = value;
    else if (line.startsWith('event:')) event = value;
    else if (line.startsWith('data:')) data += value;
  }
  return { id, event, data };
}
