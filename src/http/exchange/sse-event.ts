/** A Server-Sent Event (WHATWG HTML §9.2). */
export type SseEvent = {
  /** One line of JSON, or any text: line breaks are encoded as the format wants. */
  readonly data: string;
  readonly event?: string | undefined;
  readonly id?: string | undefined;
};

/** The wire form of an event. `id` and `event` lose line breaks, which would end the field. */
export function encodeSseEvent(event: SseEvent): string {
  let text = '';
  if (event.id !== undefined) text += `id: ${oneLine(event.id)}\n`;
  if (event.event !== undefined) text += `event: ${oneLine(event.event)}\n`;
  for (const line of event.data.split(/\r\n|\n|\r/)) text += `data: ${line}\n`;
  return `${text}\n`;
}

function oneLine(value: string): string {
  return value.replaceAll(/[\r\n\0]/g, '');
}
